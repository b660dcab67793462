#include "common/file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>

#include "common/errors.hpp"
#include "common/storage.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class Files : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::atomic<int> read_ = 0;
};

TEST_F(Files, AreReadBackAsWritten) {
  std::string content(300'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  write_file(folder_ / "a", content);
  EXPECT_EQ(read_file(folder_ / "a"), content);
  write_file(folder_ / "empty", "");
  EXPECT_EQ(read_file(folder_ / "empty"), "");
}

TEST_F(Files, ThatArePipesAreReadAsOftenAsOthers) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    for (const char* content : {"content", ""}) {  // as a shell's <(command), whose pipe is empty when opened again
      const int file = ::open(pipe.c_str(), O_WRONLY);
      EXPECT_EQ(::write(file, content, std::strlen(content)), static_cast<ssize_t>(std::strlen(content)));
      ::close(file);
      while (read_ < (*content != 0 ? 1 : 2)) std::this_thread::yield();
    }
  });
  for (; read_ < 2; ++read_) EXPECT_EQ(read_file(pipe), "content");
  writer.join();
}

TEST_F(Files, AreReplacedWholeAndNothingElseIsLeft) {
  write_file(folder_ / "a", "a long first content");
  write_file(folder_ / "a", "second");
  EXPECT_EQ(read_file(folder_ / "a"), "second");
  EXPECT_THAT(folder_.names(), ElementsAre("a"));
}

TEST_F(Files, AreWrittenPieceByPieceAndWholeOrNotAtAll) {
  const std::string large(3'000'000, 'x');
  write_file(folder_ / "a", [&](const ContentSink& sink) {
    sink("one ");
    sink(large);
    sink(" two");
  });
  EXPECT_EQ(read_file(folder_ / "a"), "one " + large + " two");
  const auto breaks = [](const ContentSink& sink) {
    sink("half");
    throw Failure("broken");
  };
  EXPECT_THROW(write_file(folder_ / "a", breaks), Failure);
  EXPECT_EQ(read_file(folder_ / "a").size(), large.size() + 8);
  EXPECT_THAT(folder_.names(), ElementsAre("a"));
}

TEST_F(Files, ThatCannotBeReadAreNamed) {
  const auto message = [](const std::filesystem::path& path) {
    return message_of<ConfigError>([&] { read_file(path); });
  };
  const auto absent = folder_ / "absent";
  EXPECT_THAT(message(absent), AllOf(StartsWith(absent.string() + ": "), HasSubstr("No such file")));
  EXPECT_THAT(message(folder_.path()), AllOf(StartsWith(folder_.path().string() + ": "), HasSubstr("is a directory")));
  const auto inside_a_file = folder_.add("file", "x") / "inside";
  EXPECT_THAT(message(inside_a_file), StartsWith(inside_a_file.string() + ": "));
  const auto long_name = folder_ / std::string(5000, 'x');
  EXPECT_THAT(message(long_name), StartsWith(long_name.string() + ": "));
}

TEST_F(Files, ThatCannotBeWrittenAreNamedBeforeAndWhenWriting) {
  folder_.add("file", "x");
  std::filesystem::create_directory(folder_ / "taken");
  for (const auto& path : {folder_ / "no/such/folder/out.json", folder_ / "taken", folder_ / "file/inside",
                           folder_ / std::string(5000, 'x')}) {
    const std::string written = message_of<ConfigError>([&] { write_file(path, "new"); });
    EXPECT_THAT(written, StartsWith(path.string() + ": cannot be written: "));
    EXPECT_EQ(message_of<ConfigError>([&] { check_writable(path); }), written);
  }
  EXPECT_THROW(write_file("", "x"), ConfigError);
  EXPECT_THROW(check_writable(""), ConfigError);
  EXPECT_THAT(folder_.names(), testing::UnorderedElementsAre("file", "taken"));
  EXPECT_EQ(read_file(folder_ / "file"), "x");
}

// The temporary file cannot be made, since a folder has its name: the old content stays.
// The name is as long as a name may be, so that the temporary file, whose name is longer, cannot be made.
TEST_F(Files, KeepTheirContentWhenWritingFails) {
  const std::string name(255, 'a');
  folder_.add(name, "old");
  EXPECT_THROW(write_file(folder_ / name, "new"), ConfigError);
  EXPECT_EQ(read_file(folder_ / name), "old");
  EXPECT_THAT(folder_.names(), ElementsAre(name));
}

