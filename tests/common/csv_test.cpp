#include "common/csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede {
namespace {

using testing::HasSubstr;

// Names are compared with each other, so that a file of commas alone would take for ever.
TEST(Csv, HasALimitOfColumns) {
  std::string names = "0";
  for (int i = 1; i < 1000; ++i) names += "," + std::to_string(i);
  EXPECT_EQ(CsvTable::parse(names + "\n", "t.csv").names().size(), 1000U);
  EXPECT_EQ(message_of<ConfigError>([&] { CsvTable::parse(names + ",more\n", "t.csv"); }),
            "t.csv: line 1: found 1001 columns, expected at most 1000");
}

TEST(Csv, ReadsQuotedCells) {
  const CsvTable table = CsvTable::parse("\xEF\xBB\xBFname,what\r\na,\"x, \"\"y\"\"\nz\"\r\n\r\nb,\r\n", "t.csv");
  ASSERT_EQ(table.rows().size(), 2U);
  EXPECT_EQ(table.at(table.rows()[0], "what"), "x, \"y\"\nz");
  EXPECT_EQ(table.at(table.rows()[1], "name"), "b");
  EXPECT_EQ(table.at(table.rows()[1], "what"), "");
  EXPECT_EQ(table.rows()[1].line, 5U);  // lines of the file, those inside a cell counted
  EXPECT_TRUE(table.has("name"));
  EXPECT_FALSE(table.has("names"));
}

TEST(Csv, NamesTheLineOfAFault) {
  const auto error = [](const char* text) { return message_of<ConfigError>([&] { CsvTable::parse(text, "t.csv"); }); };
  EXPECT_THAT(error("a,b\n1,2\n3\n"), HasSubstr("t.csv: line 3: found 1 cells, expected 2"));
  EXPECT_THAT(error("a,b\n1,\"2\n"), HasSubstr("t.csv: line 2: a quote is not closed"));
  EXPECT_THAT(error("a,a\n"), HasSubstr("line 1: two columns are called \"a\""));
  EXPECT_THAT(error("\n\n"), HasSubstr("is empty"));
  EXPECT_THAT(error("a\nok\n\xFF\xFE\n"), HasSubstr("t.csv: line 3: a cell is not UTF-8"));
}

// Rows of two lines, 5 MiB in all: a piece ends inside a cell, and faults keep their line in the file.
TEST(Csv, IsReadInPieces) {
  const TemporaryFolder folder;
  std::string text = "about\na,b\n";
  const std::string row = "\"" + std::string(500, 'x') + "\ny\",1\n";
  for (int i = 0; i < 10'000; ++i) text += row;
  std::size_t rows = 0, pieces = 0, last = 0;
  const auto read = [&](const std::string& content) {
    CsvTable::load_pieces(
        folder.add("t.csv", content),
        [&](const CsvTable& piece) {
          ++pieces;
          rows += piece.rows().size();
          if (!piece.rows().empty()) last = piece.rows().back().line;
        },
        [](const std::string& line) { return line == "about"; });
  };
  read(text);
  EXPECT_EQ(rows, 10'000U);
  EXPECT_GT(pieces, 1U);
  EXPECT_EQ(last, 2U + 2 * 10'000 - 1);
  EXPECT_THAT(message_of<ConfigError>([&] { read(text + "1\n"); }),
              HasSubstr("t.csv: line 20003: found 1 cells, expected 2"));
  EXPECT_THAT(message_of<ConfigError>([&] { CsvTable::load_pieces(folder.path(), [](const CsvTable&) {}); }),
              HasSubstr("is a directory"));
  EXPECT_THAT(message_of<ConfigError>([&] { CsvTable::load_pieces(folder.add("e.csv", ""), [](const CsvTable&) {}); }),
              HasSubstr("e.csv: is empty"));
}

TEST(Dates, AreDaysOfTheCalendar) {
  for (const char* date : {"2026-11-20", "2024-02-29", "2000-02-29"}) EXPECT_TRUE(is_date(date)) << date;
  for (const char* date :
       {"2026-02-29", "1900-02-29", "2026-13-01", "2026-1-1", "26-11-20", "2026-11-2x", "", "2026/11/20"})
    EXPECT_FALSE(is_date(date)) << date;
  EXPECT_EQ(days_between("2026-02-28", "2026-03-01"), 1);
  EXPECT_EQ(days_between("2024-02-28", "2024-03-01"), 2);
  EXPECT_EQ(days_between("2026-11-20", "2025-11-20"), -365);
}

// 2026-11-03T08:15:00Z is 1,793,693,700 seconds after 1970 began (date -u +%s).
TEST(Times, OfOtherProgramsAreRead) {
  constexpr double kThen = 1793693700;
  for (const char* text :
       {"1793693700", "1793693700000", "1793693700000000", "2026-11-03T08:15:00", "2026-11-03 08:15:00Z",
        "2026/11/3 8:15", "2026-11-03T09:15+01:00", "2026-11-03 09:15 +0100", "2026-11-03T08:15Z",
        "2026-11-03T09:15:00+01:00", "2026-11-03 09:15:00+0100", "2026-11-03 08:15:00 UTC", "Tue Nov  3 08:15:00 2026",
        "Tue Nov  3 08:15:00 UTC 2026", "08:15:00 3 Nov 2026", "3 Nov 2026 08:15:00", "Nov 03, 2026 08:15:00"})
    EXPECT_EQ(moment_of(text), kThen) << text;
  EXPECT_DOUBLE_EQ(*moment_of("2026-11-03 08:15:00,250"), kThen + 0.25);
  EXPECT_DOUBLE_EQ(*moment_of("2026-11-03T08:15:00.5Z"), kThen + 0.5);
  EXPECT_EQ(*moment_of("Nov 03 08:15:30") - *moment_of("Nov 03 08:15:00"), 30);
  EXPECT_EQ(*moment_of("Mar 01 00:00:00") - *moment_of("Feb 29 00:00:00"), 86400);
  EXPECT_EQ(moment_of("107"), 107);
  for (const char* text : {"", "-5", "noon", "Nov 31 08:15:00", "2026-13-01 08:15:00", "2026-11-03T25:15:00", "Nov 03",
                           // What follows the time of a line is no part of it.
                           "Nov 03 08:15:00 1", "Nov 03 08:15:00 1064", "Tue Nov 03 08:15:00 2000",
                           "Nov 03 08:15:00 00:10:05", "Nov 03 08:15:00 May", "Nov 08:15:00 3",
                           "2026-11-03T08:15:00+99:00", "2026-11-03T08:15:00 local", "loss 08:15:00"})
    EXPECT_EQ(moment_of(text), std::nullopt) << text;
}

TEST(Times, EndWithTheYear9999) {
  EXPECT_EQ(format_time(std::int64_t{1} << 60), "9999-12-31T23:59:59Z");
  EXPECT_TRUE(parse_time(format_time(std::int64_t{1} << 60)));
}

TEST(Times, NeedTheirZone) {
  EXPECT_EQ(parse_time("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(parse_time("2026-12-01T18:00:00+01:00"), parse_time("2026-12-01T17:00Z"));
  EXPECT_EQ(parse_time("2026-12-01T12:30:00-04:30"), parse_time("2026-12-01T17:00:00Z"));
  EXPECT_EQ(parse_time("2026-12-01T12:30:00-0430"), parse_time("2026-12-01T17:00:00Z"));
  EXPECT_EQ(format_time(*parse_time("2026-12-31T23:59:59-01:00")), "2027-01-01T00:59:59Z");
  for (const char* text : {"2026-12-01T18:00:00", "2026-12-01", "2026-12-01T24:00Z", "2026-12-01T18:60Z", "60h",
                           "2026-12-01T18:00:00+1:00", "2026-02-30T18:00Z", "2026-12-01T18:00:00Zulu"})
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
}

}  // namespace
}  // namespace ganymede
