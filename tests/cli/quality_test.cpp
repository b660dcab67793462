// `quality fit` and `quality forecast`, as people call them.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/file.hpp"
#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
class Quality : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text = "") {
    const std::string path = (folder_.path() / name).string();
    if (!text.empty()) write_file(path, text);
    return path;
  }
  /// Points of some trainings of one kind, whose floors differ.
  std::string points() {
    std::string text = "run,images,fid,dataset,fid_reference,fid_images,backbone,batch\n";
    for (int run = 0; run < 5; ++run)
      for (double images = 2e5; images < 5e7; images *= 1.5)
        text += "run-" + std::to_string(run) + "," + std::to_string(images) + "," +
                std::to_string(8 + run + 90 / (1 + std::pow(images / 3e6, 1.3))) + ",faces,train,50000,dcgan,64\n";
    return file("points.csv", text);
  }
  TemporaryFolder folder_;
};

const std::string kKnown =
    " --dataset CIFAR10 --reference 'test 10000' --backbone big_resnet --conditioning projgan --loss hinge --diffaug 0 "
    "--ada 0 --batch 64 --quiet";

TEST_F(Quality, AKindAloneHasAnAnswer) {
  const Outcome json = run_program("quality forecast --fid 20,9 --format json" + kKnown);
  ASSERT_EQ(json.code, 0) << json.err;
  const Json out = Json::parse(json.out);
  EXPECT_EQ(out["points"], 0);
  ASSERT_EQ(out["notes"].size(), 1U);
  EXPECT_EQ(out["notes"][0], "the forecast rests on 11 recorded trainings of CIFAR10 (test 10000), 8 with big_resnet");
  const Json& targets = out["targets"];
  EXPECT_GT(targets[0]["probability"], targets[1]["probability"]);
  // BigGAN on CIFAR-10 is at 20 after some millions of images: of the order, not more, is asked here.
  EXPECT_GT(targets[0]["images"]["median"].get<double>(), 1e6);
  EXPECT_LT(targets[0]["images"]["median"].get<double>(), 3e7);
  EXPECT_THAT(run_program("quality forecast --fid 20" + kKnown).out, AllOf(HasSubstr("never"), HasSubstr("best FID")));
}

TEST_F(Quality, WhatTurnsImagesIntoImagesHasNoForecast) {
  for (const char* model : {"cyclegan-32", "srgan-32", "pix2pix", "CycleGAN-32", "real-esrgan", "spade"})
    for (const char* command : {"forecast", "policies"}) {
      const Outcome refused = run_program(fmt::format("quality {} --fid 20 --model {}", command, model));
      EXPECT_EQ(refused.code, 2) << model;
      EXPECT_THAT(refused.err, HasSubstr(fmt::format("--model: {} turns images into images", model)));
      EXPECT_THAT(refused.err, HasSubstr("--curve FILE"));
    }
  for (const char* recipe : {"esrgan", "spade"}) {
    const Outcome refused = run_program(fmt::format("plan --recipe {} --fid 20 --deadline 10h", recipe));
    EXPECT_EQ(refused.code, 2) << recipe;
    EXPECT_THAT(refused.err, AllOf(HasSubstr(" turns images into images"), HasSubstr("--curve")));
  }
}

TEST_F(Quality, AFitIsWhatForecastsOfOnesOwnTrainingsTake) {
  const std::string curve = file("curve.json");
  const Outcome fit = run_program("quality fit " + points() + " --quiet -o " + curve);
  ASSERT_EQ(fit.code, 0) << fit.err;
  const Outcome forecast = run_program("quality forecast " + points() +
                                       " --run run-2 --fid 30,9 --images 4e7 --curve " + curve + " --format json");
  ASSERT_EQ(forecast.code, 0) << forecast.err;
  const Json out = Json::parse(forecast.out);
  EXPECT_EQ(out["kind"]["dataset"], "faces (train 50000)");
  EXPECT_TRUE(out["targets"][0]["reached"].get<bool>());
  // 30 = 10 + 90 / (1 + (x / 3e6)^1.3)
  EXPECT_NEAR(out["targets"][0]["images"]["median"].get<double>(), 3e6 * std::pow(3.5, 1 / 1.3), 2e5);
  EXPECT_LT(out["targets"][1]["probability"].get<double>(), 0.3);  // the floor is 10
  EXPECT_EQ(run_program("quality fit " + points() + " --quiet").out, run_program("quality fit " + points()).out);
}

