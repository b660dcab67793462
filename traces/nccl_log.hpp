#pragma once
// What NVIDIA's nccl-tests print: the table on standard output, and the JSON of their -J. Its environment, which holds
// whatever the shell did, is not looked at.
//
// Text is taken from logs as people keep them: launchers' prefixes ("[1,0]<stdout>:", "0: "), other programs' lines in
// between, no header. Columns: size, count, type, reduction and, since 2021, root; then time, algbw and busbw, and
// errors or "#wrong"; the same again in place, unless somebody cut it off.
//
// Source of the formats: NVIDIA/nccl-tests src/common.cu (up to 2.16) and src/util.cu (2.17).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

struct NcclRow {
  std::string where;  ///< "line 12", "/results/3"
  std::int64_t bytes = 0;
  Seconds out_of_place;
  std::optional<Seconds> in_place;
};

struct NcclLog {
  std::string file;
  std::string collective;            ///< "all-reduce", "reduce-scatter", "all-gather", "broadcast"; empty: not stated
  int ranks = 0;                     ///< 0: not stated
  int nodes = 0;                     ///< hosts; 0: not stated
  std::string gpu;                   ///< of rank 0, as the driver names it; empty: not stated
  std::string version;               ///< of NCCL, "2.18.3"; empty: not stated
  std::optional<double> bus_factor;  ///< busbw / algbw; absent: no row is fast enough to tell
  std::vector<NcclRow> rows;         ///< at least one; sizes ascend, above zero
  std::vector<std::string> notes;    ///< what was left out or could not be known, for people
};

/// Not readable, no table, a row cut short, a time that is no number, wrong results, rows of several collectives or
/// communicators: ConfigError with the place. Rows of 0 bytes are left out and noted.
NcclLog read_nccl_log(const std::filesystem::path& path);

}  // namespace ganymede
