#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {
using testing::AllOf;
using testing::HasSubstr;

double launches_in(const Json& described) {
  double launches = 0;
  for (const auto& [phase, count] : described["launches"].items()) launches += count.get<double>();
  return launches;
}

// A step of our own model is as many launches as `train --describe` says.
TEST(Kernels, ListTheLaunchesOfAStep) {
  const Json step = Json::parse(run_program("kernels --gpu A100-40GB --model dcgan-64 --batch 128 --format json").out);
  const Json described = Json::parse(run_program("train --model dcgan-64 --describe --format json").out);
  double flops = 0, share = 0;
  EXPECT_EQ(step["step"]["launches"], launches_in(described));
  EXPECT_EQ(step["kernels"].size(), described["kernels"].size());
  for (const Json& kernel : step["kernels"]) {
    share += kernel["share"].get<double>();
    flops += kernel["flops"].get<double>();
    EXPECT_LE(kernel["interval_s"][0], kernel["seconds"]);
    EXPECT_GE(kernel["interval_s"][1], kernel["seconds"]);
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_GT(flops, 0);
  EXPECT_EQ(step["executor"], "graph");
  EXPECT_EQ(step["step"]["host_s"], 0);
  const auto high = step["step"]["interval_s"][1].get<double>(), low = step["step"]["interval_s"][0].get<double>();
  EXPECT_LT(high / low, 2.5);  // tens of percent, not a factor of four to each side
}

TEST(Kernels, ArePrintedAsTableAndAsCsv) {
  const Outcome table = run_program("kernels --gpu V100 --model resnet50 --batch 32 --precision fp16");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("kernel model"), HasSubstr("decided by"),
                               HasSubstr("32x3x224x224 -> 64, 7x7/2"), HasSubstr("arithmetic")));
  EXPECT_THAT(run_program("kernels --gpu V100 --model resnet50 --batch 32 --verbose").out,
              AllOf(HasSubstr("algorithm"), HasSubstr("GFLOP"), HasSubstr("tiles"), HasSubstr("waves")));
  const Outcome csv = run_program("kernels --gpu V100 --model resnet50 --batch 32 --format csv");
  EXPECT_THAT(csv.out, AllOf(testing::StartsWith("phase,layer,kind,shape,"), HasSubstr("convolution-wgrad")));
}

// Lists of layers have long names, several precisions and kernels that run in some steps only.
TEST(Kernels, FitInHundredColumns) {
  for (const std::string model : {"dcgan-64", "stylegan2", "cyclegan", "biggan --precision fp16"}) {
    const Outcome table = run_program("kernels --gpu V100 --batch 32 --model " + model);
    ASSERT_EQ(table.code, 0) << table.err;
    std::istringstream lines(table.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << model << ": " << line;
    EXPECT_THAT(table.out, HasSubstr("\ngenerator.backward\n")) << model;
  }
}

TEST(Kernels, OfClips) {
  const Scratch scratch;
  const std::string layers =
      scratch.write("clips.json", R"({ "schema": "ganymede.layers/1", "name": "clips", "networks": {
    "net": { "input": [3, 16, 64, 64], "layers": [ { "kind": "convolution", "out": 32, "kernel": [3, 4, 4], "stride": 2 } ] } },
    "step": [ { "network": "net", "pass": "forward" }, { "network": "net", "pass": "backward" },
              { "network": "net", "pass": "update" } ] })");
  const Outcome table = run_program("kernels --gpu V100 --batch 8 --model " + layers);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("conv 8x3x16x64x64 -> 32, 3x4x4/2"), HasSubstr("wgrad 8x3x16x64x64")));
}

TEST(Kernels, OfAFileAndOfAPrivateGpu) {
  const Scratch scratch;
  const std::string layers = scratch.write("m.json", R"({ "schema": "ganymede.layers/1", "name": "m", "networks": {
    "net": { "input": [8, 16, 16], "layers": [ { "kind": "convolution", "out": 8, "kernel": 3 } ] } },
    "step": [ { "network": "net", "pass": "forward" }, { "network": "net", "pass": "backward" },
              { "network": "net", "pass": "update" } ] })");
  const std::string gpu = R"("memory": "16GiB", "fp32": "20Tflop/s", "memory_bandwidth": "900GB/s")";
  const auto platform = [&](const std::string& more) {
    return scratch.write(
        "p.json", R"({ "schema": "ganymede.platform/1", "provider": "private", "name": "lab", "gpus": { "X": { )" +
                      gpu + more + R"( } }, "instances": { "node": { "gpu": "X", "gpus": 1 } } })");
  };
  const std::string command = "kernels --model " + layers + " --batch 4 --gpu X --catalog ";
  const Outcome known = run_program(command + platform(R"(, "multiprocessors": 90)"));
  EXPECT_EQ(known.code, 0) << known.err;
  const Outcome unknown = run_program(command + platform(""));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("p.json: /gpus/X"), HasSubstr("multiprocessors")));
}

