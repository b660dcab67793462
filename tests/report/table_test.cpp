#include "report/table.hpp"

#include <gtest/gtest.h>

namespace ganymede {
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

TEST(Table, MayBeEmpty) {
  EXPECT_EQ(Table({"a", ">bc"}).text(), "a  bc\n-  --\n");
  EXPECT_EQ(Table({"a", ">bc"}).csv(), "a,bc\r\n");
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

}  // namespace
}  // namespace ganymede
