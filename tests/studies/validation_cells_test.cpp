// Cells and claims of whole runs: what predicts them, what nothing predicts, and which claims are no test.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibration/quality/goal.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "report/validations.hpp"
#include "studies/validation.hpp"
#include "support/errors.hpp"

namespace ganymede::studies {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A study of two recorded trainings, whose losses are 2 and 3.
std::string trainings_study(const std::string& more) {
  return R"({ "schema": "ganymede.validation/1", "name": "small", "title": "t", "source": "s", "assumptions": [],
    "trainings": { "one": { "command": "train", "data": "d", "result": { "losses": { "g": 2 } } },
                   "two": { "command": "train", "data": "d", "result": { "losses": { "g": 3 } } } },
    "run_error": 0.25)" +
         more + " }";
}

OrderedJson printed(const documents::ValidatedStudy& study) {
  return OrderedJson::parse(documents::validated_study_text(study));
}
documents::ValidatedStudy study_of(const std::string& text) {
  return run_validation(read_validation(JsonNode::parse(text, "study")));
}
OrderedJson answers_of(const std::string& more) { return printed(study_of(trainings_study(more))); }
/// The study among all.
documents::ValidationResult all_of(const OrderedJson& study) {
  return validation_result({documents::validated_study_in(Json(study))});
}

std::string refused(const std::string& more) {
  return message_of<ConfigError>([&] { answers_of(more); });
}

TEST(ValidationCells, ComeFromRecordedTrainings) {
  const OrderedJson result = answers_of(R"(, "cells": [
    { "what": "a", "unit": "loss", "quantity": "quality", "run": "one", "value": "/losses/g", "measured": 4, "role": "fit" },
    { "what": "b", "unit": "loss", "quantity": "quality", "run": "two", "value": "/losses/g", "measured": 5,
      "role": "predict" },
    { "what": "c", "unit": "loss", "quantity": "quality", "run": "two", "value": "/losses/g", "measured": 5,
      "role": "predict", "anchor": "a", "error": 1 } ])");
  EXPECT_DOUBLE_EQ(result["cells"][1]["predicted"].get<double>(), 3);
  EXPECT_EQ(result["cells"][1]["evidence"], "recorded training");
  EXPECT_NEAR(result["cells"][1]["interval_90"][1].get<double>(), 3 * 1.25, 1e-12);
  EXPECT_DOUBLE_EQ(result["cells"][2]["predicted"].get<double>(), 4 * 3 / 2.0);
  EXPECT_EQ(result["cells"][2]["evidence"], "ratio of two recorded trainings");
  EXPECT_NEAR(result["cells"][2]["interval_90"][0].get<double>(), 3, 1e-12);
  EXPECT_EQ(result["summary"]["cells"], 0) << "a loss is no time";
  EXPECT_EQ(result["other_quantities"]["quality"]["cells"], 2);
  const OrderedJson all = documents::validation_json(all_of(result));
  EXPECT_EQ(all["summary"]["cells"], 0);
  EXPECT_TRUE(all["coverage"].empty());
}

TEST(ValidationCells, AForecastIsThatOfTheQualityModel) {
  const OrderedJson result = answers_of(R"(, "forecasts": {
      "f": { "model": "dcgan-32", "goal": { "fid": 45, "dataset": "CIFAR10" }, "batch": 64, "images": 1e6 } },
    "cells": [ { "what": "a", "unit": "FID", "quantity": "quality", "run": "f", "value": "/best_fid/median", "measured": 4,
                 "role": "predict" } ])");
  const auto goal =
      calibration::QualityGoal::read(JsonNode::parse(R"({ "fid": 45, "dataset": "CIFAR10" })", "goal"), "dcgan-32");
  EXPECT_DOUBLE_EQ(result["cells"][0]["predicted"].get<double>(), goal.given({}, "", 64, 1e6).best.median);
  EXPECT_EQ(result["cells"][0]["evidence"], "quality forecast");
}

