#include "traces/nccl_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "common/units.hpp"
#include "traces/inflated_text.hpp"
#include "traces/line_scanner.hpp"
#include "traces/nccl_collector.hpp"
#include "traces/run_lines.hpp"

namespace ganymede::traces {
namespace {

constexpr double kMaxError = 1e-2;  ///< older logs print the largest error of a sum, about 1e-7 for a correct one

using Collector = NcclCollector;

// ---- text ----

bool is_integer(const std::string& token) {
  return !token.empty() && token.size() < 19 && token.find_first_not_of("0123456789") == std::string::npos;
}

std::optional<double> number(std::string_view token) { return parse_number<double>(token); }

class TextReader {
 public:
  TextReader(const std::string& text, const std::filesystem::path& path) : text_(text), path_(path), out_(path) {}

  /// Reads all tables, and returns the first with those that repeat it.
  Collector read() {
    std::istringstream stream(text_);
    for (std::string line; std::getline(stream, line);) {
      ++number_;
      read_line(without_tags(std::move(line)));
    }
    end_table();
    if (!first_) return other_test_ ? *std::move(other_test_) : std::move(out_);
    for (const std::string& other : others_) first_->note(fmt::format("further tables are left out: {}", other));
    return *std::move(first_);
  }

 private:
  std::string where() const { return fmt::format("line {}", number_); }

  void end_table() {
    if (out_.empty()) return;
    if (out_.is_other_test()) {
      others_.push_back(fmt::format("another test up to line {}", number_));
      other_test_ = std::move(out_);
    } else if (!first_) {
      first_ = std::move(out_);
    } else if (!first_->join(out_)) {
      others_.push_back(fmt::format("{} up to line {}", out_.title(), number_));
    }
    out_ = Collector(path_);
    per_iteration_ = false;
  }

  /// The line without a launcher's tags: "[1,0]<stdout>:" of mpirun, "[0]" of others or "0: " of srun. Where the rows
  /// of a table come in pieces, mpirun and others tag each piece.
  static std::string without_tags(std::string line) {
    LineScanner scanner(line);
    scanner.skip_blanks();
    const std::string_view begin = scanner.rest();
    LineScanner tag = scanner;
    if (tag.skip("[") && !tag.digits().empty() &&
        (tag.skip("]") || (tag.skip(",") && !tag.digits().empty() && tag.skip("]<std") &&
                           !tag.word_until(">:").empty() && tag.skip(">:")))) {
      const std::string own(begin.substr(0, begin.size() - tag.rest().size()));
      for (std::size_t at = 0; (at = line.find(own, at)) != line.npos;) line.replace(at, own.size(), " ");
      return line;
    }
    if (!scanner.digits().empty() && scanner.skip(":") && scanner.skip_blank()) return std::string(scanner.rest());
    return line;
  }

  void read_line(std::string_view line) {
    constexpr std::string_view kProgram = "# Collective test starting: ", kVersion = "NCCL version ",
                               kLibrary = "nccl-library=";
    if (read_device(line)) return;
    if (line.find("# Collective test starting") != line.npos || line.find("# nThread") != line.npos) end_table();
    if (line.find("Per-Iteration Report") != line.npos) per_iteration_ = true;
    if (LineScanner threads(line); threads.skip_past("# nThread ")) {
      const auto count = number(threads.digits());
      if (const auto gpus = threads.skip(" nGpus ") ? number(threads.digits()) : std::nullopt;
          count && gpus && *count * *gpus <= kMostRanks)
        out_.set_gpus(static_cast<int>(*count), static_cast<int>(*gpus));
      return;
    }
    if (LineScanner program(line); program.skip_past(kProgram)) {
      if (const std::string_view name = program.word(); !name.empty())
        return out_.set_program(where(), std::string(name));
    }
    if (LineScanner version(line); version.skip_past(kVersion)) {
      const std::string_view begin = version.rest();
      if (!version.digits().empty() && version.skip(".") && !version.digits().empty() && version.skip(".") &&
          !version.digits().empty())
        return out_.set_version(std::string(begin.substr(0, begin.size() - version.rest().size())));
    }
    if (LineScanner library(line); library.skip_past(kLibrary)) {
      if (const std::string_view code = library.digits(); !code.empty()) return read_library(code);
    }
    if (const std::string collective = commanded_collective(line); !collective.empty()) {
      end_table();
      out_.set_command(collective);
    }
    if (const auto value = variable(line, "NCCL_ALGO"); !value.empty()) out_.set_algorithm(value);
    if (const auto value = variable(line, "NCCL_PROTO"); !value.empty()) out_.set_protocol(value);
    read_row(with_decimal_points(std::string(line)));
  }

