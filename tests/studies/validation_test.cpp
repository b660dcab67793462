#include "studies/validation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "documents/validation_result.hpp"
#include "support/errors.hpp"
#include "support/when.hpp"

namespace ganymede::studies {
namespace {
using testing::AllOf;
using testing::HasSubstr;

Validation read(const std::string& text) { return read_validation(JsonNode::parse(text, "study")); }

/// The results as they are printed.
OrderedJson run(const Validation& validation, bool replay = false) {
  return OrderedJson::parse(documents::validated_study_text(run_validation(validation, replay)));
}
documents::ValidationResult all_of(const std::vector<OrderedJson>& studies) {
  std::vector<documents::ValidatedStudy> read;
  for (const OrderedJson& study : studies) read.push_back(documents::validated_study_in(Json(study)));
  return validation_result(read);
}

/// A study: a step takes 100 ms on one GPU, and two GPUs are joined by a switch of 10 GB/s without latency.
std::string small_study(const std::string& series, const std::string& more = "") {
  return R"({ "schema": "ganymede.validation/1", "name": "small", "title": "t", "source": "s", "assumptions": [],
    "machines": { "pair": { "instance": "node", "platform": { "schema": "ganymede.platform/1", "provider": "private",
      "name": "lab", "gpus": { "G": { "memory": "16GiB", "fp32": "10Tflop/s", "memory_bandwidth": "3000GB/s" } },
      "instances": { "node": { "gpu": "G", "gpus": 4, "host_link": { "bandwidth": "10GB/s", "latency": "0us" } } } } } },
    "steps": { "gan": { "phases": [ { "name": "d.launch", "serial_host": 1 }, { "name": "d", "network": "d", "share": 1 } ],
                        "buckets": [ { "network": "d", "bytes": 100e6, "after": "d" } ] } },
    "series": [ { "name": "one", "unit": "s", "machine": "pair", "step": "gan", "scheme": "ring", "executor": "graph")" +
         series + " } ]" + more + " }";
}

const std::string kCells = R"(, "cells": [ { "gpus": 1, "batch": 8, "measured": 0.1, "role": "fit" },
                                           { "gpus": 2, "batch": 8, "measured": 0.12, "role": "predict" } ])";

OrderedJson cell(const OrderedJson& result, std::size_t index) { return result["cells"][index]; }

/// What several workers take beyond one worker's 100 ms and the collectives, in seconds.
double waiting(std::size_t workers) {
  return 0.1 * (calibration::synchronization_slowdown(calibration::kGraphVariation, workers, 0, 1, 100e6, 0.1) - 1);
}

// The step takes 100 ms, more by the expected slower of two workers and the work for 100 MB, and the time of a ring of
// two ranks: 100 MB over 10 GB/s, and a reduction of 3 x 50 MB at 3 TB/s.
TEST(Validation, PredictsWhatFollowsByHand) {
  const OrderedJson result = run(read(small_study(kCells)));
  const double expected = 0.1 + waiting(2) + 0.01 + 3 * 50e6 / 3000e9;
  EXPECT_NEAR(cell(result, 1)["predicted"].get<double>(), expected, 1e-6);
  EXPECT_NEAR(cell(result, 1)["error"].get<double>(), expected / 0.12 - 1, 1e-4);
  EXPECT_EQ(cell(result, 1)["baselines"][0]["name"], "no communication");
  EXPECT_NEAR(cell(result, 1)["baselines"][0]["value"].get<double>(), 0.1, 1e-12);
  EXPECT_FALSE(cell(result, 0).contains("predicted"));
  EXPECT_EQ(result["summary"]["cells"], 1);
}

TEST(Validation, FitsTheSerialHostTimeToItsCell) {
  const std::string cells = R"(, "fit": "serial_host", "cells": [
    { "gpus": 1, "batch": 8, "measured": 0.1, "role": "fit" }, { "gpus": 2, "batch": 8, "measured": 0.15, "role": "fit" },
    { "gpus": 4, "batch": 8, "measured": 0.2, "role": "predict" } ])";
  const OrderedJson result = run(read(small_study(cells)));
  // On two GPUs, 10 ms of the additional time are the ring. Each further replica adds the rest, and the ring takes half
  // as long again.
  const double host = 0.05 - 0.01 - 3 * 50e6 / 3000e9 - waiting(2);
  const double expected = 0.1 + 3 * host + 0.015 + 3 * 75e6 / 3000e9 + waiting(4);
  EXPECT_NEAR(cell(result, 2)["predicted"].get<double>(), expected, 2e-3);
  EXPECT_THAT(result["fitted"][0].get<std::string>(), HasSubstr("spends for one replica after the other"));
  EXPECT_EQ(cell(result, 2)["baselines"][1]["name"], "affine");
  EXPECT_NEAR(cell(result, 2)["baselines"][1]["value"].get<double>(), 0.25, 1e-12);
  EXPECT_NEAR(cell(result, 2)["baselines"][2]["value"].get<double>(), 0.2, 1e-12);
}

