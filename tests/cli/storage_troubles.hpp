#pragma once
// Troubles of a machine at the calls by which files change (common/storage.hpp), for tests that replay them.

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "common/storage.hpp"
#include "run_program.hpp"

namespace ganymede::cli {

namespace fs = std::filesystem;

/// Files that users may keep beside those of the program, under names that resemble its own.
inline constexpr std::array kForeign = {"out.json.tmp-mybackup", "out.json.tmp-0123456789abcdef", "c/step-best.ckpt",
                                        "c/step-000000000001-mine.ckpt", "shards/notes.rows.txt"};

/// The seed by which fates are drawn; GANYMEDE_STORAGE_SEED names another.
inline std::uint64_t storage_seed() {
  const char* given = std::getenv("GANYMEDE_STORAGE_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

/// A disk that forgets at a loss of power what was not synced: the content of files, and names in folders. It knows
/// them by the calls that it is shown before they happen.
class ForgetfulDisk {
 public:
  /// `kept`: a folder on the same file system for what may have to come back.
  explicit ForgetfulDisk(fs::path kept) : kept_(std::move(kept)) { fs::create_directories(kept_); }

  void see(const storage::Change& change) {
    switch (change.call) {
      case storage::Call::create:
      case storage::Call::make_folder:
        if (!fs::exists(change.path)) names_.push_back({change.path, {}, {}});
        return;
      case storage::Call::rename:
      case storage::Call::link:
        return see_name(change);
      case storage::Call::remove:  // that it is undone does no harm
        return;
      case storage::Call::write:
      case storage::Call::cut: {
        const fs::path path = fs::read_symlink(fmt::format("/proc/self/fd/{}", change.file));
        contents_.try_emplace(inode_of(path), Content{path, content_of(path)});
        return;
      }
      case storage::Call::sync:
        contents_.erase(inode_of(fmt::format("/proc/self/fd/{}", change.file)));
        return;
      case storage::Call::sync_folder:
        std::erase_if(names_, [&](const Name& name) { return fs::equivalent(folder_of(name.path), change.path); });
    }
  }

  /// Loses of each file none, a part or all of what was not synced, and of the names those after any one of them.
  void lose_power(RandomStream& random) {
    for (auto& [inode, file] : contents_) {
      const std::string now = content_of(file.path);
      const auto length = static_cast<std::size_t>(random.uniform() * static_cast<double>(now.size() + 1));
      const std::string zeros = now.substr(0, length) + std::string(now.size() - length, '\0');
      const std::string left = std::array{file.durable, now.substr(0, length), zeros}[random.below(3)];
      if (fs::exists(file.path)) std::ofstream(file.path, std::ios::trunc | std::ios::binary) << left;
    }
    for (std::size_t lost = random.below(names_.size() + 1); lost > 0; --lost) {
      const Name& last = names_.back();
      if (last.from.empty())
        fs::remove_all(last.path);
      else if (fs::exists(last.path))
        fs::rename(last.path, last.from);
      if (!last.former.empty()) fs::rename(last.former, last.path);
      names_.pop_back();
    }
  }

 private:
  /// A name that a folder has since it was last synced.
  struct Name {
    fs::path path, from, former;  ///< `from`: its name before, and `former`: what it replaced, or empty
  };
  struct Content {
    fs::path path;
    std::string durable;
  };

  static fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }
  static ino_t inode_of(const fs::path& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
  }
  void see_name(const storage::Change& change) {
    Name name{change.to, change.call == storage::Call::rename ? change.path : "", {}};
    if (fs::exists(change.to)) {
      name.former = kept_ / std::to_string(kept_count_++);
      fs::create_hard_link(change.to, name.former);
    }
    if (const auto file = contents_.find(inode_of(change.path)); file != contents_.end()) file->second.path = change.to;
    names_.push_back(std::move(name));
  }

  fs::path kept_;
  int kept_count_ = 0;
  std::vector<Name> names_;
  std::map<ino_t, Content> contents_;
};

/// How the machine fails: a fate of a call, a loss of power before it, or a clock that is moved before it.
enum class Trouble { crashed, torn, failed, failed_for_ever, power_lost, clock_moved, none };

/// Steps the clock by ten years for all files that are there now.
inline void step_clock(const fs::path& folder, bool back) {
  constexpr auto kTenYears = std::chrono::hours(24 * 3650);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      fs::last_write_time(entry, fs::file_time_type::clock::now() + (back ? kTenYears : -kTenYears));
}

/// What becomes of the call at which the trouble comes. `drawn` decides how much power a loss of it costs, and which
/// way a clock is moved.
inline storage::Fate fate_of(const storage::Change& change, Trouble trouble, ForgetfulDisk& disk,
                             const fs::path& folder, std::uint64_t drawn) {
  using storage::Fate;
  RandomStream random(drawn, "power");
  switch (trouble) {
    case Trouble::crashed:
      return Fate::crashed;
    case Trouble::torn:
      return Fate::torn;
    case Trouble::failed:
    case Trouble::failed_for_ever:
      if (change.call == storage::Call::remove) return Fate::done;  // a full disk fails no removal
      return trouble == Trouble::failed ? Fate::failed : Fate::failed_for_ever;
    case Trouble::power_lost:
      disk.lose_power(random);
      return Fate::crashed;
    case Trouble::clock_moved:
      step_clock(folder, random.uniform() < 0.5);
      return Fate::done;
    case Trouble::none:
      break;
  }
  return Fate::done;
}

/// The exit code of a process that is waited for; 128 and the signal if one has ended it.
inline int code_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace ganymede::cli
