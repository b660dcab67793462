#include "common/row_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "common/errors.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string bytes_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct Rows {
  std::vector<std::string> texts, damaged;
  std::uint64_t end = 0;
};

Rows rows_of(const std::filesystem::path& path) {
  Rows rows;
  RowReader reader(path, [&](const std::string& where) { rows.damaged.push_back(where); });
  const std::string bytes = bytes_of(path);
  while (reader.next()) {
    rows.texts.emplace_back(reader.text());
    EXPECT_EQ(bytes.substr(reader.offset(), reader.text().size()), reader.text());
  }
  rows.end = reader.end();
  return rows;
}

class RowFile : public testing::Test {
 protected:
  std::filesystem::path make(const std::vector<std::string>& texts) {
    const auto path = folder_.path() / "rows";
    RowWriter writer(path);
    for (const std::string& text : texts) writer.append(text);
    writer.sync();
    return path;
  }
  TemporaryFolder folder_;
};

TEST_F(RowFile, GivesBackWhatWasAppended) {
  const std::string large(3'000'000, 'x');
  const auto path = make({"one", "", large, "two\twords"});
  const Rows rows = rows_of(path);
  EXPECT_THAT(rows.texts, ElementsAre("one", "", large, "two\twords"));
  EXPECT_TRUE(rows.damaged.empty());
  EXPECT_EQ(rows.end, std::filesystem::file_size(path));
  make({"three"});
  EXPECT_EQ(rows_of(path).texts.back(), "three");
}

// A last line that was cut short is not read and not reported, wherever it was cut; the next writer removes it.
TEST_F(RowFile, HalfALastLineIsNoRow) {
  const auto path = make({"one", "two"});
  const std::string whole = bytes_of(path);
  const std::size_t first = whole.find('\n') + 1;
  for (std::size_t size = first; size < whole.size(); ++size) {
    write_bytes(path, whole.substr(0, size));
    const Rows rows = rows_of(path);
    EXPECT_THAT(rows.texts, ElementsAre("one")) << size;
    EXPECT_TRUE(rows.damaged.empty()) << size;
    EXPECT_EQ(rows.end, first) << size;
    RowWriter writer(path);
    writer.cut(rows.end);
    writer.append("two");
    EXPECT_EQ(bytes_of(path), whole) << size;
  }
}

TEST_F(RowFile, DamageCostsOnlyItsRow) {
  const auto path = make({"one", "two", "three"});
  const std::string whole = bytes_of(path);
  const std::size_t second = whole.find('\n') + 1, third = whole.find('\n', second) + 1;
  for (std::size_t at = second; at + 1 < third; ++at) {
    std::string changed = whole;
    changed[at] = changed[at] == 'a' ? 'b' : 'a';
    write_bytes(path, changed);
    const Rows rows = rows_of(path);
    EXPECT_THAT(rows.texts, ElementsAre("one", "three")) << at;
    EXPECT_THAT(rows.damaged, ElementsAre(HasSubstr("rows: line 2"))) << at;
  }
  // As some file systems leave a row after a crash: zeros in its place, or a row that ran into the next.
  write_bytes(path, whole.substr(0, second) + std::string(third - second - 1, '\0') + "\n" + whole.substr(third));
  EXPECT_THAT(rows_of(path).texts, ElementsAre("one", "three"));
  write_bytes(path, whole.substr(0, second + 5) + whole.substr(third));
  EXPECT_THAT(rows_of(path).texts, ElementsAre("one"));
}

TEST_F(RowFile, ALineWithoutEndDoesNotFillTheMemory) {
  const auto path = make({"one"});
  std::filesystem::resize_file(path, std::uint64_t{300} << 20U);  // zeros, which take no space on the disk
  std::ofstream(path, std::ios::app) << "\n";
  const Rows rows = rows_of(path);
  EXPECT_THAT(rows.texts, ElementsAre("one"));
  EXPECT_EQ(rows.damaged.size(), 1U);
  EXPECT_EQ(rows.end, std::filesystem::file_size(path));
}

TEST_F(RowFile, HasOneWriter) {
  const auto path = make({"one"});
  const RowWriter writer(path);
  EXPECT_THAT(message_of<ConfigError>([&] { const RowWriter second(path); }),
              HasSubstr("rows: another process writes to it"));
}

// A limit on the size of files stands for a disk that is full in the middle of a row.
TEST_F(RowFile, AFullDiskEndsTheFileWithAWholeRow) {
  const auto path = make({"one"});
  const std::string before = bytes_of(path);
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{before.size() + 10, before.size() + 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    RowWriter writer(path);
    try {
      writer.append("a row that does not fit");
    } catch (const std::runtime_error& error) {
      ::_exit(std::string(error.what()).find("cannot be written") != std::string::npos ? 7 : 8);
    }
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(bytes_of(path), before);
}

TEST_F(RowFile, SaysWhyItCannotBeOpened) {
  EXPECT_THAT(message_of<ConfigError>([&] { RowReader(folder_.path() / "none"); }), HasSubstr("none: cannot be read"));
  EXPECT_THAT(message_of<ConfigError>([&] { RowWriter(folder_.path() / "none/rows"); }),
              HasSubstr("none/rows: cannot be written"));
}

}  // namespace
}  // namespace ganymede
