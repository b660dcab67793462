#pragma once
// The folder of shards: its parts, as run_shard() writes them, and a reader for all runs that it holds.
//
//   shards.json             what the work is (`ganymede.shards/1`)
//   shard-3-of-64.rows      finished runs of one shard (common/row_file.hpp): the hash of shards.json, the run's key,
//   what
//                           became of it and its text, separated by tabs; the first row says what the work is

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"
#include "studies/shards.hpp"

namespace ganymede::studies {

/// The commands whose shards `ganymede merge` puts together.
inline constexpr const char* kSweepShards = "sweep";
inline constexpr const char* kValidateShards = "validate";
inline constexpr const char* kPlanShards = "plan";
inline constexpr const char* kLearnShards = "learn";

/// The text of `shards.json`.
std::string work_text(const ShardedWork& work);
/// Reads `shards.json` of a folder. Throws ConfigError if there is none or if it is no such file.
ShardedWork read_work(const std::filesystem::path& folder);
/// Throws ConfigError, which says what differs, unless both are the same work. `where` names what holds `other`.
void require_same_work(const ShardedWork& work, const ShardedWork& other, const std::string& where);

/// A file of rows.
struct ShardFile {
  Shard shard;
  std::filesystem::path path;
};
std::filesystem::path shard_path(const std::filesystem::path& folder, const Shard& shard);
/// The files of rows in a folder, by count of shards, then by index.
std::vector<ShardFile> shard_files(const std::filesystem::path& folder);

/// A row of a shard's file, apart from the first.
struct ShardRow {
  std::uint64_t key = 0;
  RowKind kind = RowKind::result;
  std::string_view text;
};
std::string row_text(std::uint64_t work, const ShardRow& row);
/// The text of a row that says which run it is of, because what it holds does not.
std::string row_holding(const ShardedWork& work, std::size_t run, Json held);
/// The value that row_holding() was given. Throws ConfigError for the text of another run.
JsonNode held_by_row(const ShardedWork& work, std::size_t run, std::string_view text);
/// Calls `read`, which reads the row of a run at a byte of a file; what it refuses is said with that place.
void read_row_at(const std::filesystem::path& file, std::uint64_t offset, const std::string& label,
                 const std::function<void()>& read);
/// The first row of a file.
std::string head_text(std::uint64_t work, const ShardedWork& whole);

/// Reads a file's rows. Throws ConfigError if a row is of other work than `work`, whose hash is `hash`. `remark` gets
/// the places of damaged rows. Begins at the byte `from`. Returns where the last whole line ends, in bytes.
std::uint64_t read_shard_file(const std::filesystem::path& file, const ShardedWork& work, std::uint64_t hash,
                              const std::function<void(const ShardRow& row, std::uint64_t offset)>& take,
                              const std::function<void(const std::string& what)>& remark, std::uint64_t from = 0);

/// Finished runs of a folder.
class ShardFolder {
 public:
  /// Reads the folder's `shards.json`. Throws ConfigError if it has none.
  explicit ShardFolder(std::filesystem::path folder);
  ~ShardFolder();
  ShardFolder(const ShardFolder&) = delete;
  ShardFolder& operator=(const ShardFolder&) = delete;

  const ShardedWork& work() const { return work_; }

  using Take = std::function<void(std::size_t run, RowKind kind, std::string_view text)>;
  using Remark = std::function<void(const std::string& what)>;
  /// Reads every row once, in no particular order, and remembers where each run's is. `take` gets the text of each row
  /// of a run that had none, or a worse one: a result replaces a failure; it may be empty. Rows that are damaged or of
  /// no run are left out and reported, damaged ones only while a run of their shard is missing. Throws ConfigError if a
  /// row is of other work, or if `take` refuses it.
  void scan(const Take& take, const Remark& remark);

  /// The outcome of a run, after scan(); nothing if it is missing.
  std::optional<RowKind> kind(std::size_t run) const;
  /// Calls `read` with the text of a run's row. Throws ConfigError with the row's place if that refuses it.
  void read(std::size_t run, const std::function<void(const std::string& text)>& read) const;
  /// The files that hold rows, and the count of shards that most of them were made with (0 if there is none).
  const std::vector<ShardFile>& files() const { return files_; }
  std::uint64_t shards() const;

 private:
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t file = 0, size = 0;
    std::uint8_t kind = 0;  ///< a RowKind; 0: missing
  };
  int open_file(std::size_t file) const;
  std::string text(std::size_t run) const;
  void report_damage(const std::vector<std::pair<std::size_t, std::string>>& damage, const Remark& remark) const;

  std::filesystem::path folder_;
  ShardedWork work_;
  std::vector<ShardFile> files_;
  std::vector<Place> places_;               ///< one for each run, after scan()
  mutable std::vector<int> open_;           ///< a descriptor for each file; -1: not open
  mutable std::deque<std::size_t> opened_;  ///< files that are open, the oldest first
};

// How far the shards of a folder are.

/// The runs that a folder of shards lacks. The folder must have been read, and outlive this.
class ShardStatus {
 public:
  explicit ShardStatus(const ShardFolder& folder);

  std::size_t missing() const { return missing_; }
  bool is_empty() const { return missing_ > 0 && missing_ == folder_.work().size(); }
  /// "3 of 8 runs are missing: LABEL; LABEL (--shard 1/4)".
  std::string missing_text() const;
  /// How many runs are done, and the shards that lack some, as a table that is fitted to `width` columns.
  std::string text(std::size_t width) const;

 private:
  struct Counts {
    std::size_t runs = 0, failed = 0, missing = 0;
  };
  std::string shards_to_do() const;

  const ShardFolder& folder_;
  std::size_t missing_ = 0;
  std::vector<std::string> labels_;         // of the first missing runs
  std::map<std::uint64_t, Counts> shards_;  // by index, of as many shards as most files were made with
};

}  // namespace ganymede::studies
