#pragma once
// The rows of a log of nccl-tests, gathered and checked one by one.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "traces/nccl_log.hpp"

namespace ganymede::traces {

/// The collective of a program's name: "all_reduce_perf" with any path and suffix is "all-reduce".
inline std::string collective_of(std::string_view program) {
  // A name that others end with stands behind them.
  constexpr std::array<std::array<std::string_view, 2>, 9> kPrograms{{{"all_reduce_perf", "all-reduce"},
                                                                      {"reduce_scatter_perf", "reduce-scatter"},
                                                                      {"all_gather_perf", "all-gather"},
                                                                      {"broadcast_perf", "broadcast"},
                                                                      {"alltoall_perf", "all-to-all"},
                                                                      {"sendrecv_perf", "send-receive"},
                                                                      {"reduce_perf", "reduce"},
                                                                      {"gather_perf", "gather"},
                                                                      {"scatter_perf", "scatter"}}};
  for (const auto& [name, collective] : kPrograms)
    if (program.find(name) != std::string_view::npos) return std::string(collective);
  return "";
}

/// A row that says nothing, and is left out.
struct UnreadableRow : ConfigError {
  using ConfigError::ConfigError;
};

/// Collects the rows of either format and checks each against the rows before.
class NcclCollector {
 public:
  explicit NcclCollector(const std::filesystem::path& path) { log_.file = path.string(); }

  [[noreturn]] void fail(const std::string& where, const std::string& message) const {
    throw ConfigError(fmt::format("{}: {}: {}", log_.file, where, message));
  }

  [[noreturn]] void refuse_row(const std::string& where, const std::string& message) const {
    throw UnreadableRow(fmt::format("{}: {}: {}", log_.file, where, message));
  }
  void leave_out(const UnreadableRow& row) {
    if (unreadable_++ == 0) first_unreadable_ = row.what();
  }

  /// A test of another kind is known only by finish(), which refuses it: it may stand beside others in one log.
  void set_program(const std::string& where, const std::string& program) {
    const std::string collective = collective_of(program);
    other_test_.clear();
    if (collective.empty())
      other_test_ =
          fmt::format("{}: {}: found the test \"{}\", whose collective is not known", log_.file, where, program);
    if (!log_.collective.empty() && !collective.empty() && log_.collective != collective)
      fail(where, fmt::format("found {} after {}, expected one collective a log", collective, log_.collective));
    log_.collective = collective;
  }

  void set_version(const std::string& version) {
    if (log_.version.empty()) log_.version = version;
  }

  /// Takes the value of NCCL_ALGO or NCCL_PROTO, if it is one name.
  void set_forced(std::string& member, std::string_view value, std::span<const std::string_view> names) {
    std::string name = lower_case(std::string(value));
    if (name == "nvlstree") name = "nvls-tree";
    if (std::find(names.begin(), names.end(), name) != names.end()) member = name;
  }
  void set_algorithm(std::string_view value) {
    constexpr std::array<std::string_view, 4> kNames{"ring", "tree", "nvls", "nvls-tree"};
    set_forced(log_.algorithm, value, kNames);
  }
  void set_protocol(std::string_view value) {
    constexpr std::array<std::string_view, 3> kNames{"ll", "ll128", "simple"};
    set_forced(log_.protocol, value, kNames);
  }

  void add_device(const std::string& where, int group, const std::string& host, const std::string& gpu) {
    if (group != 0) fail(where, "found a second group of ranks, expected one communicator");
    if (log_.gpu.empty()) log_.gpu = gpu;
    ++log_.ranks;
    hosts_.insert(host);
  }

  struct Timing {
    double microseconds = 0, algbw = 0, busbw = 0;
  };
  void add_row(const std::string& where, std::int64_t bytes, const Timing& out, const std::optional<Timing>& in) {
    if (bytes == 0) return log_.notes.push_back(where + ": 0 bytes, left out");
    if (bytes < 0) fail(where, fmt::format("found a size of {}, expected zero or more bytes", bytes));
    check_time(where, bytes, out);
    if (in) check_time(where, bytes, *in);
    check_factor(where, out);
    NcclRow row{where, bytes, Seconds{out.microseconds * 1e-6}, {}};
    if (in) row.in_place = Seconds{in->microseconds * 1e-6};
    add(std::move(row), 1);
  }

  /// Takes the rows of a further table in. Returns false, and takes nothing, if it is of another collective or of other
  /// ranks.
  bool join(const NcclCollector& other) {
    const NcclLog& more = other.log_;
    if (more.collective != log_.collective || more.ranks != log_.ranks || other.hosts_ != hosts_) return false;
    if (more.bus_factor && log_.bus_factor && std::abs(*more.bus_factor - *log_.bus_factor) > kFactorTolerance)
      return false;
    for (const NcclRow& row : more.rows) add(row, other.times_.at(row.bytes));
    return true;
  }
  bool empty() const { return log_.rows.empty() && unreadable_ == 0; }
  bool is_other_test() const { return !other_test_.empty(); }
  /// "all-gather over 8 ranks".
  std::string title() const {
    return fmt::format("{} over {} ranks", log_.collective.empty() ? "another collective" : log_.collective,
                       log_.ranks);
  }