TEST(ValidationCells, SayWhatNothingPredictsAndWhatNobodyMeasured) {
  const OrderedJson result = answers_of(R"(, "cells": [
    { "what": "a", "unit": "IS", "measured": 4, "role": "none", "because": "of the moon" },
    { "what": "b", "unit": "IS", "measured": 5, "role": "none", "because": "of the moon" },
    { "what": "c", "unit": "s", "run": "one", "value": "/losses/g", "scale": 10, "role": "shown" } ])");
  EXPECT_FALSE(result["cells"][0].contains("predicted") || result["cells"][2].contains("predicted"));
  EXPECT_FALSE(result["cells"][2].contains("measured"));
  EXPECT_DOUBLE_EQ(result["cells"][2]["simulated"].get<double>(), 20);
  const documents::ValidationResult all = all_of(result);
  EXPECT_THAT(report::validation_text(all, true, 200),
              AllOf(HasSubstr("not predicted, because of the moon: a; b\n"), HasSubstr("not measured")));
  EXPECT_THAT(report::validation_csv(all), HasSubstr("small,runs,c,s,shown,,,,,,"));
}

TEST(ValidationCells, AShareOfTimeIsAtMostOne) {
  const OrderedJson result = answers_of(R"(, "cells": [ { "what": "a", "unit": "busy", "quantity": "utilization",
    "run": "one", "value": "/losses/g", "scale": 0.45, "measured": 0.9, "role": "predict" } ])");
  EXPECT_DOUBLE_EQ(result["cells"][0]["interval_90"][1].get<double>(), 1);
}

// Two and three are a third apart; a ratio that may be off by a quarter of itself may not be 1 then, and may if it is
// off by the half.
TEST(ValidationClaims, SayWhetherTheDifferenceIsMoreThanTheError) {
  const std::string claim = R"("claims": [ { "text": "t", "value": "/losses/g", "falls": ["two", "one"] } ])";
  const OrderedJson sure = answers_of(", " + claim)["claims"][0];
  EXPECT_TRUE(sure["holds"].get<bool>());
  EXPECT_NEAR(sure["margin"].get<double>(), 1 / 3.0, 1e-12);
  EXPECT_FALSE(sure["within_error"].get<bool>());
  std::string text = trainings_study(", " + claim);
  text.replace(text.find("0.25"), 4, "0.51");
  const documents::ValidatedStudy unsure = study_of(text);
  EXPECT_TRUE(unsure.claims[0].within_error);
  EXPECT_THAT(report::validation_text(validation_result({unsure}), true, 200),
              HasSubstr("33.3 % apart, which is less than such a ratio may be off"));
}

TEST(ValidationClaims, OneThatComparesARunWithItselfIsRefused) {
  const auto claim = [](const std::string& falls) {
    return R"(, "claims": [ { "text": "t", "value": "/losses/g", "falls": )" + falls + " } ]";
  };
  EXPECT_THAT(refused(claim(R"(["one"])")),
              AllOf(HasSubstr("/claims/0/falls"), HasSubstr("expected two runs or more")));
  EXPECT_THAT(refused(claim(R"(["one", "two", "one"])")),
              AllOf(HasSubstr("/claims/0/falls/2"), HasSubstr("is the same run as \"one\"")));
  const std::string runs = R"(, "runs": { "a": { "seed": 1 }, "b": { "seed": 1 } })";
  EXPECT_THAT(refused(runs + claim(R"(["a", "b"])")), HasSubstr("is the same run as \"a\""));
}

/// The answer to a claim about, or a cell of, two recorded trainings whose losses are these.
OrderedJson with_losses(const Json& one, const Json& two, const Json& more) {
  Json study = Json::parse(trainings_study(""));
  study["trainings"]["one"]["result"]["losses"]["g"] = one;
  study["trainings"]["two"]["result"]["losses"]["g"] = two;
  study.update(more);
  return printed(run_validation(read_validation(JsonNode::wrap(std::move(study), "study", ""))));
}