  /// Where semicolons part the columns of a CSV, a comma between digits is that of a decimal fraction.
  static std::string with_decimal_points(std::string line) {
    constexpr std::ptrdiff_t kFewestColumns = 8;
    if (std::count(line.begin(), line.end(), ';') < kFewestColumns - 1) return line;
    const auto is_digit = [&](std::size_t at) { return at < line.size() && line[at] >= '0' && line[at] <= '9'; };
    for (std::size_t at = 1; at < line.size(); ++at)
      if (line[at] == ',' && is_digit(at - 1) && is_digit(at + 1)) line[at] = '.';
    return line;
  }

  /// The value of an environment variable in a command ("-x NCCL_ALGO=Ring") or in what NCCL says of it ("NCCL_ALGO set
  /// by environment to Ring"); "" if the line has none.
  static std::string_view variable(std::string_view line, std::string_view name) {
    LineScanner scanner(line);
    if (!scanner.skip_past(name) || !(scanner.skip("=") || scanner.skip(" set by environment to "))) return "";
    const std::string_view rest = scanner.rest();
    return rest.substr(0, rest.find_first_of(" \t\r\"';."));
  }

  /// Reads "#  Rank  0 Group  0 Pid   4711 on     node-a device  0 [0x07] NVIDIA A100-SXM4-40GB". Older logs have no
  /// group.
  bool read_device(std::string_view line) {
    LineScanner scanner(line);
    if (!scanner.skip_past("#") || !scanner.skip_blanks() || !scanner.skip("Rank") || !scanner.skip_blanks() ||
        scanner.digits().empty() || !scanner.skip_blanks())
      return false;
    std::string_view group = "0";
    if (scanner.skip("Group")) {
      if (!scanner.skip_blanks() || (group = scanner.digits()).empty() || !scanner.skip_blanks()) return false;
    }
    if (!scanner.skip("Pid") || !scanner.skip_blanks() || scanner.digits().empty() || !scanner.skip(" on") ||
        !scanner.skip_blanks())
      return false;
    const std::string_view host = scanner.word();
    if (host.empty() || !scanner.skip(" device") || !scanner.skip_blanks() || scanner.digits().empty() ||
        !scanner.skip(" [") || !scanner.skip_past("]"))
      return false;
    scanner.skip_blanks();
    std::string_view gpu = scanner.rest();  // empty where the driver does not say it
    while (gpu.ends_with('\r')) gpu.remove_suffix(1);
    const bool first = group.find_first_not_of('0') == std::string_view::npos;  // the group may have several digits
    out_.add_device(where(), first ? 0 : 1, std::string(host), std::string(gpu));
    return true;
  }

  void read_library(std::string_view code) {
    constexpr std::int64_t kMaxCode = 10'000'000;
    const auto value = parse_number<std::int64_t>(code);
    if (!value || *value > kMaxCode)
      out_.fail(where(), fmt::format("found nccl-library={}{}, expected a version's code such as 21803",
                                     code.substr(0, 20), code.size() > 20 ? "..." : ""));
    out_.set_version(version_of(*value));
  }

 public:
  /// The version that an NCCL_VERSION_CODE stands for: 21803 is 2.18.3, and 2804 is 2.8.4.
  static std::string version_of(std::int64_t code) {
    return code < 10000 ? fmt::format("{}.{}.{}", code / 1000, code % 1000 / 100, code % 100)
                        : fmt::format("{}.{}.{}", code / 10000, code % 10000 / 100, code % 100);
  }

 private:
  /// Reads a row of the table; any other line comes from another program and is skipped.
  void read_row(const std::string& line) {
    constexpr std::string_view kBetween = " \t\r,;\"";  // also of CSV, and of strings in JSON
    std::vector<std::string> tokens;
    for (std::size_t at = line.find_first_not_of(kBetween); at != line.npos;
         at = line.find_first_not_of(kBetween, at)) {
      const std::size_t end = std::min(line.find_first_of(kBetween, at), line.size());
      tokens.push_back(line.substr(at, end - at));
      at = end;
    }
    static const std::set<std::string> kTypes = {"int8",   "uint8",  "int32",  "uint32",   "int64",   "uint64",
                                                 "char",   "int",    "half",   "float",    "double",  "bfloat16",
                                                 "f8e4m3", "f8e5m2", "float8", "fp8_e4m3", "fp8_e5m2"};
    // Launchers and collectors of logs put words in front: the date, the time, the node, the rank, the process.
    constexpr std::size_t kMostWords = 12;
    std::size_t first = 0;
    const auto row_begins = [&] {
      const bool below_zero = tokens[first].starts_with('-');
      return tokens[first].find_first_not_of("0123456789", below_zero ? 1 : 0) == std::string::npos &&
             tokens[first + 1].find_first_not_of("-0123456789") == std::string::npos &&
             kTypes.contains(tokens[first + 2]);
    };
    while (first + 3 <= tokens.size() && first <= kMostWords && !row_begins()) ++first;
    if (first + 3 > tokens.size() || first > kMostWords) return;
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(first));
    try {
      read_columns(tokens);
    } catch (const UnreadableRow& row) {
      out_.leave_out(row);
    }
  }

