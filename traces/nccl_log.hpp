#pragma once
// Reads what NVIDIA's nccl-tests print: the table on standard output, and the JSON of their option -J, except for the
// environment variables in it, which may hold secrets.
//
// The table may come from a log with launchers' prefixes ("[1,0]<stdout>:", "0: ", dates, names of pods), lines of
// other programs, colours of a terminal, or no header; it may be in UTF-16 or in Markdown. Its columns are size, count,
// type, reduction and, since 2021, root; then time, algbw and busbw, and errors or
// "#wrong"; then the same for the operation in place, which may be cut off.
//
// Source of the formats: NVIDIA/nccl-tests src/common.cu (up to 2.16) and src/util.cu (2.17).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede::traces {

struct NcclRow {
  std::string where;  ///< place in the file: "line 12" or "/results/3"
  std::int64_t bytes = 0;
  Seconds out_of_place;
  std::optional<Seconds> in_place;
};

struct NcclLog {
  std::string file;
  std::string collective;  ///< as sim::to_string() names it, "all-reduce" or "send-receive"; empty: unknown
  int ranks = 0;           ///< 0: unknown
  int nodes = 0;           ///< hosts; 0: unknown
  std::string gpu;         ///< the GPU of rank 0 as the driver names it; empty: unknown
  std::string version;     ///< NCCL's version, "2.18.3"; empty: unknown
  /// What NCCL_ALGO and NCCL_PROTO force, if the log shows them with one value: "ring", "simple"; empty: unknown.
  std::string algorithm, protocol;
  /// busbw / algbw; nothing if algbw is below 1 GB/s in all rows, because two decimals are too few then.
  std::optional<double> bus_factor;
  std::vector<NcclRow> rows;       ///< at least one, by ascending size, all above zero
  std::vector<std::string> notes;  ///< messages for people about what was left out or is unknown

  /// The place of the row of that size, which must exist.
  const std::string& where(std::int64_t bytes) const;
};

/// Reads a log. Sizes that were measured several times, in cycles (-N) or in further tables of the same collective and
/// ranks, get their mean; tables of others are left out and noted, as are rows of 0 bytes. A collective that the log
/// does not name is inferred from its columns, with a note. A row that is cut short or whose columns contradict each
/// other is left out and noted. Throws ConfigError with the place if nothing can be read, or for a test of another
/// kind alone, wrong results, or several communicators.
NcclLog read_nccl_log(const std::filesystem::path& path);

}  // namespace ganymede::traces
