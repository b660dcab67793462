#include "traces/quality_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "traces/pace_points.hpp"
#include "traces/run_lines.hpp"
#include "traces/run_pace.hpp"

namespace ganymede::traces {
namespace {

double number_in(const std::string& text, const std::string& where, const std::string& what, bool zero_is_fine) {
  constexpr double kLargest = 1e15;                                                     // images, as for goals
  const auto value = zero_is_fine ? whole_count_of(text) : parse_number<double>(text);  // of counts, also "1,000"
  if (!value || !(zero_is_fine ? *value >= 0 : *value > 0) || !(*value <= kLargest))
    throw ConfigError(fmt::format("{}: found {} {}, expected {}{}", where, what, text.empty() ? "nothing" : text,
                                  zero_is_fine ? "a number, zero or above" : "a number above zero",
                                  value > kLargest ? " and up to 1e15" : ""));
  return *value;
}

/// Whether a text says a time of the day, as lines of loggers do.
bool has_clock(std::string_view text) {
  for (std::size_t at = text.find(':', 1); at != text.npos; at = text.find(':', at + 1))
    if (std::isdigit(static_cast<unsigned char>(text[at - 1])) && at + 1 < text.size() &&
        std::isdigit(static_cast<unsigned char>(text[at + 1])))
      return true;
  return false;
}

/// Whether the first line of a text is that of a table with FIDs.
bool is_table(const std::string& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const std::string first = lower_case(text.substr(begin, text.find('\n', begin) - begin));
  return !has_clock(first) && (first.find("fid") != first.npos || first.starts_with("wall time,"));
}

/// The FIDs of a log that says how a training goes on: StyleGAN's stats.jsonl or log.txt, JSON lines of MMEngine or
/// BigGAN-PyTorch, or metric-*.txt of StyleGAN in TensorFlow.
/// Nothing if it is no such log or has none. Tables and StudioGAN's logs have readers of their own, which know more.
std::optional<QualityLog> quality_of_run(const std::filesystem::path& file, const std::string& text,
                                         const QualityLogOptions& options) {
  if (text.find("FID score (Step:") != std::string::npos || text.find("\nfid") != std::string::npos)
    return std::nullopt;
  constexpr std::string_view kKeys[] = {"\"Progress/kimg\"", "sec/kimg", "\"iter\"",  "\"step\"",
                                        "\"itr\"",           "\"kimg\"", "\"_step\"", "network-snapshot-"};
  const bool known = std::any_of(std::begin(kKeys), std::end(kKeys),
                                 [&](std::string_view key) { return text.find(key) != text.npos; });
  if (!known && (is_table(text) || !has_clock(text))) return std::nullopt;
  if (text.find("ganymede.") != text.npos) return std::nullopt;
  const auto run = read_run_pace(text, file.string());
  if (!run || (run->fids.empty() && (!known || run->points.empty()))) return std::nullopt;
  QualityLog log;
  log.run = file.stem().string();
  log.facts["reference"] = run->reference;
  for (const RunPace::Fid& at : run->fids)
    add_point(log, {at.count * (run->counts_images ? 1 : images_of_step(file.string(), options)), at.fid});
  if (log.points.empty())
    throw ConfigError(fmt::format("{}: found no FID after the first step among {} lines of its progress", file.string(),
                                  run->points.size()));
  return log;
}

std::string line_place(const std::filesystem::path& file, int line) {
  return fmt::format("{}: line {}", file.string(), line);
}

/// Thousands of images in the name of a snapshot, "network-snapshot-025000.pkl".
double snapshot_images(const JsonNode& node) {
  const std::string name = node.as_string();
  const std::size_t dash = name.rfind('-'), dot = name.rfind('.');
  const std::string digits = dash == std::string::npos ? "" : name.substr(dash + 1, dot - dash - 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos || digits.size() > 9)
    node.expected("a snapshot named with its thousands of images, such as \"network-snapshot-000200.pkl\"");
  return 1e3 * std::stod(digits);
}

/// The text after `key` in `line` up to one of `ends`, without spaces around it.
std::string text_after(const std::string& line, const std::string& key, const char* ends) {
  const std::size_t at = line.find(key);
  if (at == std::string::npos) return "";
  const std::size_t begin = line.find_first_not_of(' ', at + key.size());
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_first_of(ends, begin) - begin);
}

}  // namespace

