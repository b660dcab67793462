#include "traces/quality_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "traces/run_pace.hpp"

namespace ganymede::traces {

namespace {

double number_in(const std::string& text, const std::string& where, const std::string& what, bool zero_is_fine) {
  constexpr double kLargest = 1e15;  // images, as for goals
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool enough = zero_is_fine ? value >= 0 : value > 0;
  if (error != std::errc() || end != text.data() + text.size() || !enough || !(value <= kLargest))
    throw ConfigError(fmt::format("{}: found {} {}, expected {}{}", where, what, text.empty() ? "nothing" : text,
                                  zero_is_fine ? "a number, zero or above" : "a number above zero",
                                  value > kLargest ? " and up to 1e15" : ""));
  return value;
}

/// The FIDs of a log that says how a training goes on: StyleGAN's stats.jsonl or log.txt, JSON lines of MMEngine or
/// BigGAN-PyTorch, or metric-*.txt of StyleGAN in TensorFlow.
/// Nothing if it is no such log or has none. Tables and StudioGAN's logs have readers of their own, which know more.
std::optional<QualityLog> quality_of_run(const std::filesystem::path& file, const std::string& text,
                                         const QualityLogOptions& options) {
  if (text.find("FID score (Step:") != std::string::npos || text.find("\nfid") != std::string::npos)
    return std::nullopt;
  if (text.find("\"Progress/kimg\"") == text.npos && text.find("sec/kimg") == text.npos &&
      text.find("\"iter\"") == text.npos && text.find("\"step\"") == text.npos && text.find("\"itr\"") == text.npos &&
      text.find("network-snapshot-") == text.npos)
    return std::nullopt;
  if (text.find("ganymede.") != text.npos) return std::nullopt;
  const auto run = read_run_pace(text, file.string());
  if (!run) return std::nullopt;
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
  const std::string text = read_file(file);
  if (is_event_file(text)) return {read_event_file(file, text, options)};
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

}  // namespace ganymede::traces