TEST_F(Files, CheckingLeavesNothingAndChangesNothing) {
  folder_.add("a", "old");
  check_writable(folder_ / "a");
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  std::filesystem::remove(folder_ / "a");
  check_writable(folder_ / "a");
  EXPECT_THAT(folder_.names(), IsEmpty());
}

// A name that others can foresee may be a link of theirs, through which another file would be emptied.
TEST_F(Files, ATemporaryNameIsNotForeseenAndNoLinkIsFollowed) {
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i)
    write_file(folder_ / "a", [&](const ContentSink& sink) {
      sink("x");
      for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code ignored;
        const std::string target = std::filesystem::read_symlink(open.path(), ignored).filename();
        if (!target.starts_with("a.tmp-")) continue;
        names.push_back(target);
        std::ifstream info("/proc/self/fdinfo/" + open.path().filename().string());
        for (std::string word; info >> word;)
          if (word == "flags:") {
            info >> word;
            EXPECT_NE(std::stoul(word, nullptr, 8) & static_cast<unsigned long>(O_NOFOLLOW), 0U);
          }
      }
    });
  ASSERT_EQ(names.size(), 2U);
  EXPECT_NE(names[0], names[1]);
  EXPECT_EQ(names[0].size(), std::string("a.tmp-0123456789abcdef01234567").size());  // 64 random bits
}

TEST_F(Files, WhatKilledProgramsLeftIsRemovedAfterADay) {
  const auto yesterday = std::filesystem::file_time_type::clock::now() - std::chrono::hours(25);
  std::string left, young;  // names that the program gives
  for (std::string* name : {&left, &young})
    write_file(folder_ / "out", [&](const ContentSink&) {
      for (const std::string& any : folder_.names())
        if (any.starts_with("out.tmp-")) *name = any;
    });
  std::filesystem::remove(folder_ / "out");
  folder_.add(young, "of a program that still writes");
  const std::string of_another = "other" + left.substr(3);
  // A user may have given any of these; the last has as many digits as the program's.
  const std::vector<std::string> kept = {young,
                                         of_another,
                                         "out.json",
                                         "out.tmp-mybackup",
                                         left + ".old",
                                         "out.tmp-0123456789abcdef",
                                         "out.tmp-0123456789abcdef01234567"};
  for (const std::string& name : kept)
    if (name != young) std::filesystem::last_write_time(folder_.add(name, "half"), yesterday);
  std::filesystem::last_write_time(folder_.add(left, "half"), yesterday);
  check_writable(folder_ / "out");
  EXPECT_THAT(folder_.names(), testing::UnorderedElementsAreArray(kept));
}

// A file that its user has protected is not replaced, though the folder would allow it.
TEST_F(Files, ThatMayNotBeWrittenAreNotReplaced) {
  folder_.add("out", "precious");
  std::filesystem::permissions(folder_ / "out", std::filesystem::perms::owner_read);
  std::filesystem::permissions(folder_ / ".", std::filesystem::perms::all);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(1);  // root may write all files
    int refused = 0;
    try {
      check_writable(folder_ / "out");
    } catch (const ConfigError&) {
      ++refused;
    }
    try {
      write_file(folder_ / "out", "new");
    } catch (const ConfigError&) {
      ++refused;
    }
    ::_exit(refused == 2 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder_ / "out"), "precious");
  EXPECT_EQ(folder_.names().size(), 1U);
}

// In a folder such as /tmp nobody may replace another user's file, under whatever name it is reached.
TEST_F(Files, OfAnotherUserAreNotReplacedThroughALink) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's file";
  const auto shared = folder_ / "shared";
  std::filesystem::create_directory(shared);
  std::ofstream(shared / "theirs") << "theirs";
  ASSERT_EQ(::chown((shared / "theirs").c_str(), 65533, 65533), 0);
  ASSERT_EQ(::chmod((shared / "theirs").c_str(), 0666), 0);
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);
  std::filesystem::permissions(folder_ / ".", std::filesystem::perms::all);
  std::filesystem::create_symlink(shared / "theirs", folder_ / "link");
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(1);
    try {
      check_writable(folder_ / "link");
    } catch (const ConfigError&) {
      ::_exit(0);
    }
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A link that leads to nothing yet is a second name of what is written through it.
TEST_F(Files, LinksToWhatIsNotThereYetAreFollowed) {
  std::filesystem::create_directory(folder_ / "below");
  std::filesystem::create_symlink("below/link", folder_ / "one");
  std::filesystem::create_symlink("../target", folder_ / "below/link");
  EXPECT_EQ(written_path(folder_ / "one"), written_path(folder_ / "below/../target"));
  EXPECT_NE(written_path(folder_ / "one"), written_path(folder_ / "other"));
  check_writable(folder_ / "one");
  write_file(folder_ / "one", "through two links");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "one"));
  EXPECT_EQ(read_file(folder_ / "target"), "through two links");
}

