// ganymede validate and quality curves as a user runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
TEST(ValidateCommand, RunsEveryStudyAndKeepsItsPromises) {
  NOT_SANITIZED("repeats every study, which other tests run once");
  const Outcome all = run_program("validate");
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.out, AllOf(HasSubstr("stylegan2_ada_v100"), HasSubstr("kubernetes_platforms"),
                             HasSubstr("promise kept"), HasSubstr("ideal"), HasSubstr("NOT BETTER than")));
  const Json result = Json::parse(run_program("validate --format json").out);
  EXPECT_EQ(result["schema"], "ganymede.validation-result/1");
  EXPECT_EQ(result["studies"].size(), 20U);
  // Stated 90 % intervals have the width that holds sources which are left out. They hold more of those that were seen.
  EXPECT_GE(result["summary"]["held_by_interval"].get<double>(), 0.85);
  EXPECT_LE(result["summary"]["held_by_interval"].get<double>(), 0.97);
  EXPECT_THAT(all.out, AllOf(HasSubstr("distributed_gans_2025 (not in the totals)"),
                             HasSubstr("one machine, measured batch, eager"), HasSubstr("fitted without it")));
}

TEST(ValidateCommand, IsTheSameBytesWithAnyNumberOfJobs) {
  NOT_SANITIZED("repeats every study, which other tests run once");
  EXPECT_EQ(run_program("validate --format json --jobs 1").out, run_program("validate --format json --jobs 2").out);
}

TEST(ValidateCommand, ShowsOneStudyWithItsAssumptions) {
  const Outcome one = run_program("validate multi_gpu_mirrored_2023");
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(one.out, AllOf(HasSubstr("assumed: "), HasSubstr("the paper's equations"), HasSubstr("other reading"),
                             HasSubstr("compute fraction")));
  const Outcome csv = run_program("validate multi_gpu_mirrored_2023 --format csv");
  EXPECT_THAT(csv.out, HasSubstr("study,series,cell,unit,role,measured,predicted"));
}

TEST(ValidateCommand, NamesTheNearestStudy) {
  const Outcome wrong = run_program("validate stylegan2_ada_v10");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("did you mean \"stylegan2_ada_v100\"?"), HasSubstr("kubernetes_platforms")));
  EXPECT_EQ(run_program("validate no-such-file.json").code, 2);
}

TEST(ValidateCommand, ABrokenPromiseIsExitCode4) {
  const Scratch scratch;
  const std::string study =
      R"({ "schema": "ganymede.validation/1", "name": "mine", "title": "t", "source": "s", "assumptions": [],
    "machines": { "m": { "catalog": "aws", "instance": "p3.16xlarge" } },
    "steps": { "s": { "phases": [ { "name": "p", "share": 1 } ], "buckets": [ { "network": "n", "bytes": 1e6, "after": "p" } ] } },
    "series": [ { "name": "x", "unit": "s", "machine": "m", "step": "s", "scheme": "nccl", "executor": "graph",
                  "cells": [ { "gpus": 1, "batch": 1, "measured": 1, "role": "fit" },
                             { "gpus": 8, "batch": 1, "measured": 2, "role": "predict" } ] } ],
    "promises": [ { "mean_error": 0.1 } ] })";
  const Outcome broken = run_program("validate " + scratch.write("mine.json", study));
  EXPECT_EQ(broken.code, 4);
  EXPECT_THAT(broken.out, HasSubstr("promise BROKEN"));
  std::string wrong = study;
  wrong.replace(wrong.find("\"after\": \"p\""), 12, "\"after\": \"q\"");
  const Outcome refused = run_program("validate " + scratch.write("wrong.json", wrong));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("wrong.json: /steps/s/buckets/0/after: found \"q\""));
}

TEST(TrainCommand, AddsToAQualityCurve) {
  const Scratch scratch;
  const std::string file = (scratch / "curve.json").string();
  const std::string train = "train --model mlp-gan --quality 128 --quality-every 2 --quiet --quality-curve " + file;
  ASSERT_EQ(run_program(train + " --steps 4 --batch 16").code, 0);
  ASSERT_EQ(run_program(train + " --steps 4 --batch 32").code, 0);
  ASSERT_EQ(run_program(train + " --steps 6 --batch 32").code, 0);  // in place of the one before
  const Json curves = Json::parse(content_of(scratch / "curve.json"));
  ASSERT_EQ(curves["curves"].size(), 2U);
  EXPECT_EQ(curves["curves"][0]["batch"], 16);
  ASSERT_EQ(curves["curves"][0]["points"].size(), 2U);
  EXPECT_EQ(curves["curves"][0]["points"][1]["images"], 64);
  EXPECT_EQ(curves["curves"][1]["points"].size(), 3U);
  EXPECT_GT(curves["curves"][1]["points"][0]["fid"].get<double>(), 0);
  EXPECT_EQ(
      run_program("train --model dcgan-28 --steps 4 --quality 128 --quality-every 2 --quality-curve " + file).code, 2);
  EXPECT_EQ(run_program("train --model mlp-gan --steps 4 --quality-curve " + file).code, 2);
}

TEST(CalibrateCommand, FitsPhaseTimeAgainstBatch) {
  const Scratch scratch;
  const std::string trace = (scratch / "trace.json").string();
  const Outcome outcome = run_program("calibrate --model mlp-gan --batch 2,4,8,16 --steps 8 -o " + trace);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Each batch size predicted from the others: error"),
                                 HasSubstr("convolutions"), HasSubstr("a launch"), HasSubstr("copy from the host"),
                                 HasSubstr("In \"gpus\" of a platform file")));
  const Json written = Json::parse(content_of(scratch / "trace.json"));
  EXPECT_TRUE(written["device"].contains("convolution"));
  EXPECT_EQ(written["batches"].size(), 4U);
  for (const Json& batch : written["batches"]) EXPECT_EQ(batch["wall_s"].size(), 8U);
}

TEST(CalibrateCommand, RefusesASizeTwice) {
  const Scratch scratch;
  const Outcome twice = run_program("calibrate --batch 16,32,16 --steps 4 -o " + (scratch / "t.json").string());
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("--batch: found 16 twice"));
  EXPECT_EQ(scratch.files(), 0U);
}

}  // namespace
}  // namespace ganymede::cli