TEST_F(Quality, OwnTrainingsLogTheirFid) {
  const std::string log = file("run.jsonl");
  const Outcome trained = run_program(
      "train --model mlp-gan --steps 60 --batch 32 --quiet --quality 128 --quality-every 20 --metrics " + log);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome forecast = run_program("quality forecast " + log + " --fid 50 --format json");
  ASSERT_EQ(forecast.code, 0) << forecast.err;
  const Json out = Json::parse(forecast.out);
  EXPECT_EQ(out["points"], 3);
  EXPECT_EQ(out["images_seen"], 60 * 32);
  EXPECT_EQ(out["kind"]["backbone"], "mlp");
  EXPECT_THAT(out["kind"]["dataset"].get<std::string>(), HasSubstr("glyph-classifier"));
  EXPECT_THAT(out["notes"].dump(), HasSubstr("no recorded training has the dataset"));
  // The images that FID compares with cannot be claimed to be others.
  const Outcome mixed = run_program("quality forecast " + log + " --fid 50 --reference 'test 10000'");
  EXPECT_EQ(mixed.code, 2);
  EXPECT_THAT(mixed.err, AllOf(HasSubstr("--reference"), HasSubstr("cannot be compared")));
}

const std::string kByQuality =
    "plan --model dcgan-64 --dataset CIFAR10 --reference 'test 10000' --batch 64 --catalog gcp --gpu L4 --max-gpus 1 "
    "--market on-demand --quiet --budget 300USD ";

TEST_F(Quality, APlanMayTrainToAnFid) {
  const std::string plan = file("plan.json");
  const Outcome planned = run_program(kByQuality + "--fid 60 --certainty 0.3 --save " + plan);
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out,
              AllOf(HasSubstr("An FID of 60 takes"), HasSubstr("never do"), HasSubstr("One point of FID")));
  const Json out = Json::parse(read_file(plan));
  const Json& chosen = out["chosen"];
  const Json& images = chosen["quality"]["images"];
  EXPECT_EQ(out["request"]["fid"], 60);
  // A training that never gets there does not meet the goals, whatever is paid.
  EXPECT_LE(chosen["probability"].get<double>(), 1 - chosen["quality"]["never"].get<double>() + 1e-6);
  // The training is at least as uncertain as the images; the boot is not.
  const double boot_s =
      chosen["time_s"]["median"].get<double>() - images["median"].get<double>() / chosen["images_per_s"].get<double>();
  EXPECT_GT(boot_s, 10);
  const auto ratio = [](const Json& of, double certain) {
    return (of["interval"][1].get<double>() - certain) / (of["interval"][0].get<double>() - certain);
  };
  EXPECT_GT(ratio(chosen["time_s"], boot_s), ratio(images, 0) * 0.999);
  EXPECT_LT(ratio(chosen["time_s"], 0), ratio(images, 0));
  EXPECT_LT(ratio(chosen["usd"], 0), ratio(images, 0));
  // The chosen scenario is the same training.
  const Outcome run = run_program("simulate " + plan + " --format json --quiet");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NEAR(Json::parse(run.out)["time"]["images"].get<double>(), images["median"].get<double>(), 1.5);
  EXPECT_THAT(Json::parse(run.out)["provenance"]["warnings"].dump(), HasSubstr("an FID of 60 takes"));
  ASSERT_EQ(run_program("report " + plan + " -o " + file("plan.html")).code, 0);
  EXPECT_THAT(read_file(file("plan.html")), AllOf(HasSubstr("FID against dollars"), HasSubstr("polygon")));
}

TEST_F(Quality, APlanOfImagesIsThatOfTheSameMedianTraining) {
  const Outcome by_fid = run_program(kByQuality + "--fid 60 --certainty 0.3 --format json");
  ASSERT_EQ(by_fid.code, 0) << by_fid.err;
  const Json chosen = Json::parse(by_fid.out)["chosen"];
  const auto images = static_cast<long long>(std::ceil(chosen["quality"]["images"]["median"].get<double>()));
  const Outcome by_images = run_program(
      "plan --model dcgan-64 --batch 64 --catalog gcp --gpu L4 --max-gpus 1 --market on-demand --quiet --budget 300USD "
      "--certainty 0.3 --format json --images " +
      std::to_string(images));
  ASSERT_EQ(by_images.code, 0) << by_images.err;
  const Json same = Json::parse(by_images.out)["chosen"];
  EXPECT_EQ(same["time_s"]["median"], chosen["time_s"]["median"]);
  EXPECT_LT(same["time_s"]["interval"][1], chosen["time_s"]["interval"][1]);
}