  /// Reads the columns of a row from its size on.
  void read_columns(std::vector<std::string>& tokens) {
    if (!is_integer(tokens[0]))
      out_.refuse_row(where(), fmt::format("found a size of {} bytes, expected 0 to 10^18", tokens[0].substr(0, 40)));
    while (tokens.size() > 4 && is_time_of_day(tokens.back())) tokens.pop_back();  // of -S
    std::size_t next = 3;
    bool reduces = false;
    if (next < tokens.size() && tokens[next] != "N/A" && !number(tokens[next])) reduces = tokens[next++] != "none";
    const bool rooted = next < tokens.size() && has_root(tokens, next);
    const bool has_rank = rooted && tokens[next] != "-1";
    if (rooted) ++next;
    // With -I each side has four more columns, of each iteration.
    const std::size_t more = per_iteration_ || tokens.size() - next == 16 ? 4 : 0;
    // Some tables leave the column of errors out: then the time in place follows the first busbw.
    const bool has_errors = tokens.size() - next != 6 || !is_time(tokens, next + 3);
    const auto out = timing(tokens, next, "out of place", has_errors);
    next = std::min(next + more, tokens.size());
    std::optional<Collector::Timing> in;
    if (next < tokens.size()) in = timing(tokens, next, "in place", has_errors);
    out_.add_row(where(), std::stoll(tokens[0]), out, in);
    out_.set_operation(reduces, has_rank);
  }

  /// "2026-07-09" or "16:03:21".
  static bool is_time_of_day(const std::string& token) {
    return token.find_first_not_of("0123456789-:.TZ") == token.npos &&
           (std::count(token.begin(), token.end(), ':') >= 2 || std::count(token.begin(), token.end(), '-') == 2);
  }

  /// True if column `next` is a root, "-1" or a rank, which stands before the time since 2021. The algbw, which is the
  /// size divided by the time, tells which of two columns is the time.
  static bool has_root(const std::vector<std::string>& tokens, std::size_t next) {
    if (tokens[next] == "-1") return true;
    if (!is_integer(tokens[next]) || next + 2 >= tokens.size()) return false;
    return off_algbw(tokens, next + 1) < off_algbw(tokens, next);
  }

  /// How far a column and the next one are from a time in us and its algbw, relative.
  static double off_algbw(const std::vector<std::string>& tokens, std::size_t time) {
    const double us = number(tokens[time]).value_or(0), algbw = number(tokens[time + 1]).value_or(0);
    return us > 0 ? std::abs(algbw - std::stod(tokens[0]) / us * 1e-3) / (0.01 + algbw) : 1e9;
  }
  static bool is_time(const std::vector<std::string>& tokens, std::size_t next) {
    return off_algbw(tokens, next) < 0.5;
  }

  Collector::Timing timing(const std::vector<std::string>& tokens, std::size_t& next, const char* which,
                           bool has_errors) {
    constexpr std::array kColumns = {"time", "algbw", "busbw"};
    std::array<double, 3> values{};
    for (std::size_t i = 0; i < values.size(); ++i, ++next) {
      if (next >= tokens.size())
        out_.refuse_row(where(), fmt::format("found no {} {}, expected time, algbw and busbw: is the log cut off?",
                                             kColumns[i], which));
      const auto value = number(tokens[next]);
      if (!value || !std::isfinite(*value))
        out_.refuse_row(where(),
                        fmt::format("found \"{}\" for the {} {}, expected a number", tokens[next], kColumns[i], which));
      values[i] = *value;
    }
    const bool checked = !has_errors || next >= tokens.size() || check_errors(tokens[next++]);
    return {values[0], values[1], values[2], checked};
  }

  /// False if the results were not validated.
  bool check_errors(const std::string& token) {
    if (token == "N/A") return false;
    const auto value = number(token);
    if (!value || !std::isfinite(*value) || *value > kMaxError)
      out_.fail(where(), fmt::format("found \"{}\" wrong results, expected 0: nothing of a faulty run is used", token));
    return true;
  }

  static constexpr double kMostRanks = 1e6;