TEST(Kernels, NameWhatIsNotKnown) {
  const Outcome gpu = run_program("kernels --gpu V10 --model dcgan-64");
  EXPECT_EQ(gpu.code, 2);
  EXPECT_THAT(gpu.err, AllOf(HasSubstr("--gpu V10"), HasSubstr("did you mean \"V100\"")));
  EXPECT_THAT(run_program("kernels --gpu A100-81GB --model dcgan-64").err, HasSubstr("--gpu A100-81GB: not known"));
  for (const char* named : {"V100-32GB", "'NVIDIA A100-SXM4-80GB'", "'NVIDIA H100 80GB HBM3'", "'Tesla V100-SXM2-32GB'",
                            "'Tesla V100-PCIE-32GB'", "'Tesla V100-DGXS-32GB'", "'NVIDIA GH200 480GB'"})
    EXPECT_EQ(run_program(std::string("kernels --model dcgan-64 --gpu ") + named).code, 0) << named;
  for (const char* other : {"V100-64GB", "'NVIDIA A100-SXM4-81GB'", "'RTX 4090 Laptop'"})
    EXPECT_EQ(run_program(std::string("kernels --model dcgan-64 --gpu ") + other).code, 2) << other;
  EXPECT_THAT(run_program("plan --model dcgan-64 --images 1M --step 0.1s --batch 64 --on A100-81GB").err,
              HasSubstr("found \"A100-81GB\", expected a GPU whose data sheet is known"));
  const Outcome model = run_program("kernels --gpu V100 --model dcgan-65");
  EXPECT_EQ(model.code, 2);
  EXPECT_THAT(model.err, HasSubstr("did you mean \"dcgan-64\""));
  EXPECT_EQ(run_program("kernels --gpu V100").code, 2);
  EXPECT_EQ(run_program("kernels --gpu V100 --model dcgan-64 --compare x.csv").code, 2);
  const Outcome batch = run_program("kernels --compare x.csv --batch 4");
  EXPECT_EQ(batch.code, 2);
  EXPECT_THAT(batch.err, AllOf(HasSubstr("--compare"), HasSubstr("--batch")));
  EXPECT_THAT(run_program("kernels --gpu V100 --model dcgan-64 --precision tf32").err,
              HasSubstr("--precision tf32: V100 has no tensor cores for it"));
  EXPECT_THAT(run_program("kernels --catalog gcp --gpu A100 --model dcgan-64").err,
              HasSubstr("did you mean \"A100-40GB\""));
}

// On tensor cores a convolution and what follows are one kernel.
TEST(Kernels, AreThoseOfThePrecision) {
  for (const std::string precision : {"fp32", "tf32", "bf16"}) {
    const Json step =
        Json::parse(run_program("kernels --gpu H200 --model dcgan-64 --format json --precision " + precision).out);
    const Json described =
        Json::parse(run_program("train --model dcgan-64 --describe --format json --precision " + precision).out);
    EXPECT_EQ(step["step"]["launches"], launches_in(described)) << precision;
  }
}

// The columns of published measurements; the answer has exactly the keys that are promised.
TEST(Kernels, AreComparedWithMeasuredOnes) {
  const Scratch scratch;
  const std::string file = scratch.write("gemm.csv",
                                         "gpu,precision,m,n,k,trans_a,trans_b,time_us\n"
                                         "V100-SXM2 (DGX-1),fp32,1760,7000,1760,N,N,3375\n"
                                         "V100-SXM2 (DGX-1),fp32,5124,9124,2560,N,T,18044\n"
                                         "P100,fp32,5124,9124,2560,N,N,25930\n");
  const Outcome outcome = run_program("kernels --compare " + file + " --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json kinds = Json::parse(outcome.out);
  EXPECT_EQ(kinds.size(), 1U);
  ASSERT_EQ(kinds["kinds"].size(), 2U);
  for (const Json& one : kinds["kinds"]) {
    EXPECT_EQ(one.size(), 6U);
    EXPECT_EQ(one["kind"], "product");
    EXPECT_LT(one["mean_error"], 1);
    EXPECT_LT(one["sum20_error"], 1);
    EXPECT_LE(one["held"], 1);
  }
  const Json one_gpu = Json::parse(run_program("kernels --compare " + file + " --gpu V100 --format json").out);
  ASSERT_EQ(one_gpu["kinds"].size(), 1U);
  EXPECT_EQ(one_gpu["kinds"][0]["kernels"], 2);
  EXPECT_THAT(run_program("kernels --compare " + file + " --gpu T4").err, HasSubstr("no kernel of it"));
}

// Each is an error with the place where it was found, not a figure.
TEST(Kernels, RefuseCsvThatIsWrong) {
  const Scratch scratch;
  const auto error = [&](const std::string& rows) {
    const Outcome outcome = run_program("kernels --compare " +
                                        scratch.write("m.csv", "gpu,precision,m,n,k,trans_a,trans_b,time_us\n" + rows));
    EXPECT_EQ(outcome.code, 2) << rows;
    return outcome.err;
  };
  EXPECT_THAT(error("V100,fp32,10,10\n"), HasSubstr("m.csv: line 2"));
  EXPECT_THAT(error("V100,fp32,0,10,10,N,N,5\n"), HasSubstr("line 2"));
  EXPECT_THAT(error("V100,fp32,-3,10,10,N,N,5\n"), HasSubstr("line 2"));
  EXPECT_THAT(error("V100,fp32,10,10,10,N,N,5us\n"), HasSubstr("line 2"));
  EXPECT_THAT(error("GPU-Y,fp32,10,10,10,N,N,5\n"), HasSubstr("line 2"));
  const Outcome cut =
      run_program("kernels --compare " + scratch.write("cut.csv", "gpu,op,rows,cols,time_us\nV100,add,1000,1000,1"));
  EXPECT_EQ(cut.code, 0);
  EXPECT_THAT(cut.err, HasSubstr("cut.csv: line 2: ends without a line break; if the file was cut short"));
  const Outcome columns =
      run_program("kernels --compare " + scratch.write("c.csv", "gpu,op,rows,cols,time\nV100,add,1,1,5\n"));
  EXPECT_EQ(columns.code, 2);
  EXPECT_THAT(columns.err, AllOf(HasSubstr("c.csv: line 1: found no column \"time_us\" of the set elementwise"),
                                 HasSubstr("microseconds")));
}

}  // namespace
}  // namespace ganymede::cli