TEST_F(Quality, APlanChoosesHowOftenItIsEvaluated) {
  const std::string plan = file("plan.json"), with = "--fid 60 --certainty 0.3 --quality-parallel 5min ";
  const Outcome planned = run_program(kByQuality + with + "--quality-every best --save " + plan);
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("It is evaluated every"));
  const Json chosen = Json::parse(read_file(plan))["chosen"];
  const Json& checks = chosen["quality"]["checks"];
  EXPECT_EQ(checks["pause_s"], 300);
  const auto every = checks["every_images"].get<double>();
  const auto usd_with = [&](double images) {
    const Outcome other = run_program(kByQuality + with + "--format json --quality-every '" +
                                      std::to_string(std::llround(images)) + " images'");
    EXPECT_EQ(other.code, 0) << other.err;
    return Json::parse(other.out)["chosen"]["usd"]["median"].get<double>();
  };
  // Rarer evaluations train far beyond the FID, more frequent ones pause for longer: both cost more.
  EXPECT_GT(usd_with(4 * every), chosen["usd"]["median"].get<double>());
  EXPECT_GT(usd_with(every / 4), chosen["usd"]["median"].get<double>());
  const Outcome images = run_program(
      "plan --model dcgan-64 --images 1000000 --quality-every best --quality-fixed 30s --catalog gcp --gpu L4 --quiet");
  EXPECT_EQ(images.code, 2);
  EXPECT_THAT(images.err, HasSubstr("needs an FID"));
  const Outcome no_time = run_program(kByQuality + "--fid 60 --quality-every best");
  EXPECT_EQ(no_time.code, 2);
  EXPECT_THAT(no_time.err, AllOf(HasSubstr("--quality-every"), HasSubstr("/evaluation/fixed")));
}

TEST_F(Quality, AWatchedRunIsForecastByItsFid) {
  const std::string plan = file("plan.json");
  ASSERT_EQ(run_program(kByQuality + "--fid 60 --certainty 0.3 --save " + plan).code, 0);
  std::string lines = R"({"schema":"ganymede.run-log/1","model":"dcgan-64","gpus":1,"batch":64,"steps":100000,)"
                      R"("unix_s":1763900000})"
                      "\n";
  const auto watched = [&](const std::string& more) {
    lines += more;
    const Outcome out =
        run_program("watch --plan " + plan + " --log " + file("run.jsonl", lines) + " --format json --quiet");
    EXPECT_EQ(out.code, 0) << out.err;
    return Json::parse(out.out)["quality"];
  };
  const auto at = [](int step, double fid, const char* reference) {
    return R"({"quality":{"fid":)" + std::to_string(fid) + R"(,"reference":")" + reference + R"("},"step":)" +
           std::to_string(step) + R"(,"unix_s":)" + std::to_string(1763900000 + step / 10) + "}\n";
  };
  const auto width = [](const Json& of) {
    return of["images"]["interval"][1].get<double>() / of["images"]["interval"][0].get<double>();
  };
  const Json first = watched("");
  EXPECT_EQ(first["points"], 0);
  const Json some = watched(at(4000, 150, "test 10000") + at(8000, 105, "test 10000") + at(12000, 84, "test 10000") +
                            at(16000, 74, "test 10000"));
  EXPECT_EQ(some["points"], 4);
  EXPECT_EQ(some["best_seen"], 74);
  EXPECT_LT(width(some), width(first));
  EXPECT_GT(some["usd"]["median"], 0);
  const Json there = watched(at(40000, 58, "test 10000"));
  EXPECT_TRUE(there["reached"].get<bool>());
  const Outcome text = run_program("watch --plan " + plan + " --log " + file("run.jsonl"));
  EXPECT_THAT(text.out, HasSubstr("FID 60 is reached"));
  const std::string other = R"({"schema":"ganymede.run-log/1","gpus":1,"batch":64,"steps":100000,"unix_s":1763900000})";
  const Outcome mixed = run_program("watch --plan " + plan + " --log " +
                                    file("other.jsonl", other + "\n" + at(4000, 140, "train 50000")));
  EXPECT_EQ(mixed.code, 2);
  EXPECT_THAT(mixed.err, AllOf(HasSubstr("other.jsonl"), HasSubstr("cannot be compared")));
}

