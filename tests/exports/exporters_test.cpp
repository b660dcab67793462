// The table of exporters and what is made from it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "exports/exporter.hpp"
#include "report/results.hpp"
#include "support/errors.hpp"

namespace ganymede::exports {
namespace {

using testing::HasSubstr;

std::string content_of(const char* file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

TEST(Exporters, DescribeThemselves) {
  std::set<std::string> names;
  for (const Exporter& exporter : exporters()) {
    EXPECT_TRUE(names.insert(exporter.name).second) << exporter.name;
    EXPECT_FALSE(exporter.summary.empty()) << exporter.name;
    EXPECT_THAT(exporter.examples, HasSubstr("ganymede export " + exporter.name + " "));
    EXPECT_FALSE(exporter.reads.empty()) << exporter.name;
    EXPECT_NE(exporter.write, nullptr) << exporter.name;
    std::set<std::string> options;
    for (const ExportOption& option : exporter.options) {
      EXPECT_TRUE(options.insert(option.name).second) << exporter.name << " " << option.name;
      EXPECT_FALSE(option.summary.empty()) << exporter.name << " " << option.name;
      if (!option.choices.empty()) {
        EXPECT_THAT(option.choices, testing::Contains(option.default_value));
      }
    }
  }
}

TEST(Exporters, RefuseOtherKindsOfDocuments) {
  const report::Document plan = report::document_of(report::a_plan());
  for (const Exporter& exporter : exporters()) {
    const bool reads = std::find(exporter.reads.begin(), exporter.reads.end(), plan.kind) != exporter.reads.end();
    if (reads)
      EXPECT_NO_THROW(check_kind(exporter, plan)) << exporter.name;
    else
      EXPECT_THAT(message_of<ConfigError>([&] { check_kind(exporter, plan); }),
                  HasSubstr("is a plan, expected " + kinds_text(exporter.reads)));
  }
}

TEST(Exporters, SayWhichCommandsWriteTheirDocuments) {
  EXPECT_EQ(source_text(std::vector{report::DocumentKind::result}), "what simulate wrote with --format json");
  EXPECT_EQ(
      source_text(std::vector{report::DocumentKind::result, report::DocumentKind::sweep, report::DocumentKind::plan}),
      "what simulate, sweep or plan wrote with --format json");
  EXPECT_EQ(source_text(std::vector{report::DocumentKind::study}), "a ganymede.study/1 file");
  EXPECT_EQ(source_text(std::vector{report::DocumentKind::plan, report::DocumentKind::study}),
            "what plan wrote with --format json, or a ganymede.study/1 file");
}

TEST(Exporters, ValuesAreDefaultsUntilGiven) {
  using Kind = ExportOption::Kind;
  const std::vector<ExportOption> options = {
      {.name = "size", .summary = "s", .kind = Kind::integer, .default_value = "7", .min = 1, .max = 9},
      {.name = "run", .summary = "r", .kind = Kind::index},
      {.name = "all", .summary = "a", .kind = Kind::flag}};
  ExportValues values(options);
  EXPECT_EQ(values.integer("size"), 7);
  EXPECT_EQ(values.index("run"), std::nullopt);
  EXPECT_FALSE(values.flag("all"));
  values.slot("size") = "9";
  values.slot("run") = "0";
  values.slot("all") = "yes";
  EXPECT_EQ(values.integer("size"), 9);
  EXPECT_EQ(values.index("run"), 0U);
  EXPECT_TRUE(values.flag("all"));
}

// The table in docs/exports.md agrees with the program's.
TEST(Exporters, AreThoseOfTheDocumentation) {
  const std::string page = content_of(GANYMEDE_SOURCE_DIR "/docs/exports.md");
  std::vector<std::string> rows, expected;
  const std::regex row("\n\\| \\[?`([a-z]+)`(?:\\]\\([^)]*\\))? \\| ([^|]*) \\| ([^|]*) \\|");
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at)
    rows.push_back(fmt::format("{}: {}: {}", (*at)[1].str(), (*at)[2].str(), (*at)[3].str()));
  for (const Exporter& exporter : exporters())
    expected.push_back(fmt::format("{}: {}: {}", exporter.name, kinds_text(exporter.reads), exporter.summary));
  EXPECT_EQ(rows, expected);
}

}  // namespace
}  // namespace ganymede::exports
