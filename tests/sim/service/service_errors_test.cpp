// What is wrong in a service is said at its place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service_files.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::sim {
namespace {

using testing::HasSubstr;

TEST(ServiceErrors, AreLocated) {
  for (const auto& [more, message] : {
           std::pair(R"({"generator": null})", "the key \"generator\" is missing"),
           {R"({"generator": {"measured": {"1": null}}})",
            "/generator/measured: found an object, expected the time of at least one"},
           {R"({"generator": {"measured": {"a": "1ms"}}})", "/generator/measured/a: its key is not a number of images"},
           {R"({"generator": {"measured": {"1": "0s"}}})", "/generator/measured/1: found \"0s\""},
           {R"({"generator": {"measured": {"1": "3ms", "2": "1ms"}}})", "1 images take longer than 2"},
           {R"({"generator": {"trace": "layers:nosuch", "measured": null}})", "/generator/trace: no list of layers"},
           {R"({"generator": {"trace": "layers:resnet50", "measured": null}})", "it has no network \"generator\""},
           {R"({"generator": {"trace": "recorded:mlp-gan-cpu", "network": "x", "measured": null}})",
            "/generator/trace: its steps have no phase \"x.forward\""},
           {R"({"generator": {"recipe": "stylegan2"}})", "/generator: expected one of"},
           {R"({"generator": {"measured": null, "recipe": "stylegan-xl?image=32"}})",
            "stands behind the network \"stem\""},
           {R"({"arrivals": {"per_second": 0}})", "/arrivals/per_second: found 0"},
           {R"({"arrivals": {"per_second": 1e300}})", "/arrivals/per_second"},
           {R"({"arrivals": {"per_second": 100000}, "duration": "10h"})", "3.6e+09 requests in all"},
           {R"({"arrivals": {"swing": 2}})", "/arrivals/swing: found 2"},
           {R"({"arrivals": {"pattern": "even", "swing": 0.5}})", "/arrivals: a rate that swings"},
           {R"({"arrivals": {"recorded": "nosuch.csv"}})", "/arrivals: expected one of"},
           {R"({"batching": {"largest": 0}})", "/batching/largest: found 0"},
           {R"({"autoscaling": {"min": 2, "max": 4, "queue": 5}})", "/autoscaling: begins with 1 nodes"},
           {R"({"autoscaling": {"min": 1, "max": 4}})", "/autoscaling"},
           {R"({"platform": {"instance": "p3.3xlarge"}})", "did you mean \"p3.2xlarge\"?"},
           {R"({"duration": "1ms"})", "/: the duration is below a second"},
           {R"({"generator": {"measured": {"01": "7ms"}}})", "/generator/measured/1: is a second time of 1 images"},
           {R"({"autoscaling": {"min": 1, "max": 2, "queue": 5, "every": "1ns"}})", "\"every\" is too short"},
           {R"({"goal": {}})", "/goal: unknown key; did you mean \"goals\"?"},
       })
    EXPECT_THAT(message_of<ConfigError>([text = more] { service_of(text); }), HasSubstr(message)) << more;
}

TEST(ServiceErrors, NameTheLineOfARecording) {
  const TemporaryFolder folder;
  for (const auto& [rows, message] : {std::pair("t_s\n1\n0.5\n", "line 3: t_s: is before the row above"),
                                      {"t_s\n1\nx\n", "line 3: t_s: found \"x\", expected seconds"},
                                      {"when\n1\n", "expected a CSV with a column \"t_s\""},
                                      {"t_s\n", "the recording has no request"}}) {
    Json document = service_document(R"({"arrivals": null})");
    document["arrivals"]["recorded"] = folder.add("requests.csv", rows).string();
    EXPECT_THAT(message_of<ConfigError>([&] { (void)read_service(JsonNode::wrap(document, "service.json", ".")); }),
                HasSubstr(message));
  }
}

}  // namespace
}  // namespace ganymede::sim