TEST_F(Quality, PoliciesHaveTheirBillAndAForecastItsPicture) {
  const Outcome out = run_program(
      "quality policies --fid 60 --model dcgan-64 --dataset CIFAR10 --reference "
      "'test 10000' --batch 64 --usd-per-million 2 --seeds 3 --format json");
  ASSERT_EQ(out.code, 0) << out.err;
  const Json all = Json::parse(out.out);
  ASSERT_EQ(all["policies"].size(), 4);
  for (const Json& one : all["policies"])
    EXPECT_NEAR(one["usd"].get<double>(), 2e-6 * one["mean_images"].get<double>(), 1e-6);
  EXPECT_THAT(run_program("quality policies --fid 60 --model dcgan-64").out, HasSubstr("restart-if-diverged"));
  EXPECT_EQ(run_program("quality policies --fid 0.001 --model dcgan-64").code, 3);
  EXPECT_EQ(run_program("quality policies --fid 60 --seeds 0").code, 2);
  const std::string svg = file("band.svg");
  ASSERT_EQ(run_program("quality forecast --fid 20 --plot " + svg + kKnown).code, 0);
  EXPECT_THAT(read_file(svg), AllOf(HasSubstr("<svg"), HasSubstr("polygon"), HasSubstr("real images")));
}

TEST_F(Quality, ASweepShowsTheImagesToTheFidByTheBatch) {
  const std::string study = file("study.json", R"({"schema": "ganymede.study/1", "name": "to-60",
      "workload": {"trace": "recorded:dcgan-64-cpu", "batch_per_gpu": 64,
                   "quality": {"fid": 60, "dataset": "CIFAR10", "reference": "test 10000"}},
      "platforms": [{"catalog": "gcp", "region": "us-central1", "gpu": "V100"}],
      "gpus": [1, 4], "schemes": ["ring"], "seeds": {"first": 1, "count": 2}})");
  const Outcome table = run_program("sweep " + study + " --quiet");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("FID 60"), HasSubstr("images to it"), HasSubstr("never")));
  const Json sweep = Json::parse(run_program("sweep " + study + " --quiet --format json").out);
  ASSERT_EQ(sweep["groups"].size(), 2);
  const Json &one = sweep["groups"][0]["quality"], &four = sweep["groups"][1]["quality"];
  EXPECT_GT(four["images"]["median"], one["images"]["median"]);
  EXPECT_LT(four["never"], one["never"]);
  EXPECT_EQ(sweep["runs"][0]["quality"], one);
  const std::string csv = run_program("sweep " + study + " --quiet --format csv").out;
  EXPECT_THAT(csv, AllOf(HasSubstr(",fid,fid_images,fid_never"), HasSubstr(",60.0," + one["images"]["median"].dump())));
}

TEST_F(Quality, AnFidThatIsHardlyEverReachedHasNoPlan) {
  const Outcome unlikely = run_program(kByQuality + "--fid 40 --certainty 0.95");
  EXPECT_EQ(unlikely.code, 3) << unlikely.out;
  const Outcome never = run_program(kByQuality + "--fid 1");
  EXPECT_EQ(never.code, 3) << never.out;
  const Outcome zero = run_program(kByQuality + "--fid 0");
  EXPECT_EQ(zero.code, 2);
  EXPECT_THAT(zero.err, HasSubstr("--fid: found 0, expected a number above 0"));
  EXPECT_EQ(run_program(kByQuality + "--fid few").code, 2);
  EXPECT_EQ(run_program(kByQuality + "--fid 62.5 --certainty 0.3").code, 0);
  EXPECT_EQ(run_program(kByQuality + "--fid 60 --images 100").code, 2);
  EXPECT_EQ(run_program(kByQuality + "--fid 60 --curve " + file("absent.json")).code, 2);
}

