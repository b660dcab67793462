#include "sim/scenario/input_cache.hpp"

#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/random.hpp"
#include "scenario_files.hpp"

namespace ganymede::sim {
namespace {

JsonNode naming(const std::string& trace, const TemporaryFolder& folder) {
  return JsonNode::wrap(trace, "scenario.json", folder / ".");
}

TEST(ScenarioInputCache, ParsesATraceOnceUntilItsFileChanges) {
  const TemporaryFolder folder;
  folder.add("t.json", traces::write_step_trace(constant_trace(40)));
  ScenarioInputCache cache;
  const auto first = cache.trace(naming("t.json", folder));
  const auto again = cache.trace(naming("t.json", folder));
  EXPECT_EQ(first.trace, again.trace);
  EXPECT_EQ(first.hash, fnv1a(traces::write_step_trace(constant_trace(40))));
  folder.add("t.json", traces::write_step_trace(constant_trace(41)));
  const auto changed = cache.trace(naming("t.json", folder));
  EXPECT_NE(changed.trace, first.trace);
  EXPECT_NE(changed.hash, first.hash);
}

TEST(ScenarioInputCache, KeepsNoTraceThatCouldNotBeRead) {
  const TemporaryFolder folder;
  folder.add("t.json", "{}");
  ScenarioInputCache cache;
  EXPECT_THROW(cache.trace(naming("t.json", folder)), ConfigError);
  EXPECT_THROW(cache.trace(naming("t.json", folder)), ConfigError);
}

// A scenario is read to the same values with a cache that other scenarios have filled.
TEST(ScenarioInputCache, DoesNotChangeWhatIsRead) {
  const ScenarioFiles files;
  const auto node = [&] { return JsonNode::load(files.folder().add("s.json", ScenarioFiles::basic().dump())); };
  ScenarioInputCache cache;
  const Scenario first = read_scenario(node(), cache);
  const Scenario second = read_scenario(node(), cache);
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_EQ(first.step_fingerprint, second.step_fingerprint);
  EXPECT_EQ(first.hash, read_scenario(node()).hash);
}

}  // namespace
}  // namespace ganymede::sim