TEST_F(Files, LinksThatLeadToEachOtherAreNamed) {
  std::filesystem::create_symlink("two", folder_ / "one");
  std::filesystem::create_symlink("one", folder_ / "two");
  const auto one = folder_ / "one";
  const auto refusal = testing::ThrowsMessage<ConfigError>(StartsWith(one.string() + ": cannot be written: Too many"));
  EXPECT_THAT([&] { check_writable(one); }, refusal);
  EXPECT_THAT([&] { write_file(one, "x"); }, refusal);
}

TEST_F(Files, BeneathAFileNoFolderIsMade) {
  folder_.add("file", "");
  EXPECT_EQ(storage::make_folders(folder_ / "file/x"), std::errc::not_a_directory);
  EXPECT_EQ(storage::make_folders(folder_ / "file/x/y"), std::errc::not_a_directory);
  EXPECT_EQ(storage::make_folders(folder_ / "file"), std::errc::file_exists);
  EXPECT_FALSE(storage::make_folders(folder_ / "a/b"));
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "a/b"));
}

TEST_F(Files, ThatAProgramStillWritesAreKeptWhenTheClockIsMoved) {
  write_file(folder_ / "out", [&](const ContentSink& sink) {
    sink("all of it");
    for (const std::string& name : folder_.names())
      std::filesystem::last_write_time(folder_ / name,
                                       std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 3650));
    check_writable(folder_ / "out");
  });
  EXPECT_EQ(read_file(folder_ / "out"), "all of it");
}

TEST_F(Files, ASignalRightAfterAnyCallLeavesNoTemporaryOne) {
  for (int at = 0; at < 5; ++at) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(SIGTERM, [](int) {
        remove_unfinished_files();
        ::_exit(7);
      });
      storage::set_fates([&, calls = 0](const storage::Change&) mutable {
        return calls++ == at ? storage::Fate::interrupted : storage::Fate::done;
      });
      write_file(folder_ / "out", "all of it");
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 7) << "create, write, sync, rename and the folder's sync: " << at;
    EXPECT_TRUE(folder_.names().empty() || folder_.names() == std::vector<std::string>{"out"}) << at;
  }
  EXPECT_EQ(read_file(folder_ / "out"), "all of it");
}

TEST_F(Files, OfProgramsThatCreateOneFileOneSucceeds) {
  std::atomic<int> created = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] { created += create_file(folder_ / "a", std::to_string(i)) ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, 1);
  EXPECT_THAT(folder_.names(), testing::ElementsAre("a"));
  EXPECT_EQ(read_file(folder_ / "a").size(), 1U);
}

TEST_F(Files, AReplacedFileLeavesItsPermissionsAndANewOneFollowsTheMask) {
  using std::filesystem::perms;
  const auto mode = [&](const char* name) { return std::filesystem::status(folder_ / name).permissions(); };
  const auto before = ::umask(027);
  write_file(folder_ / "new", "x");
  ::umask(before);
  EXPECT_EQ(mode("new"), perms(0640));
  for (const unsigned bits : {0600U, 0664U, 0400U}) {
    std::filesystem::permissions(folder_ / "new", perms(bits));
    write_file(folder_ / "new", "y");
    EXPECT_EQ(mode("new"), perms(bits));
  }
}

TEST_F(Files, SpecialFilesAreWrittenThrough) {
  write_file("/dev/null", "x");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_THAT(message_of<std::runtime_error>([] { write_file("/dev/full", "x"); }),
              AllOf(StartsWith("/dev/full: cannot be written: "), HasSubstr("No space left")));
}

}  // namespace
}  // namespace ganymede