TEST_F(Quality, APlanThatAsksForMoreThanTrainingsReachSimulatesNothing) {
  const Outcome plan = run_program(
      "plan --model dcgan-64 --fid 60 --dataset CIFAR10 --reference 'test 10000' --certainty 0.9 --catalog gcp --gpu "
      "L4 "
      "--max-gpus 2 --format json");
  EXPECT_EQ(plan.code, 3);
  EXPECT_THAT(plan.err,
              ContainsRegex("the nearest is .*: [0-9]+ % of trainings with a batch of [0-9]+ get to an FID of "
                            "60, asked are 90 %"));
  const Json searched = Json::parse(plan.out)["searched"];
  EXPECT_EQ(searched["simulated"], 0);
  EXPECT_GT(searched["too_rare"], 0);
}

TEST_F(Quality, WhatSaysLittleHasAWideAnswerThatSaysWhy) {
  const auto answer = [&](const std::string& text, const char* why) {
    const Outcome out = run_program("quality forecast " + file("points.csv", "images,fid\n" + text) +
                                    " --fid 20,2 --format json" + kKnown);
    EXPECT_EQ(out.code, 0) << out.err;
    const Json json = Json::parse(out.out);
    EXPECT_THAT(json["notes"].dump(), HasSubstr(why));
    EXPECT_THAT(json["notes"].dump(), HasSubstr("below the best of all recorded trainings"));
    EXPECT_LT(json["targets"][1]["probability"], 0.1);
    const Json& images = json["targets"][0]["images"]["interval"];
    return images[1].get<double>() / images[0].get<double>();
  };
  const double known = answer("200000,120\n400000,95\n800000,64\n1600000,38\n2000000,32\n", "below");
  EXPECT_GT(answer("200000,120\n", "one point alone"), known);
  EXPECT_GT(answer("200000,100\n400000,110\n600000,120\n", "has risen"), known);
  EXPECT_GT(answer("2000,200\n4000,190\n6000,180\n", "wrong if these are steps"), known);
  const std::string back = file("back.csv", "images,fid\n200000,50\n400000,40\n600000,35\n500000,41\n700000,30\n");
  EXPECT_THAT(run_program("quality forecast " + back + " --fid 20").err, HasSubstr("set back to 5e+05 images"));
}

TEST_F(Quality, BadInputIsRefusedWithItsPlace) {
  const std::string header = R"({"schema":"ganymede.run-log/1","gpus":1,"batch":64,"steps":1000,"unix_s":0})";
  const auto fails = [&](const std::string& arguments, const char* with) {
    const Outcome out = run_program("quality " + arguments);
    EXPECT_EQ(out.code, 2) << arguments;
    EXPECT_THAT(out.err, HasSubstr(with)) << arguments;
  };
  fails("forecast --fid 0", "--fid");
  fails("forecast", "--fid");
  fails("forecast " + file("none.csv") + " --fid 20", "none.csv");
  fails("forecast " + points() + " --fid 20", "--run");
  fails("forecast " + points() + " --fid 20 --run run-9", "run-");
  fails("forecast " + points() + " --fid 20 --curve " + points(), "points.csv");
  fails("forecast " + file("zero.csv", "images,fid\n1000,0\n") + " --fid 20", "line 2");
  fails("forecast " + file("a.jsonl", header + "\n") + " --fid 20", "no line with \"quality\"");
  fails("forecast " + file("b.jsonl", header + "\n" + R"({"quality":{"fid":-1},"step":10,"unix_s":1})" + "\n") +
            " --fid 20",
        "line 2: /quality/fid");
  fails("forecast " +
            file("c.jsonl", header + "\n" + R"({"quality":{"fid":9,"reference":"a"},"step":10,"unix_s":1})" + "\n" +
                                R"({"quality":{"fid":8,"reference":"b"},"step":20,"unix_s":2})" + "\n") +
            " --fid 20",
        "cannot be compared");
  fails("forecast " + file("mixed.csv", "images,fid,reference\n200000,80,test\n400000,70,train\n") + " --fid 20",
        "line 3: reference");
  fails("forecast " + file("steps.csv", "step,images,fid\n2000,2000,80\n4000,4000,70\n") + " --fid 20 --batch 64",
        "line 3: images: found as many images as steps");
  fails("fit " + file("one.csv", "images,fid\n1000,80\n2000,60\n"), "at least two");
}

}  // namespace
}  // namespace ganymede::cli