  const std::string& text_;
  const std::filesystem::path& path_;
  Collector out_;                   // of the table that is read
  std::optional<Collector> first_;  // the first table, and those that repeat it
  std::optional<Collector> other_test_;
  std::vector<std::string> others_;
  bool per_iteration_ = false;
  int number_ = 0;
};

/// Without colours; the cells of tables in Markdown and CSV become words.
std::string plain_text(const std::string& text) {
  std::string plain = without_colours(text);
  std::replace(plain.begin(), plain.end(), '|', ' ');
  return plain;
}

/// The strings of JSON around a log, each in a line: a notebook, or what containers and clouds keep of each line.
std::string strings_of(const std::string& json) {
  std::string out;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const bool escape = json[i] == '\\' && i + 1 < json.size();
    if (escape) ++i;
    out += json[i] == '"' || (escape && json[i] == 'n') ? '\n' : escape && json[i] == 't' ? ' ' : json[i];
  }
  return out;
}

// ---- JSON ----

Collector::Timing timing_of(const JsonNode& node) {
  if (!node.is_object()) node.expected("an object with time, alg_bw and bus_bw");
  const auto& members = node.value();
  for (const char* key : {"time", "alg_bw", "bus_bw"})
    if (!members.contains(key)) node.fail(fmt::format("\"{}\" is missing; is it a run with --report_cputime?", key));
  const auto wrong = members.find("nwrong");
  const bool checked = wrong != members.end() && !wrong->is_null() && *wrong != Json("N/A");
  if (const double count = checked ? node.child("nwrong").as_number(0, 1e18) : 0; count > 0)
    node.fail(fmt::format("found {} wrong results, expected 0: nothing of a faulty run is used", count));
  return {node.child("time").as_number(0, 1e15), node.child("alg_bw").as_number(0, 1e9),
          node.child("bus_bw").as_number(0, 1e9), checked};
}

void read_json(const JsonNode& root, Collector& out) {
  const auto& members = root.value();
  const auto has = [](const JsonNode& node, const char* key) { return node.is_object() && node.value().contains(key); };
  if (!has(root, "results")) root.fail("\"results\" is missing; expected the file that nccl-tests -J writes");
  if (has(root, "args") && members["args"].is_array() && !members["args"].empty() && members["args"][0].is_string())
    out.set_program("/args/0", members["args"][0].get<std::string>());
  if (has(root, "nccl_version"))
    out.set_version(TextReader::version_of(root.child("nccl_version").as_integer(1000, 10'000'000)));
  if (has(root, "config") && has(root.child("config"), "ngpus")) {
    const JsonNode config = root.child("config");
    const auto count = [&](const char* key) {
      return has(config, key) ? static_cast<int>(config.child(key).as_integer(1, 1 << 10)) : 1;
    };
    out.set_gpus(count("nthreads"), count("ngpus"));
  }
  if (has(root, "config") && has(root.child("config"), "devices"))
    for (const JsonNode& device : root.child("config").child("devices").as_array()) {
      const auto text = [&](const char* key) {
        return has(device, key) && device.value()[key].is_string() ? device.value()[key].get<std::string>() : "";
      };
      const int group = has(device, "group") ? static_cast<int>(device.child("group").as_integer(0, 1'000'000)) : 0;
      out.add_device(device.pointer(), group, text("hostname"), text("device_info"));
    }
  for (const JsonNode& row : root.child("results").as_array()) {
    if (!has(row, "size")) row.fail("\"size\" is missing");
    if (!has(row, "out_of_place")) row.fail("\"out_of_place\" is missing");
    std::optional<Collector::Timing> in;
    const bool any = row.child("size").as_integer(0, std::int64_t{1} << 60) > 0;
    const bool only_in = row.value()["out_of_place"].is_null();  // a replayed trace has only in-place results
    if (has(row, "in_place") && !row.value()["in_place"].is_null() && any) in = timing_of(row.child("in_place"));
    if (only_in && !in) row.fail("found neither out_of_place nor in_place");
    const Collector::Timing timing = !any ? Collector::Timing{} : only_in ? *in : timing_of(row.child("out_of_place"));
    try {
      out.add_row(row.pointer(), row.value()["size"].get<std::int64_t>(), timing, in);
    } catch (const UnreadableRow& unreadable) {
      out.leave_out(unreadable);
    }
  }
}

}  // namespace

const std::string& NcclLog::where(std::int64_t bytes) const {
  return std::find_if(rows.begin(), rows.end(), [&](const NcclRow& row) { return row.bytes == bytes; })->where;
}

NcclLog read_nccl_log(const std::filesystem::path& path) {
  const std::string text = inflated_text(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return TextReader(plain_text(text), path).read().finish();
  if (text.find("# Using devices") != text.npos || text.find("algbw") != text.npos)
    return TextReader(plain_text(strings_of(text)), path).read().finish();
  Collector collector(path);
  read_json(JsonNode::parse(text, path.string()), collector);
  return collector.finish();
}

}  // namespace ganymede::traces