// A pair trains one batch of 8 in the 100 ms that one GPU takes, which is 80 images a second, since nothing crosses or
// is reduced here. No bandwidth can explain a measurement of 100.
TEST(Validation, APairTrainsOneBatch) {
  const auto study = [](const std::string& series, const char* role) {
    std::string text = small_study(fmt::format(R"(, "placement": "component-split"{}, "cells": [
      {{ "gpus": 1, "batch": 8, "measured": 80, "role": "fit" }},
      {{ "gpus": 2, "batch": 8, "measured": 100, "role": "{}" }} ])",
                                               series, role));
    const std::string unit = R"("unit": "s")";
    return run(read(text.replace(text.find(unit), unit.size(), R"("unit": "images/s")")));
  };
  const OrderedJson predicted = study("", "predict");
  EXPECT_NEAR(cell(predicted, 1)["predicted"].get<double>(), 80, 1e-6);
  EXPECT_NEAR(cell(predicted, 1)["baselines"][0]["value"].get<double>(), 80, 1e-6);
  EXPECT_THAT(study(R"(, "fit": "links")", "fit")["fitted"][0].get<std::string>(),
              AllOf(HasSubstr("no bandwidth of the links explains"), HasSubstr("longer than the measured 80 ms")));
}

OrderedJson predicted(const std::string& series, const std::string& one = R"("batch": 8, "measured": 0.1)",
                      const std::string& two = R"("batch": 8, "measured": 0.12)") {
  return cell(run(read(small_study(series + fmt::format(R"(, "cells": [
    {{ "gpus": 1, {}, "role": "fit" }}, {{ "gpus": 2, {}, "role": "predict" }} ])",
                                                        one, two)))),
              1);
}

// One GPU took four passes of 2 images in 100 ms. Two GPUs take two passes each, and reduce 100 MB once.
TEST(Validation, AStepMayHaveSeveralPasses) {
  const OrderedJson two = predicted("", R"("batch": 8, "accumulation_steps": 4, "measured": 0.1)",
                                    R"("batch": 4, "accumulation_steps": 2, "measured": 0.06)");
  const double slowdown = calibration::synchronization_slowdown(calibration::kGraphVariation, 2, 0, 1, 100e6, 0.05);
  EXPECT_NEAR(two["predicted"].get<double>(), 0.05 * slowdown + 0.01 + 3 * 50e6 / 3000e9, 1e-6);
  EXPECT_THAT(two["evidence"].get<std::string>(), HasSubstr("measured batch"));
  const OrderedJson other = predicted("", R"("batch": 8, "measured": 0.1)", R"("batch": 4, "measured": 0.06)");
  EXPECT_THAT(other["evidence"].get<std::string>(), HasSubstr("other batch"));
}

// Gradients of one network that are ready in the middle of the last phase overlap with its rest, unless all are reduced
// in one piece after it.
TEST(Validation, AFlatReductionOverlapsNothing) {
  const auto step = [](const std::string& series) {
    std::string text = small_study(series + kCells);
    const std::string bucket = R"("after": "d" })";
    text.replace(text.find(bucket), bucket.size(), R"("after": "d", "ready": 0.5 })");
    return cell(run(read(text)), 1)["predicted"].get<double>();
  };
  EXPECT_NEAR(step(""), 0.1 + waiting(2), 1e-6);
  EXPECT_NEAR(step(R"(, "reduction": "flat")"), 0.1 + waiting(2) + 0.01 + 3 * 50e6 / 3000e9, 1e-6);
}

