// The register of policies and its table in docs/policies.md.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "policies/policy.hpp"

namespace ganymede::policies {
namespace {

using testing::HasSubstr;

TEST(Policies, AreNamedOnceAndFoundByName) {
  std::set<std::string_view> names;
  for (const Policy& policy : policies()) {
    EXPECT_TRUE(names.insert(policy.name).second) << policy.name;
    EXPECT_FALSE(policy.summary.empty()) << policy.name;
    EXPECT_EQ(find_policy(policy.name), &policy);
  }
  EXPECT_EQ(find_policy("fixd"), nullptr);
}

TEST(Policies, SayWhatTheyAre) {
  EXPECT_EQ(default_policy().name, "fixed");
  EXPECT_EQ(policy_names().front(), "fixed");
  for (const Policy& policy : policies()) {
    EXPECT_FALSE(policy.source.empty()) << policy.name;
    for (const PolicySetting& setting : policy.settings) {
      EXPECT_LE(setting.low, setting.default_value) << policy.name << " " << setting.name;
      EXPECT_GE(setting.high, setting.default_value) << policy.name << " " << setting.name;
      EXPECT_FALSE(setting.meaning.empty()) << policy.name << " " << setting.name;
    }
  }
}

/// Entries of the list of policies in docs/policies.md, each on one line: "- `fixed`: what the scenario asks for. …".
std::vector<std::string> documented_policies() {
  std::ifstream file(GANYMEDE_SOURCE_DIR "/docs/policies.md");
  std::vector<std::string> entries;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("- `")) {
      inside = true;
      entries.push_back(line);
    } else if (inside && line.empty()) {
      break;
    } else if (inside) {
      entries.back() += line.substr(1);  // a continued line begins with two spaces
    }
  }
  return entries;
}

TEST(Policies, AreDocumentedWithTheirSettings) {
  const std::vector<std::string> entries = documented_policies();
  EXPECT_EQ(entries.size(), policies().size());
  for (const Policy& policy : policies()) {
    const std::string start = fmt::format("- `{}`: ", policy.name);
    const auto entry =
        std::find_if(entries.begin(), entries.end(), [&](const auto& text) { return text.starts_with(start); });
    ASSERT_NE(entry, entries.end()) << policy.name;
    for (const PolicySetting& setting : policy.settings)
      EXPECT_THAT(*entry, HasSubstr(fmt::format("`{}` {:g}", setting.name, setting.default_value)));
  }
}

}  // namespace
}  // namespace ganymede::policies
