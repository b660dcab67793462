#include "exports/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "report/results.hpp"
#include "support/errors.hpp"

namespace ganymede::exports {
namespace {
using testing::AllOf;
using testing::HasSubstr;

std::string refused(const Json& content, std::optional<std::size_t> run = std::nullopt) {
  return message_of<ConfigError>([&] { read_launch(report::document_of(content), run); });
}

TEST(Launch, OfAResult) {
  const Launch launch = read_launch(report::document_of(report::a_result()), std::nullopt);
  EXPECT_EQ(launch.source, "result.json");
  EXPECT_EQ(launch.model, "dcgan-64");
  EXPECT_EQ(launch.instance, "p3.8xlarge");
  EXPECT_EQ(launch.gpus(), 8);
  EXPECT_EQ(launch.instance_gpus, 4);  // from the catalog
  EXPECT_EQ(launch.steps, 1000);
  EXPECT_EQ(launch.checkpoint_every, 100);  // nine checkpoints divide the run into ten parts
  EXPECT_EQ(launch.usd, 7.35);
  EXPECT_TRUE(launch.spot());
}

// The simulation's pairs of GPUs trained 256 images in each of 1,000 steps. The launched training has a replica on each
// GPU and trains 512 images a step, so it takes 500.
TEST(Launch, OfPairsTakesTheStepsThatItsImagesTake) {
  Json result = report::a_result();
  result["run"]["placement"] = "component-split";
  result["launch"]["global_batch"] = 256;
  result["time"]["images"] = 256'000;
  const Launch launch = read_launch(report::document_of(result), std::nullopt);
  EXPECT_EQ(launch.steps, 500);
  EXPECT_EQ(launch.checkpoint_every, 50);
  EXPECT_THAT(launch_summary(launch, {}), HasSubstr("Simulated with 256 images a step that count; here 512 do"));
  result["launch"]["global_batch"] = 512;
  EXPECT_EQ(read_launch(report::document_of(result), std::nullopt).steps, 1000);
}

// The run of the document's own seed took 1 h and 7.35 USD; the median over 20 seeds is 9 h.
TEST(Launch, OfSeveralSeedsQuotesTheirMedianAndInterval) {
  Json result = report::a_result();
  EXPECT_THAT(launch_summary(read_launch(report::document_of(result), std::nullopt), {}),
              HasSubstr("; simulated: 1:00:00, 7.35 USD. Quota"));
  result["seeds"] = {{"first", 7},
                     {"count", 20},
                     {"finished", 19},
                     {"met", 12},
                     {"time_s", {{"median", 32400}, {"p5", 18000}, {"p95", 108000}, {"interval", {14400, 118800}}}},
                     {"usd", {{"median", 9.5}, {"p5", 5}, {"p95", 30}, {"interval", {4.25, 33}}}}};
  const Launch launch = read_launch(report::document_of(result), std::nullopt);
  EXPECT_THAT(
      launch_summary(launch, {}),
      AllOf(HasSubstr("; simulated with 20 seeds, median and interval: 9:00:00 (4:00:00 .. 33:00:00), 9.50 (4.25 "
                      ".. 33.00) USD; 12 of 20 seeds meet the goals, 1 never finish. Quota"),
            testing::Not(HasSubstr("7.35 USD"))));
  result["seeds"]["time_s"]["interval"] = Json::array({nullptr, nullptr});
  EXPECT_THAT(launch_summary(read_launch(report::document_of(result), std::nullopt), {}),
              HasSubstr("median and interval: 9.50 (4.25 .. 33.00) USD;"));
}

// 1,000,000 images in batches of 32 on each of four GPUs: 7812.5 steps. The last batch size that was searched is 128.
TEST(Launch, OfAPlanTakesTheBatchThatWasChosen) {
  Json plan = report::a_plan();
  plan["request"]["batches_per_gpu"] = {32, 64, 128};
  plan["chosen"]["batch_per_gpu"] = 32;
  const Launch launch = read_launch(report::document_of(plan), std::nullopt);
  EXPECT_EQ(launch.batch_per_gpu, 32);
  EXPECT_EQ(launch.steps, 7813);
}

TEST(Launch, OfAPlan) {
  Json plan = report::a_plan();
  const Launch launch = read_launch(report::document_of(plan), std::nullopt);
  EXPECT_EQ(launch.steps, 1954);            // 1,000,000 / (4 x 128), rounded up
  EXPECT_EQ(launch.checkpoint_every, 195);  // a tenth of 6000 s
  EXPECT_EQ(launch.gpus_per_node, 4);
  plan["chosen"]["checkpoint"] = "daly";
  EXPECT_EQ(read_launch(report::document_of(plan), std::nullopt).checkpoint_every, 0);
  plan["chosen"].update({{"saved_every_s", 54}, {"images_per_s", 1000}});
  EXPECT_EQ(read_launch(report::document_of(plan), std::nullopt).checkpoint_every, 105);  // 54,000 / (4 x 128)
  plan["chosen"]["saved_every_s"] = 1e300;
  EXPECT_EQ(read_launch(report::document_of(plan), std::nullopt).checkpoint_every, 1954);  // at its end
  plan["chosen"] = nullptr;
  EXPECT_THAT(refused(plan), HasSubstr("nothing meets its goals"));
}

TEST(Launch, OfASweepTheCheapestThatMetItsGoals) {
  Json cheap = report::a_result(), late = report::a_result();
  cheap["cost"]["total_usd"] = "1.00";
  cheap["time"]["steps"] = 5;
  late["cost"]["total_usd"] = "0.50";
  late["goals"]["met"] = false;
  const Json sweep = report::a_sweep({report::a_result(), late, cheap});
  EXPECT_EQ(read_launch(report::document_of(sweep), std::nullopt).steps, 5);
  EXPECT_EQ(read_launch(report::document_of(sweep), std::nullopt).source, "result.json, run 2");
  EXPECT_EQ(read_launch(report::document_of(sweep), 0).steps, 1000);
  EXPECT_THAT(refused(sweep, 3), HasSubstr("--run: found 3, expected 0 to 2"));
  EXPECT_THAT(refused(report::a_sweep(Json::array())), HasSubstr("/runs: found no run"));
  EXPECT_THAT(refused(report::a_sweep(Json::array({late}))), HasSubstr("no run met its goals at a known cost"));
  EXPECT_THAT(refused(report::a_result(), 0), HasSubstr("is no sweep"));
}

TEST(Launch, NamesWhatIsWrong) {
  const auto with = [](const char* pointer, const Json& value) {
    Json result = report::a_result();
    result[JsonPointer(pointer)] = value;
    return refused(result);
  };
  EXPECT_THAT(with("/schema", "ganymede.result/2"), AllOf(HasSubstr("newer"), HasSubstr("ganymede.result/1")));
  EXPECT_THAT(with("/schema", "ganymede.rslt/1"), HasSubstr("ganymede.result/1"));
  EXPECT_THAT(with("/schema", 1), HasSubstr("/schema"));
  Json older = report::a_result();
  older.erase("launch");
  EXPECT_THAT(refused(older), HasSubstr("does not say what to rent"));
  EXPECT_THAT(with("/launch/pools", Json::array()), HasSubstr("found 0 pools"));
  EXPECT_THAT(with("/launch/pools/1", report::a_result()["launch"]["pools"][0]), HasSubstr("found 2 pools"));
  EXPECT_THAT(with("/launch/pools/0/nodes", 0), HasSubstr("/launch/pools/0/nodes"));
  EXPECT_THAT(with("/launch/pools/0/nodes", 1e300), HasSubstr("/launch/pools/0/nodes"));
  EXPECT_THAT(with("/launch/pools/0/provider", ""), HasSubstr("/launch/pools/0/provider"));
  EXPECT_THAT(with("/launch/pools/0/gpu", "TPU-v3"), HasSubstr("TPU-v3"));
  EXPECT_THAT(with("/launch/batch_per_gpu", "64"), HasSubstr("/launch/batch_per_gpu"));
  EXPECT_THAT(with("/time/steps", -1), HasSubstr("/time/steps"));
}

TEST(Launch, LabelsAreOfRfc1035) {
  EXPECT_EQ(label_of("dcgan-64-Standard_NC6s_v3", 40), "dcgan-64-standard-nc6s-v3");
  EXPECT_EQ(label_of("n1-standard-32+4xV100", 40), "n1-standard-32-4xv100");
  EXPECT_EQ(label_of("64--", 40), "g-64");
  EXPECT_EQ(label_of("", 40), "g");
  EXPECT_EQ(label_of("a-b", 2), "a");
  EXPECT_EQ(label_of(report::kHostile, 40), "x-touch-pwned-touch-pwned-pwned-true-2j");
  check_label("--name", "a-1", 40);
  for (const char* name : {"", "A", "a-", "1a", "a..b", "a--b"})
    EXPECT_THAT(message_of<ConfigError>([&] { check_label("--name", name, 40); }), HasSubstr("--name"));
}

TEST(Launch, SaysWhatTrainDoesOtherwise) {
  Launch launch = read_launch(report::document_of(report::a_result()), std::nullopt);
  const auto said = [&](const TrainCommand& command = {"", "builtin", "/c"}) {
    return launch_summary(launch, command);
  };
  EXPECT_THAT(said(), AllOf(HasSubstr("NCCL_ALGO=Ring"), HasSubstr("dataset celeba"), HasSubstr("every 100 steps")));
  launch.scheme = "torus";
  launch.policy = "spot-first";
  launch.mode = "gossip";
  launch.gpus_per_node = 2;
  launch.steps = 2'000'000'000;
  EXPECT_THAT(said(), AllOf(HasSubstr("torus, which NCCL does not have"), HasSubstr("policy spot-first"),
                            HasSubstr("mode gossip"), HasSubstr("Of the 4 GPUs"), HasSubstr("takes 1000000000")));
  EXPECT_EQ(train_environment(launch, {"", "builtin", "/c"})["STEPS"], "1000000000");
}

}  // namespace
}  // namespace ganymede::exports
