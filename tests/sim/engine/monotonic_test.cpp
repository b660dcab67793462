// For every scheme of the table, more bandwidth is never slower and more latency never faster. Adding is free here:
// otherwise a latency that delays one of two messages could save time, since the first would be added while the second
// still arrives.

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "engines.hpp"
#include "sim/collectives/allreduce.hpp"
#include "test_platform.hpp"

namespace ganymede::sim {
namespace {

struct Fabric {
  const char* name;
  const char* node;    ///< with {B} for a bandwidth and {L} for a latency
  const char* fabric;  ///< with the same placeholders
  int nodes;
};

constexpr Fabric kFabrics[] = {
    {"star", R"("gpus": 1, "nic": {"bandwidth": "{B}", "latency": "{L}"})", R"({"kind": "switch"})", 8},
    {"clustered", R"("gpus": 4, "gpu_links": {"kind": "nvlink", "bandwidth": "{B}", "latency": "{L}"},
                     "nic": {"bandwidth": "{B}", "latency": "{L}"})",
     R"({"kind": "switch", "latency": "{L}"})", 3},
    {"switched", R"("gpus": 4, "gpu_links": {"kind": "nvswitch", "bandwidth": "{B}", "latency": "{L}", "reduces": true},
                    "nic": {"count": 2, "bandwidth": "{B}", "latency": "{L}"})",
     R"({"kind": "switch", "reduces": true})", 2},
    {"tcp", R"("gpus": 2, "host_link": {"bandwidth": "{B}", "latency": "{L}"},
               "nic": {"bandwidth": "{B}", "latency": "{L}", "transport": "tcp", "gpu_direct": false})",
     R"({"kind": "switch"})", 4},
    {"torus", R"("gpus": 1, "nic": {"bandwidth": "{B}", "latency": "{L}"})",
     R"({"kind": "torus", "dimensions": [4, 4], "bandwidth": "{B}", "latency": "{L}"})", 16}};

std::string filled(std::string text, const std::string& bandwidth, const std::string& latency) {
  for (const auto& [name, value] : std::map<std::string, std::string>{{"{B}", bandwidth}, {"{L}", latency}})
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) text.replace(at, name.size(), value);
  return text;
}

class Monotonic : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(All, Monotonic, testing::ValuesIn(kFabrics),
                         [](const auto& test) { return std::string(test.param.name); });

/// The time on a fabric of the plan that was made for the usual one; nullopt if the scheme cannot serve it. (NCCL would
/// choose another plan for another fabric, which may be a worse one.)
std::optional<double> time_on(const Fabric& of, const AllReduceScheme& scheme, std::int64_t bytes,
                              const std::string& bandwidth, const std::string& latency) {
  const auto platform = [&](const std::string& b, const std::string& l) {
    return platform_of(filled(of.node, b, l), filled(of.fabric, b, l), kFreeAdding);
  };
  const platforms::Platform usual = platform("10GB/s", "5us"), other = platform(bandwidth, latency);
  const FabricGraph planned(usual, usual.instance("node"), of.nodes, usual.instance("node").gpus);
  const FabricGraph fabric(other, other.instance("node"), of.nodes, other.instance("node").gpus);
  const PlanRequest request{planned.topology(), bytes, Collective::all_reduce, ""};
  if (scheme.why_not(request)) return std::nullopt;
  return finish(Engine::folded, fabric, scheme.plan(request));
}

TEST_P(Monotonic, MoreBandwidthIsNeverSlowerAndMoreLatencyNeverFaster) {
  int served = 0;
  for (const AllReduceScheme& scheme : allreduce_schemes())
    for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{1} << 20, std::int64_t{256} << 20}) {
      double before = 0;
      for (const char* bandwidth : {"40GB/s", "20GB/s", "10GB/s", "7GB/s", "1GB/s"}) {
        const auto time = time_on(GetParam(), scheme, bytes, bandwidth, "5us");
        if (!time) break;
        EXPECT_GE(*time, before * (1 - 1e-9)) << scheme.name << ", " << bytes << " bytes, " << bandwidth;
        before = *time;
        ++served;
      }
      before = 0;
      for (const char* latency : {"0us", "1us", "5us", "6us", "1ms"}) {
        const auto time = time_on(GetParam(), scheme, bytes, "10GB/s", latency);
        if (!time) break;
        EXPECT_GE(*time, before * (1 - 1e-9)) << scheme.name << ", " << bytes << " bytes, " << latency;
        before = *time;
      }
    }
  EXPECT_GE(served, 10 * 3 * 5);  // at least ten schemes
}

// Trees send more chunks as sizes rise, and rings with LL more passes. Neither may make a larger size faster; that a
// limited number of chunks is planned shows in up to two percent. Simple and LL128 halve their chunks for small
// sizes, which costs more.
TEST_P(Monotonic, MoreBytesAreNeverFasterByTheSameAlgorithmAndProtocol) {
  const platforms::Platform platform =
      platform_of(filled(GetParam().node, "10GB/s", "5us"), filled(GetParam().fabric, "10GB/s", "5us"), kFreeAdding);
  const FabricGraph fabric(platform, platform.instance("node"), GetParam().nodes, platform.instance("node").gpus);
  const std::map<std::string, double> tolerances = {
      {"ring/ll", 0.005}, {"ring/simple", 1e-9}, {"tree/ll", 0.02}, {"tree/ll128", 0.02}, {"tree/simple", 0.1}};
  int served = 0;
  for (const auto& [variant, tolerance] : tolerances) {
    double before = 0;
    for (const std::int64_t bytes : {1, 8, 1000, 4096, 4097, 8192, 8193, 20'000, 65'536, 65'537, 131'073, 262'144,
                                     262'145, 1 << 20, (1 << 20) + 1, 5'000'000, 16 << 20, 100'000'000}) {
      const PlanRequest request{fabric.topology(), bytes, Collective::all_reduce, variant};
      const Scheme scheme = parse_scheme("nccl:" + variant);
      if (find_scheme("nccl").why_not(request)) break;
      const double time =
          finish(Engine::folded, fabric, scheme.plan({fabric.topology(), bytes, Collective::all_reduce, ""}));
      EXPECT_GE(time, before * (1 - tolerance)) << variant << ", " << bytes << " bytes";
      before = time;
      ++served;
    }
  }
  EXPECT_TRUE(served > 0 || std::string(GetParam().name) == "torus");
}

}  // namespace
}  // namespace ganymede::sim