// A step of 8 images on one GPU takes 100 ms, of which the pauses are 8 / 1000 of 1 s + 2 s. Two GPUs have 16 images a
// step and share the second part of a pause.
TEST(Validation, PausesHaveAFixedAndASharedPart) {
  const OrderedJson two = predicted(R"(, "evaluation": { "every": "1000 images", "fixed": "1s", "parallel": "2s" })");
  const double training = 0.1 - 0.008 * 3;
  const double slowdown = calibration::synchronization_slowdown(calibration::kGraphVariation, 2, 0, 1, 100e6, training);
  EXPECT_NEAR(two["predicted"].get<double>(), training * slowdown + 0.01 + 3 * 50e6 / 3000e9 + 0.016 * 2, 1e-6);
  EXPECT_NEAR(two["baselines"][0]["value"].get<double>(), 0.1, 1e-12);
}

// Nobody measured one GPU: two calibrate, and the prediction for four has the same step of one GPU.
TEST(Validation, SeveralGpusMayCalibrate) {
  const OrderedJson result = run(read(small_study(R"(, "cells": [
    { "gpus": 2, "batch": 8, "measured": 0.15, "role": "fit" }, { "gpus": 4, "batch": 8, "measured": 0.2, "role": "predict" } ])")));
  const double collective = 0.01 + 3 * 50e6 / 3000e9;
  const double deviation = calibration::kGraphVariation.central;
  const double work = calibration::kGraphVariation.seconds_per_byte * 100e6;
  const double alone = (0.15 - collective - work) / (1 + deviation * calibration::expected_slowest(2));
  EXPECT_NEAR(cell(result, 1)["predicted"].get<double>(),
              alone * (1 + deviation * calibration::expected_slowest(4)) + work + 1.5 * collective, 1e-5);
}

TEST(Validation, ACurveOfACollectiveIsPredictedFromItsMachine) {
  std::string text = small_study(kCells, R"(, "collectives": [ { "name": "pair", "machine": "pair", "gpus_per_node": 2,
    "scheme": "ring", "bytes": [100e6], "measured_us": [10000] } ])");
  const OrderedJson result = run(read(text));
  EXPECT_NEAR(cell(result, 2)["predicted"].get<double>(), 1e6 * (0.01 + 3 * 50e6 / 3000e9), 1e-3);
  EXPECT_EQ(cell(result, 2)["evidence"], "collective, assumed network, one machine");
}

// The half-width of a collective's interval inside a node is what the evidence of the links leaves: a factor of
// exp(0.3) where they were measured or fitted, else exp(0.89).
TEST(Validation, EvidenceOfLinksNamesItsClassAndItsWidth) {
  for (const auto& [word, name, error] : {std::tuple{"measured", "measured link", 0.30},
                                          {"fitted", "fitted log", 0.30},
                                          {"datasheet", "datasheet link", 0.89},
                                          {"assumed", "assumed network", 0.89}}) {
    std::string text = small_study(kCells, R"(, "collectives": [ { "name": "pair", "machine": "pair",
      "gpus_per_node": 2, "scheme": "ring", "bytes": [100e6], "measured_us": [10000] } ])");
    const std::string machine = R"("instance": "node",)";
    text.replace(text.find(machine), machine.size(), machine + R"( "evidence": ")" + word + "\",");
    const OrderedJson result = run(read(text)), curve = cell(result, 2);
    EXPECT_EQ(curve["evidence"], std::string("collective, ") + name + ", one machine");
    const double width = curve["interval_90"][1].get<double>() / curve["predicted"].get<double>();
    EXPECT_NEAR(std::log(width), error, 1e-3) << word;
    EXPECT_THAT(cell(result, 1)["evidence"].get<std::string>(), testing::StartsWith(name));
  }
}

TEST(Validation, RefusesCurvesWithoutSizes) {
  const auto message = [](const std::string& curves) {
    return message_of<ConfigError>([&] { read(small_study(kCells, R"(, "collectives": )" + curves)); });
  };
  EXPECT_THAT(message("[]"), AllOf(HasSubstr("/collectives"), HasSubstr("expected at least one curve")));
  EXPECT_THAT(message(R"([ { "name": "pair", "machine": "pair", "scheme": "ring", "bytes": [], "measured_us": [] } ])"),
              AllOf(HasSubstr("/collectives/0/bytes"), HasSubstr("expected at least one size")));
}

