#pragma once
// The rows of a log of nccl-tests, gathered and checked one by one.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "traces/line_scanner.hpp"
#include "traces/nccl_log.hpp"

namespace ganymede::traces {

/// An all-gather by sends and receives along a hypercube. Its test divides by the bytes that come from other ranks.
constexpr std::string_view kHypercube = "hypercube";

/// The collective of a program's name: "all_reduce_perf" with any path and suffix is "all-reduce".
inline std::string collective_of(std::string_view program) {
  // In this order, because all_reduce_perf ends with reduce_perf, and all_gather_perf with gather_perf.
  constexpr std::array<std::array<std::string_view, 2>, 10> kPrograms{{{"all_reduce_perf", "all-reduce"},
                                                                       {"reduce_scatter_perf", "reduce-scatter"},
                                                                       {"all_gather_perf", "all-gather"},
                                                                       {"broadcast_perf", "broadcast"},
                                                                       {"alltoall_perf", "all-to-all"},
                                                                       {"sendrecv_perf", "send-receive"},
                                                                       {"reduce_perf", "reduce"},
                                                                       {"gather_perf", "gather"},
                                                                       {"scatter_perf", "scatter"},
                                                                       {"hypercube_perf", kHypercube}}};
  for (const auto& [name, collective] : kPrograms)
    if (program.find(name) != std::string_view::npos) return std::string(collective);
  return "";
}

/// The collective of the one test that a command such as "mpirun -np 8 ./build/alltoall_perf -b 8" runs; "" if the line
/// is no command, or of several tests.
inline std::string commanded_collective(std::string_view line) {
  if (line.find("_perf") == line.npos) return "";
  std::string found;
  LineScanner scanner(line);
  for (scanner.skip_blanks(); !scanner.rest().empty(); scanner.skip_blanks()) {
    const std::string_view word = scanner.word();
    const std::string_view name = word.substr(word.rfind('/') + 1);
    const std::string collective = name.ends_with("_perf") || name.ends_with("_perf_mpi") ? collective_of(name) : "";
    if (collective.empty()) continue;
    LineScanner next = scanner;
    if (name.size() == word.size() && !(next.skip_blanks() && next.skip("-"))) continue;
    if (!found.empty() && found != collective) return "";
    found = collective;
  }
  return found;
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
    if (by_command_) log_.collective.clear();
    by_command_ = false;
    if (!log_.collective.empty() && !collective.empty() && log_.collective != collective)
      fail(where, fmt::format("found {} after {}, expected one collective a log", collective, log_.collective));
    log_.collective = collective;
  }

  /// Takes the collective of the command that a log shows, if the tests do not name it themselves. Commands of several
  /// tests before one table name none.
  void set_command(const std::string& collective) {
    if (!by_command_ && !log_.collective.empty()) return;
    log_.collective = !by_command_ || log_.collective == collective ? collective : "";
    by_command_ = true;
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
    bool checked = true;  ///< whether the results were
  };
  void add_row(const std::string& where, std::int64_t bytes, Timing out, std::optional<Timing> in) {
    if (bytes == 0) return log_.notes.push_back(where + ": 0 bytes, left out");
    if (bytes < 0) fail(where, fmt::format("found a size of {}, expected zero or more bytes", bytes));
    check_time(where, bytes, out);
    if (in) check_time(where, bytes, *in);
    out.algbw /= counted_part();
    check_factor(where, out);
    if (!out.checked) note("the results were not validated (-c 0)");
    if (in && out.checked && !in->checked) lacks_in_place_ = true;
    bandwidths_.push_back({out.algbw, out.busbw});
    NcclRow row{where, bytes, Seconds{out.microseconds * 1e-6}, {}};
    if (in) row.in_place = Seconds{in->microseconds * 1e-6};
    add(std::move(row), 1);
  }

