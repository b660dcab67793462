#include "report/table.hpp"

#include <gtest/gtest.h>

#include "report/numbers.hpp"

namespace ganymede::report {
namespace {

TEST(Table, AlignsItsColumns) {
  Table table({"name", ">GPUs", "note"});
  table.add({"a", "1", "x"});
  table.add({"longer", "128", ""});
  EXPECT_EQ(table.text(),
            "name    GPUs  note\n"
            "------  ----  ----\n"
            "a          1  x\n"
            "longer   128\n");
}

TEST(Numbers, ShareWithItsSign) {
  EXPECT_EQ(signed_percent(0.0251), "+2.5 %");
  EXPECT_EQ(signed_percent(-0.0251), "-2.5 %");
  EXPECT_EQ(signed_percent(-0.0004), "0.0 %");
  EXPECT_EQ(signed_percent(0.0004), "0.0 %");
}

// "µ" and "é" are two bytes and one column each, "–" three bytes.
TEST(Table, CountsCharactersAndNotBytes) {
  Table table({"what", ">time", "end"});
  table.add({"caf\xc3\xa9", "5 \xc2\xb5s", "."});
  table.add(
      {"1\xe2\x80\x93"
       "2",
       "10 ms", "."});
  EXPECT_EQ(table.text(),
            "what   time  end\n"
            "----  -----  ---\n"
            "caf\xc3\xa9   5 \xc2\xb5s  .\n"
            "1\xe2\x80\x93"
            "2   10 ms  .\n");
}

TEST(Table, DrawsRulesBetweenRows) {
  Table table({"a", "b"});
  table.add({"1", "2"});
  table.rule();
  table.add({"3", "4"});
  EXPECT_EQ(table.text(), "a  b\n-  -\n1  2\n-  -\n3  4\n");
}

TEST(Table, SaysOnceWhatAllRowsShare) {
  Table table({"name", "scheme", ">GPUs", "note"});
  table.add({"a", "ring", "4", ""});
  Table one = table;
  EXPECT_EQ(one.take_constant_columns(), "") << "a single row shares nothing with others";
  EXPECT_EQ(one.text(), table.text());
  table.rule();
  table.add({"b", "ring", "8", ""});
  EXPECT_EQ(table.text_below_constants(kAnyWidth),
            "all: scheme ring\n\n"
            "name  GPUs\n"
            "----  ----\n"
            "a        4\n"
            "----  ----\n"
            "b        8\n");
}

TEST(Table, MayBeEmpty) {
  EXPECT_EQ(Table({"a", ">bc"}).text(), "a  bc\n-  --\n");
  EXPECT_EQ(Table({"a", ">bc"}).csv(), "a,bc\r\n");
}

// ---- On a terminal of some width.

Table wide() {
  Table table({"where", "why it is so", ">of USD"});
  table.add({"here", "words that take a line", "12.50"});
  return table;
}

TEST(Table, ThatFitsIsLeftAsItIs) {
  EXPECT_EQ(wide().text(37), wide().text());
  EXPECT_EQ(wide().text(kAnyWidth),
            "where  why it is so            of USD\n"
            "-----  ----------------------  ------\n"
            "here   words that take a line   12.50\n");
}

TEST(Table, BreaksHeadingsFirst) {
  EXPECT_EQ(wide().text(36),
            "                                  of\n"
            "where  why it is so              USD\n"
            "-----  ----------------------  -----\n"
            "here   words that take a line  12.50\n");
}

TEST(Table, BreaksTextBetweenWordsAndNeverANumber) {
  EXPECT_EQ(wide().text(27),
            "                         of\n"
            "where  why it is so     USD\n"
            "-----  -------------  -----\n"
            "here   words that     12.50\n"
            "       take a line\n");
  Table numbers({"of", ">n"});
  numbers.add({"5 s .. 10 s", "1 234 567"});
  EXPECT_EQ(numbers.text(18),
            "of               n\n"
            "-------  ---------\n"
            "5 s ..   1 234 567\n"
            "10 s\n");
}

TEST(Table, FoldsRowsWhereWordsDoNotGiveEnough) {
  Table table({"name", ">first", ">second", "remark"});
  table.add({"alpha-beta", "1.5", "1234567", ""});
  table.rule();
  table.add({"gamma", "22.5", "1", "some words"});
  EXPECT_EQ(table.text(20),
            "name        first\n"
            "       second\n"
            "      remark\n"
            "--------------------\n"
            "alpha-beta    1.5\n"
            "      1234567\n"
            "--------------------\n"
            "gamma        22.5\n"
            "            1\n"
            "      some words\n");
}

TEST(Table, WithAColumnThatIsTooWideAloneIsLeftAsItIs) {
  Table table({"a", "file"});
  table.add({"1", "/a/path/without/any/space/in/it"});
  EXPECT_EQ(table.text(20), table.text());
}

// A row of 10 columns that has more than 10 bytes, because two characters take two bytes each.
TEST(Table, FitsByCharactersAndNotBytes) {
  Table table({"what", ">time"});
  table.add({"caf\xc3\xa9", "5 \xc2\xb5s"});
  EXPECT_EQ(table.text(10), table.text());
}

// RFC 4180: lines end with CR LF; a cell with a comma, a quote or a line break is quoted, and quotes in it are doubled.
TEST(Table, QuotesCsv) {
  Table table({"name", ">value"});
  table.add({"plain", "1.5"});
  table.rule();
  table.add({"a, b", "say \"x\""});
  table.add({"two\nlines", "cr\rhere"});
  table.add({"", " "});
  EXPECT_EQ(table.csv(),
            "name,value\r\n"
            "plain,1.5\r\n"
            "\"a, b\",\"say \"\"x\"\"\"\r\n"
            "\"two\nlines\",\"cr\rhere\"\r\n"
            ", \r\n");
}

// Documents state micro-dollars; nobody reads them in a table.
TEST(Numbers, AmountsOfTablesHaveCents) {
  EXPECT_EQ(usd_cell("12.345678"), "12.35");
  EXPECT_EQ(usd_cell("3.00"), "3.00");
  EXPECT_EQ(usd_cell("0.652837"), "0.6528");
  EXPECT_EQ(usd_cell("0.70"), "0.70");
  EXPECT_EQ(usd_cell("0.000049"), "< 0.0001");
  EXPECT_EQ(usd_cell("0.00"), "0.00");
  EXPECT_EQ(price_cell("14.954338"), "14.9543");
  EXPECT_EQ(price_cell("12.24"), "12.24");
  EXPECT_EQ(price_cell("12.00"), "12.00");
  EXPECT_EQ(price_cell("0.0004"), "0.0004");
  EXPECT_EQ(price_cell("0.000005"), "0.000005");
}

// OWASP's list of characters with which a spreadsheet's formula begins; an apostrophe makes text of it.
TEST(Table, CsvHoldsNoFormulas) {
  Table table({"a"});
  for (const char* cell : {"=1+2", "@SUM(A1)", "+cmd", "-cmd", "-3.5", "+2", "-", "-1e-3", "=a,b", "1-2"})
    table.add({cell});
  EXPECT_EQ(table.csv(),
            "a\r\n'=1+2\r\n'@SUM(A1)\r\n'+cmd\r\n'-cmd\r\n-3.5\r\n+2\r\n-\r\n-1e-3\r\n\"'=a,b\"\r\n1-2\r\n");
}

}  // namespace
}  // namespace ganymede::report
