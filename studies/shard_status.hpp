#pragma once
// How far the shards of a folder are.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "studies/shard_folder.hpp"

namespace ganymede::studies {

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