// 100 MB between two nodes of a GPU each, at the sustained 1 GB/s or at the burst of 10 GB/s.
TEST(Validation, BenchmarksGetTheBurstOfNicsUnlessAMachineIsSustained) {
  const auto predicted = [](const std::string& network) {
    std::string text = small_study(kCells);
    const std::string node = R"("gpu": "G", "gpus": 4, )";
    text.replace(text.find(node), node.size(),
                 R"("gpu": "G", "gpus": 1, "nic": { "bandwidth": "1GB/s", "burst": "10GB/s", "latency": "0us" }, )");
    const std::string machine = R"("instance": "node",)";
    text.replace(text.find(machine), machine.size(), machine + network);
    return cell(run(read(text)), 1)["predicted"].get<double>();
  };
  const double other = 0.1 + waiting(2) + 3 * 50e6 / 3000e9;
  EXPECT_NEAR(predicted(""), other + 0.01, 1e-6);
  EXPECT_NEAR(predicted(R"( "network": "sustained",)"), other + 0.1, 1e-6);
}

TEST(Validation, TotalsLeaveOutStudiesThatKnowTheirCells) {
  const OrderedJson honest = run(read(small_study(kCells)));
  const OrderedJson informed =
      run(read(small_study(kCells, R"(, "in_totals": false, "informed_choices": ["a network"])")));
  EXPECT_EQ(informed["informed_choices"][0], "a network");
  const OrderedJson both = documents::validation_json(all_of({honest, informed}));
  EXPECT_EQ(both["summary"]["cells"], 1);
  ASSERT_EQ(both["coverage"].size(), 1U);
  EXPECT_EQ(both["coverage"][0]["evidence"], "assumed network, one machine, measured batch, graph");
  EXPECT_EQ(both["coverage"][0]["cells"], 1);
}

TEST(Validation, ABrokenPromiseShows) {
  const auto kept = [&](const std::string& promise) {
    return promises_kept(all_of({run(read(small_study(kCells, ", \"promises\": [ " + promise + " ]")))}));
  };
  EXPECT_TRUE(kept(R"({ "mean_error": 0.1 })"));
  EXPECT_FALSE(kept(R"({ "mean_error": 0.01 })"));
  EXPECT_TRUE(kept(R"({ "mean_error": 0.1, "beats_baselines": true })"));
  EXPECT_FALSE(kept(R"({ "mean_error": 0.1, "cells": "no such tag" })"));  // a promise about nothing is not kept
}

TEST(Validation, AClaimThatIsNotExpectedFails) {
  const OrderedJson study = run(read(std::string(embedded_validation("kubernetes_platforms"))));
  const auto unexpected = [&](bool holds, bool expected) {
    OrderedJson one = study;
    one["claims"] = {{{"text", "t"}, {"holds", holds}, {"expected", expected}, {"values", OrderedJson::array()}}};
    return !claims_as_expected(all_of({one}));
  };
  EXPECT_FALSE(unexpected(true, true));
  EXPECT_FALSE(unexpected(false, false));
  EXPECT_TRUE(unexpected(false, true));
  EXPECT_TRUE(unexpected(true, false));
  const OrderedJson& volumes = study["claims"].back();  // times that print alike are no order
  EXPECT_FALSE(volumes["holds"].get<bool>() || volumes["expected"].get<bool>());
}

// Times differ only by constants that have not seen the study.
TEST(Replay, OfEveryCellThroughSimulateHasTheSameErrorModel) {
  NOT_SANITIZED("repeats every study, which other tests run once");
  std::vector<OrderedJson> results;
  for (const std::string& name : validation_names())
    results.push_back(run(read(std::string(embedded_validation(name))), /*replay=*/true));
  for (const OrderedJson& study : results)
    for (const OrderedJson& cell : study["cells"]) {
      if (!cell.contains("replay")) continue;
      EXPECT_LT(cell["replay"]["interval"][0].get<double>(), cell["replay"]["interval"][1].get<double>())
          << cell.dump();
      EXPECT_NEAR(cell["replay"]["value"].get<double>() / cell["predicted"].get<double>(), 1, 0.15) << cell.dump();
      // A run's interval holds 95 %, so it is 1.19 times as wide; it knows the trace's error, and not how often a
      // publication's own figures differ.
      const auto width = [](const OrderedJson& of) { return std::log(of[1].get<double>() / of[0].get<double>()); };
      const double ratio = width(cell["replay"]["interval"]) / width(cell["interval_90"]);
      EXPECT_GT(ratio, 0.75) << cell.dump();
      EXPECT_LT(ratio, 1.7) << cell.dump();
    }
  const OrderedJson all = documents::validation_json(all_of(results));
  for (const OrderedJson& row : all["coverage"])
    if (row.contains("replay")) {
      EXPECT_GE(row["replay"]["held"].get<double>(), 0.85) << row.dump();
    }
}