void add_point(QualityLog& log, const QualityLog::Point& point) {
  if (point.images == 0) return;  // of networks that were not trained yet
  // Points are kept in the order of their images.
  const auto same =
      std::lower_bound(log.points.begin(), log.points.end(), point.images,
                       [](const QualityLog::Point& other, double images) { return other.images < images; });
  if (same != log.points.end() && same->images == point.images) {
    same->fid = point.fid;
    const bool noted = !log.notes.empty() && log.notes.back().find("evaluated again") != std::string::npos;
    if (same + 1 != log.points.end() && !noted)
      log.notes.push_back(
          fmt::format("{}: evaluated again after {:.4g} images: the later FID counts; of a training that was set back "
                      "there, points after it are from before that until they are evaluated again too",
                      log.run, point.images));
    return;
  }
  std::size_t dropped = 0;
  for (; !log.points.empty() && log.points.back().images > point.images; ++dropped) log.points.pop_back();
  if (dropped > 0)
    log.notes.push_back(
        fmt::format("{}: the training was set back to {:.4g} images; {} later point(s) were logged before that and "
                    "count no more",
                    log.run, point.images, dropped));
  log.points.push_back(point);
}

double positive_number(const std::string& text, const std::string& where, const std::string& what) {
  return number_in(text, where, what, false);
}

double number_from_zero(const std::string& text, const std::string& where, const std::string& what) {
  return number_in(text, where, what, true);
}

double images_of_step(const std::string& where, const QualityLogOptions& options) {
  if (options.images_per_step > 0) return options.images_per_step;
  throw ConfigError(fmt::format(
      "{}: the file counts steps, not images; expected --images-per-step, the real images that the discriminator sees "
      "in one: batch x accumulation x its updates",
      where));
}

std::vector<QualityLog> read_quality_logs(const std::filesystem::path& file, const QualityLogOptions& options) {
  std::string text = read_file(file);
  if (is_event_file(text)) return {read_event_file(file, text, options)};
  text = records_as_lines(without_colours(text));
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) throw ConfigError(fmt::format("{}: is empty, expected points of FID", file.string()));
  const std::string first = text.substr(begin, text.find('\n', begin) - begin);
  if (first.find("\"metric\"") == std::string::npos)
    if (auto log = quality_of_run(file, text, options)) return {*std::move(log)};
  if (text[begin] == '{') return {read_stylegan_metrics(file, text)};
  if (text.find("FID score (Step:") != std::string::npos) return {read_studiogan_log(file, text, options)};
  if (first.find("fid") == std::string::npos && first.find("FID") == std::string::npos &&
      !first.starts_with("Wall time,"))
    throw ConfigError(
        fmt::format("{}: line 1: expected a CSV with a column \"fid\", StyleGAN's metric-*.jsonl, StudioGAN's log, an "
                    "event file of TensorBoard, or a ganymede.run-log/1",
                    file.string()));
  return read_quality_csv(file, options);
}

QualityLog read_stylegan_metrics(const std::filesystem::path& file, const std::string& text) {
  QualityLog log;
  log.run = file.stem().string();
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const JsonNode node = JsonNode::parse(line, line_place(file, number));
    JsonObject in(node);
    const std::string metric = in.required("metric").as_string();
    if (!metric.starts_with("fid"))
      node.fail(fmt::format("found the metric \"{}\", expected one of FID, such as \"fid50k_full\"", metric));
    if (!log.facts.try_emplace("reference", metric).second && log.facts["reference"] != metric)
      node.fail(fmt::format("found \"{}\" after \"{}\": FIDs against different references cannot be compared", metric,
                            log.facts["reference"]));
    const JsonNode value = JsonObject(in.required("results")).required(metric);
    const JsonNode snapshot = in.required("snapshot_pkl");
    if (snapshot.value().is_null()) continue;  // an evaluation of a network from elsewhere
    const double images = snapshot_images(snapshot);
    add_point(log, {images, value.as_number(1e-9, 1e9)});
  }
  if (log.points.empty()) throw ConfigError(fmt::format("{}: found no snapshot after the first step", file.string()));
  return log;
}

QualityLog read_studiogan_log(const std::filesystem::path& file, const std::string& text,
                              const QualityLogOptions& options) {
  QualityLog log;
  log.run = file.stem().string();
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string step = text_after(line, "FID score (Step:", ",");
    if (step.empty()) continue;
    const std::string where = line_place(file, number);
    const std::string reference = text_after(line, "Using ", " )");
    if (!reference.empty() && !log.facts.try_emplace("reference", reference).second &&
        log.facts["reference"] != reference)
      throw ConfigError(
          fmt::format("{}: found the moments \"{}\" after \"{}\": FIDs against different references "
                      "cannot be compared",
                      where, reference, log.facts["reference"]));
    const double fid = positive_number(text_after(line, "):", " \r\t"), where, "an FID of");
    add_point(log, {number_from_zero(step, where, "step") * images_of_step(where, options), fid});
  }
  if (log.points.empty()) throw ConfigError(fmt::format("{}: found no FID after the first step", file.string()));
  return log;
}

}  // namespace ganymede::traces