  /// Takes the rows of a further table in. Returns false, and takes nothing, if it is of another collective or of other
  /// ranks.
  bool join(const NcclCollector& other) {
    const NcclLog& more = other.log_;
    if (more.collective != log_.collective && !(more.collective.empty() && by_command_)) return false;
    if (other.reduces_ != reduces_ || other.has_root_ != has_root_ || more.ranks != log_.ranks ||
        other.hosts_ != hosts_)
      return false;
    if (more.bus_factor && log_.bus_factor && std::abs(*more.bus_factor - *log_.bus_factor) > kFactorTolerance)
      return false;
    for (const NcclRow& row : more.rows) add(row, other.times_.at(row.bytes));
    bandwidths_.insert(bandwidths_.end(), other.bandwidths_.begin(), other.bandwidths_.end());
    lacks_in_place_ = lacks_in_place_ || other.lacks_in_place_;
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
    name_collective();
    if (log_.collective == kHypercube) {
      log_.collective = "all-gather";
      note("hypercube_perf gathers by sends along a hypercube; it is compared with NCCL's all-gather");
    }
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

  /// True if what is printed, with two decimals, may be busbw = factor * algbw in all rows.
  bool has_factor(double factor) const {
    constexpr double kRounding = 0.006;
    return std::all_of(bandwidths_.begin(), bandwidths_.end(), [&](const std::array<double, 2>& row) {
      return std::abs(row[1] - factor * row[0]) <= kRounding * (1 + factor);
    });
  }

  /// The collectives that the columns and busbw / algbw may be of, the likeliest first: by whether it reduces, has a
  /// root, and by the factor, which nccl-tests define for each (doc/PERFORMANCE.md): (n - 1) / n of n ranks, twice
  /// that, or 1. All-to-all and send-receive are the tests that do not validate what they do in place.
  std::vector<std::string> possible_collectives() const {
    if (!reduces_ || log_.ranks == 1) return {};
    const double share = log_.ranks > 1 ? 1 - 1.0 / log_.ranks : 0;
    std::array<bool, 3> is{has_factor(share), has_factor(1), has_factor(2 * share)};
    if (log_.ranks < 2 || is == std::array{false, false, false}) {
      constexpr double kMostShare = 0.99;  // of ranks that are not known
      const double factor = log_.bus_factor.value_or(1);
      const auto near = [&](double expected) { return std::abs(factor - expected) < kFactorTolerance; };
      if (share > 0)
        is = {near(share), near(1), near(2 * share)};
      else
        is = {(factor < kMostShare), near(1), (factor > 1 - kFactorTolerance)};
      if (!log_.bus_factor) is = {true, true, true};
    }
    const auto [is_share, is_one, is_double] = is;
    std::vector<std::string> out;
    const auto may_be = [&](bool is_it, const char* name) {
      if (is_it) out.emplace_back(name);
    };
    may_be(*reduces_ && !has_root_ && is_double, "all-reduce");
    may_be(*reduces_ && !has_root_ && is_share, "reduce-scatter");
    may_be(*reduces_ && has_root_ && is_one, "reduce");
    may_be(!*reduces_ && has_root_ && is_one, "broadcast");
    may_be(!*reduces_ && has_root_ && is_share, "gather");
    may_be(!*reduces_ && has_root_ && is_share, "scatter");
    may_be(!*reduces_ && !has_root_ && is_share && !lacks_in_place_, "all-gather");
    may_be(!*reduces_ && !has_root_ && is_share, "all-to-all");
    may_be(!*reduces_ && !has_root_ && is_one, "send-receive");
    return out;
  }

  /// Names the collective of a log that does not, or whose command is of another test than its columns. It stays "" if
  /// nothing tells, or if it may be an all-reduce, as which it is taken.
  void name_collective() {
    if (log_.collective == kHypercube || (!log_.collective.empty() && !by_command_)) return;
    const auto possible = possible_collectives();
    if (!log_.collective.empty() &&
        (possible.empty() || std::find(possible.begin(), possible.end(), log_.collective) != possible.end()))
      return;
    log_.collective = possible.empty() || possible.front() == "all-reduce" ? "" : possible.front();
    const std::string by = log_.bus_factor ? fmt::format(" and busbw / algbw = {:.3g}", *log_.bus_factor) : "";
    if (possible.size() > 1 && (log_.bus_factor || !log_.collective.empty()))
      note(fmt::format("the log does not name its collective; by its columns{} it may be {}; taken as {}", by,
                       fmt::join(possible, " or "), possible.front()));
    else if (!log_.collective.empty())
      note(fmt::format("the log does not name its collective; by its columns{} it is {}", by, log_.collective));
  }

  /// The part of the bytes by which the log's algbw is counted: hypercube_perf leaves out each rank's own.
  double counted_part() const {
    const int ranks = std::max(log_.ranks, listed_ranks_);
    return log_.collective == kHypercube && ranks > 1 ? (ranks - 1.0) / ranks : 1;
  }

  void check_time(const std::string& where, std::int64_t bytes, const Timing& timing) const {
    if (!std::isfinite(timing.microseconds) || timing.microseconds <= 0)
      refuse_row(where, fmt::format("found a time of {} us, expected above zero", timing.microseconds));
    // Only two decimals are printed, so that the check allows for rounding; a value such as 0.01 tells hardly anything.
    const double expected = static_cast<double>(bytes) / timing.microseconds * 1e-3 * counted_part();
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
  std::map<std::int64_t, int> times_;              // that a size was measured
  std::vector<std::array<double, 2>> bandwidths_;  // algbw and busbw of each row
  bool lacks_in_place_ = false;                    // validated out of place only
  bool by_command_ = false;                        // whether the collective is that of a command
  int listed_ranks_ = 0;
  std::optional<bool> reduces_;
  bool has_root_ = false;
  std::string other_test_, first_unreadable_;
  int unreadable_ = 0;
};

}  // namespace ganymede::traces