class BadStudy : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(BadStudy, IsLocated) {
  try {
    run(read(GetParam().first));
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().second));
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

INSTANTIATE_TEST_SUITE_P(
    Files, BadStudy,
    testing::Values(
        std::pair{replaced(small_study(kCells), "\"fit\" }", "\"predict\" }"),
                  "/series/0/cells: expected a cell of the fewest GPUs"},
        std::pair{replaced(small_study(kCells), "\"machine\": \"pair\"", "\"machine\": \"pear\""),
                  "/series/0/machine: found \"pear\""},
        std::pair{replaced(small_study(kCells), "\"after\": \"d\"", "\"after\": \"x\""),
                  "/steps/gan/buckets/0/after: found \"x\", expected the name of one of the phases"},
        std::pair{replaced(small_study(kCells), "\"share\": 1", "\"share\": 0.5"), "the shares sum to 0.5"},
        std::pair{replaced(small_study(kCells), "\"gpus\": 2", "\"gpus\": 6"), "6 GPUs do not fill nodes of 4"},
        std::pair{replaced(small_study(kCells), "\"measured\": 0.12", "\"measured\": 0"), "/series/0/cells/1/measured"},
        std::pair{small_study(R"(, "fit": "serial_host")" + kCells), "expected a cell of several GPUs"},
        std::pair{small_study(R"(, "link_range": [2, 3])" + kCells), "/series/0/link_range"},
        std::pair{small_study(kCells, R"(, "runs": {}, "claims": [ { "text": "t", "value": "/x", "falls": [],
          "expected": "no" } ])"),
                  "/claims/0/expected"},
        std::pair{replaced(small_study(kCells), "validation/1", "validation/2"), "/schema"}));

class Embedded : public testing::TestWithParam<std::string> {};

/// The study, with noise in place of each measurement that is to be predicted.
std::string with_noise(const std::string& name) {
  OrderedJson study = OrderedJson::parse(embedded_validation(name), /*comments=*/true);
  RandomStream random(11, "test/noise");
  const auto spoil = [&](OrderedJson& cells) {
    for (OrderedJson& cell : cells)
      if (cell["role"] == "predict") cell["measured"] = cell["measured"].get<double>() * (0.2 + 3 * random.uniform());
  };
  if (study.contains("series"))
    for (OrderedJson& series : study["series"]) spoil(series["cells"]);
  if (study.contains("collectives"))
    for (OrderedJson& curve : study["collectives"])
      for (OrderedJson& time : curve["measured_us"]) time = time.get<double>() * (0.2 + 3 * random.uniform());
  if (study.contains("cells")) spoil(study["cells"]);
  return study.dump();
}

TEST_P(Embedded, NoPredictionKnowsItsMeasurement) {
  NOT_SANITIZED("repeats every study, which other tests run once");
  const std::string name = GetParam();
  const OrderedJson honest = run(read(std::string(embedded_validation(name))));
  const OrderedJson noisy = run(read(with_noise(name)));
  ASSERT_EQ(honest["cells"].size(), noisy["cells"].size());
  std::size_t predicted = 0;
  for (std::size_t i = 0; i < honest["cells"].size(); ++i) {
    const OrderedJson &a = honest["cells"][i], &b = noisy["cells"][i];
    if (!a.contains("predicted")) continue;
    ++predicted;
    EXPECT_EQ(a["predicted"], b["predicted"]) << a.dump();
    EXPECT_EQ(a["interval_90"], b["interval_90"]) << a.dump();
    EXPECT_NE(a["measured"], b["measured"]);
    for (std::size_t k = 0; k < a["baselines"].size(); ++k)
      EXPECT_EQ(a["baselines"][k]["value"], b["baselines"][k]["value"]);
  }
  EXPECT_TRUE(predicted > 0 || !honest["claims"].empty());
  EXPECT_EQ(honest["fitted"], noisy["fitted"]);
}

TEST_P(Embedded, KeepsItsPromises) {
  const OrderedJson result = run(read(std::string(embedded_validation(GetParam()))));
  for (const OrderedJson& promise : result["promises"]) EXPECT_TRUE(promise["kept"].get<bool>()) << promise.dump(1);
}

INSTANTIATE_TEST_SUITE_P(Studies, Embedded, testing::ValuesIn(validation_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace ganymede::studies