  /// The tests' own line on threads and GPUs. Devices are listed with MPI for all processes, without it for the first
  /// thread only.
  void set_gpus(int threads, int gpus_of_thread) { listed_ranks_ = threads * gpus_of_thread; }

  void note(std::string text) {
    if (std::find(log_.notes.begin(), log_.notes.end(), text) == log_.notes.end())
      log_.notes.push_back(std::move(text));
  }

  NcclLog finish() {
    if (is_other_test()) throw ConfigError(other_test_);
    if (log_.rows.empty())
      throw ConfigError(unreadable_ > 0
                            ? first_unreadable_
                            : log_.file + ": found no row with a size and a time, expected what nccl-tests print");
    if (unreadable_ > 0)
      note(fmt::format("{} row(s) that cannot be read are left out; the first: {}", unreadable_, first_unreadable_));
    log_.nodes = static_cast<int>(hosts_.size());
    if (log_.nodes == 1) log_.ranks = std::max(log_.ranks, listed_ranks_);
    if (log_.collective.empty()) log_.collective = inferred_collective();
    for (const auto& [bytes, times] : times_)
      if (times > 1) {
        note(fmt::format("sizes that were measured several times, such as {} bytes {} times, have their mean", bytes,
                         times));
        break;
      }
    return std::move(log_);
  }

  void set_operation(bool reduces, bool has_root) {
    reduces_ = reduces;
    has_root_ = has_root;
  }

 private:
  static constexpr double kFactorTolerance = 0.03;

  /// Adds a row in the order of sizes; if there is one of that size, both get their mean over `times` more.
  void add(NcclRow row, int times) {
    const auto at = std::lower_bound(log_.rows.begin(), log_.rows.end(), row.bytes,
                                     [](const NcclRow& other, std::int64_t bytes) { return other.bytes < bytes; });
    int& before = times_[row.bytes];
    if (at != log_.rows.end() && at->bytes == row.bytes) {
      const double share = static_cast<double>(times) / (before + times);
      at->out_of_place = Seconds{at->out_of_place.si + share * (row.out_of_place.si - at->out_of_place.si)};
      if (at->in_place && row.in_place)
        at->in_place = Seconds{at->in_place->si + share * (row.in_place->si - at->in_place->si)};
    } else {
      log_.rows.insert(at, std::move(row));
    }
    before += times;
  }

  /// The collective of a log that does not name it, by whether it reduces, has a root, and by busbw / algbw, which
  /// nccl-tests define for each (doc/PERFORMANCE.md): (n - 1) / n of n ranks, twice that, or 1. Returns "" if these do
  /// not tell, or if it may be an all-reduce; of two ranks its factor is 1 too.
  std::string inferred_collective() {
    constexpr double kMostShare = 0.97;  // of 32 ranks; of more it is hardly told from 1
    if (!log_.bus_factor || !reduces_) return "";
    const bool is_share = *log_.bus_factor < kMostShare, is_one = std::abs(*log_.bus_factor - 1) < kFactorTolerance;
    const std::string found = is_share               ? *reduces_ ? "reduce-scatter" : "all-gather"
                              : is_one && has_root_  ? *reduces_ ? "reduce" : "broadcast"
                              : is_one && !*reduces_ ? "send-receive"
                                                     : "";
    if (!found.empty())
      note(fmt::format("the log does not name its collective; by its columns and busbw / algbw = {:.2f} it is {}{}",
                       *log_.bus_factor, found,
                       found == "all-gather" ? ", unless it is an all-to-all, whose columns are the same" : ""));
    return found;
  }

  void check_time(const std::string& where, std::int64_t bytes, const Timing& timing) const {
    if (!std::isfinite(timing.microseconds) || timing.microseconds <= 0)
      refuse_row(where, fmt::format("found a time of {} us, expected above zero", timing.microseconds));
    // Only two decimals are printed, so that the check allows for rounding; a value such as 0.01 tells hardly anything.
    const double expected = static_cast<double>(bytes) / timing.microseconds * 1e-3;
    if (std::abs(timing.algbw - expected) > 0.006 + 0.02 * expected)
      refuse_row(where, fmt::format("found algbw {} GB/s, expected {:.2f} of {} bytes in {} us: are columns missing?",
                                    timing.algbw, expected, bytes, timing.microseconds));
  }

  void check_factor(const std::string& where, const Timing& timing) {
    if (timing.algbw < 1 || timing.busbw <= 0) return;  // two decimals are too few for such values
    const double factor = timing.busbw / timing.algbw;
    if (log_.bus_factor && std::abs(factor - *log_.bus_factor) > kFactorTolerance)
      fail(where, fmt::format("found busbw / algbw = {:.2f}, {:.2f} before: another collective or other ranks", factor,
                              *log_.bus_factor));
    log_.bus_factor = factor;  // the last row has the largest sizes and the most digits
  }

  NcclLog log_;
  std::set<std::string> hosts_;
  std::map<std::int64_t, int> times_;  // that a size was measured
  int listed_ranks_ = 0;
  std::optional<bool> reduces_;
  bool has_root_ = false;
  std::string other_test_, first_unreadable_;
  int unreadable_ = 0;
};

}  // namespace ganymede::traces