TEST(ValidationCells, AResultThatIsNoNumberIsLocated) {
  const Json cells = Json::parse(R"({ "cells": [ { "what": "a", "unit": "loss", "role": "predict", "run": "one",
    "value": "/losses/g", "measured": 4 } ] })");
  const auto refused_result = [&](const Json& one) {
    return message_of<ConfigError>([&] { with_losses(one, 3, cells); });
  };
  const std::string place = "study: /cells/0/value: the result of \"one\" has at \"/losses/g\" ";
  EXPECT_EQ(refused_result("high"), place + "\"high\", expected a number");
  EXPECT_EQ(refused_result("3 apples"), place + "\"3 apples\", expected a number");
  EXPECT_EQ(refused_result("nan"), place + "\"nan\", expected a number");
  EXPECT_EQ(refused_result(true), place + "true, expected a number");
  EXPECT_EQ(refused_result(nullptr), place + "null, expected a number");
  EXPECT_EQ(refused_result(Json::array()), place + "an array, expected a number");
  EXPECT_DOUBLE_EQ(with_losses("2.5", 3, cells)["cells"][0]["predicted"].get<double>(), 2.5) << "as money is written";
  EXPECT_THAT(refused(R"(, "claims": [ { "text": "t", "value": "/x", "falls": ["one", "two"] } ])"),
              HasSubstr("study: /claims/0/value: the result of \"one\" has no \"/x\""));
}

TEST(ValidationCells, ANegativePredictionHasItsIntervalInOrder) {
  const OrderedJson cell = with_losses(-2, 3, Json::parse(R"({ "cells": [ { "what": "a", "unit": "loss",
    "role": "predict", "run": "one", "value": "/losses/g", "measured": 4 } ] })"))["cells"][0];
  EXPECT_DOUBLE_EQ(cell["interval_90"][0].get<double>(), -2 * 1.25);
  EXPECT_DOUBLE_EQ(cell["interval_90"][1].get<double>(), -2 / 1.25);
}

TEST(ValidationClaims, HoldByMoreThanTheModelsNoise) {
  const auto holds = [](double one, double two) {
    return with_losses(one, two, Json::parse(R"({ "claims": [ { "text": "t", "value": "/losses/g",
      "falls": ["one", "two"] } ] })"))["claims"][0]["holds"]
        .get<bool>();
  };
  EXPECT_FALSE(holds(1, 1 - 4e-4));
  EXPECT_TRUE(holds(1, 1 - 6e-4));
  EXPECT_TRUE(holds(-1, -2));
  EXPECT_FALSE(holds(-2, -1));
}

TEST(ValidationCells, BadOnesAreLocated) {
  EXPECT_THAT(refused(R"(, "cells": [ { "what": "a", "unit": "s", "measured": 4, "role": "none" } ])"),
              AllOf(HasSubstr("/cells/0"), HasSubstr("because")));
  EXPECT_THAT(refused(R"(, "cells": [ { "what": "a", "unit": "s", "role": "shown", "run": "three", "value": "/x" } ])"),
              AllOf(HasSubstr("/cells/0/run: found \"three\""), HasSubstr("\"one\" or \"two\"")));
  EXPECT_THAT(refused(R"(, "cells": [ { "what": "a", "unit": "s", "role": "predict", "run": "one", "value": "/x",
    "measured": 1 } ])"),
              HasSubstr("study: /cells/0/value: the result of \"one\" has no \"/x\""));
  EXPECT_THAT(refused(R"(, "cells": [ { "what": "a", "unit": "s", "role": "none", "because": "b", "measured": 1,
    "quantity": "weight" } ])"),
              AllOf(HasSubstr("/cells/0/quantity: found \"weight\""), HasSubstr("utilization")));
  EXPECT_THAT(
      refused(R"(, "forecasts": { "one": { "model": "dcgan-32", "goal": { "fid": 4 }, "batch": 1, "images": 1 } })"),
      AllOf(HasSubstr("/forecasts/one"), HasSubstr("has the name of another run")));
}

}  // namespace
}  // namespace ganymede::studies
