#include "traces/run_pace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "common/csv.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "traces/epoch_lines.hpp"
#include "traces/line_scanner.hpp"
#include "traces/pace_points.hpp"
#include "traces/quality_log.hpp"
#include "traces/run_lines.hpp"

namespace ganymede::traces {
namespace {

/// A pause of a StyleGAN tick that is a smaller part of it than this is in the pace of the training.
constexpr double kLeastPause = 0.05;

std::optional<double> number_of(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// A tick of StyleGAN: `maintenance` is the time before it in which nothing was trained.
void add_tick(RunPace& pace, double images, double seconds, double tick_s, double maintenance) {
  const double before = pace.points.empty() ? 0 : pace.points.back().count;
  if (!pace.points.empty() && maintenance > kLeastPause * (tick_s + maintenance))
    pace.pauses.push_back({before, maintenance});
  add_point(pace, images, seconds);
}

/// The member `mean` of StyleGAN's statistics, or a number itself.
std::optional<double> mean_of(const Json& line, const char* key) {
  if (!line.contains(key)) return std::nullopt;
  const Json& value = line.at(key);
  const Json& number = value.is_object() && value.contains("mean") ? value.at("mean") : value;
  return number.is_number() ? std::optional(number.get<double>()) : std::nullopt;
}

std::optional<double> first_of(const Json& line, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto value = mean_of(line, key)) return value;
  return std::nullopt;
}

/// Steps, iterations or images, which some loggers write as text: "1,000".
std::optional<double> first_count(const Json& line, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (const auto value = mean_of(line, key)) return value;
    if (!line.contains(key) || !line.at(key).is_string()) continue;
    if (const auto value = whole_count_of(line.at(key).get<std::string>())) return value;
  }
  return std::nullopt;
}

/// FIDs of StyleGAN's statistics ("Metrics/fid50k_full") and of MMEngine's evaluations ("FID-Full-50k/fid").
void add_fids(RunPace& pace, const Json& line, double count) {
  for (const auto& [name, value] : line.items()) {
    if (const std::string lower = lower_case(name); lower.find("fid") == lower.npos || is_best(lower)) continue;
    const auto fid = mean_of(line, name.c_str());
    if (!fid || !(*fid > 0) || (!pace.reference.empty() && pace.reference != name)) continue;
    pace.reference = name;
    pace.fids.push_back({count, *fid});
  }
}

/// The FID that a line of text has, of the log's first metric.
void add_text_fid(RunPace& pace, const std::string& lower, double count) {
  const auto fid = fid_of(lower);
  if (!fid || !(count <= kMostCount) || (!pace.reference.empty() && pace.reference != fid->first)) return;
  pace.reference = fid->first;
  pace.fids.push_back({count, fid->second});
}

/// A line of StyleGAN's stats.jsonl. Returns false if it is none.
bool read_stats_line(RunPace& pace, const Json& line) {
  const auto kimg = mean_of(line, "Progress/kimg"), seconds = mean_of(line, "Timing/total_sec");
  if (!kimg || !seconds || *kimg < 0 || *seconds < 0) return false;
  pace.counts_images = true;
  add_tick(pace, 1e3 * *kimg, *seconds, mean_of(line, "Timing/sec_per_tick").value_or(0),
           mean_of(line, "Timing/maintenance_sec").value_or(0));
  if (const auto unix_s = mean_of(line, "timestamp")) pace.begin_unix_s = *unix_s - *seconds;
  add_fids(pace, line, 1e3 * *kimg);
  return true;
}

/// A line of metric-*.jsonl, which log.txt has too.
bool read_metric_line(RunPace& pace, const Json& line) {
  if (!line.contains("results") || !line.at("results").is_object() || !line.contains("snapshot_pkl")) return false;
  const std::string name = line.at("snapshot_pkl").is_string() ? line.at("snapshot_pkl").get<std::string>() : "";
  const std::size_t dash = name.rfind('-'), dot = name.rfind('.');
  if (dash == name.npos || dot == name.npos || dot < dash) return true;
  if (const auto kimg = number_of(std::string_view(name).substr(dash + 1, dot - dash - 1)))
    add_fids(pace, line.at("results"), 1e3 * *kimg);
  return true;
}

/// When a line was written, in seconds since 1970: a number, or a time as text. "time" alone as a number may be
/// anything.
std::optional<double> stamp_of(const Json& line) {
  if (const auto number = first_of(line, {"_stamp", "_timestamp", "timestamp", "unix_s", "ts"}))
    return seconds_of_stamp(*number);
  for (const char* key : {"timestamp", "_timestamp", "@timestamp", "time", "datetime", "date", "asctime", "ts"})
    if (line.contains(key) && line.at(key).is_string())
      if (const auto time = moment_of(line.at(key).get<std::string>())) return time;
  return std::nullopt;
}

/// A line that says how far a training is and when: BigGAN-PyTorch's evaluations, the history of Weights & Biases, and
/// those of people's own programs.
bool read_own_line(RunPace& pace, const Json& line, LogClock& clock) {
  const auto kimg = first_count(line, {"kimg", "d_real_kimg"}), images = first_count(line, {"images"});
  const auto step = first_count(line, {"_step", "step", "iter", "iteration", "itr", "global_step"});
  const auto run_s = first_of(line, {"_runtime", "elapsed", "elapsed_s", "seconds", "total_sec", "train_runtime"});
  const auto unix_s = stamp_of(line);
  const auto count = kimg ? std::optional(1e3 * *kimg) : images ? images : step;
  if (!count || *count < 0 || (!kimg && !images && !run_s && !unix_s)) return false;
  pace.counts_images = kimg || images;
  if (line.contains("train_runtime")) add_point(pace, 0, 0);  // HuggingFace's last record has the time of all
  if (run_s || unix_s) add_point(pace, *count, run_s ? *run_s : clock.since_begin(*unix_s));
  if (unix_s && !pace.begin_unix_s) pace.begin_unix_s = run_s ? *unix_s - *run_s : clock.begin();
  add_fids(pace, line, *count);
  return true;
}

/// A line of mmcv or MMEngine: seconds of a step, of which the mean since the line before is taken.
bool read_mm_line(RunPace& pace, const Json& line) {
  const auto step = first_count(line, {"iter", "step", "itr"});
  if (!step || *step < 0) return false;
  const auto step_s = mean_of(line, "time");
  const bool evaluates =
      line.contains("mode") && line.at("mode").is_string() && line.at("mode").get<std::string>() == "val";
  if (!step_s || evaluates) {
    if (!evaluates) ++pace.untimed;
    add_fids(pace, line, *step);
    return true;
  }
  const RunPace::Point last = pace.points.empty() ? RunPace::Point() : pace.points.back();
  if (*step > last.count && *step_s > 0)
    add_point(pace, *step, last.seconds - pace.set_back_s + (*step - last.count) * *step_s);
  return true;
}

/// The number after a word of a line, or nothing.
std::optional<double> after(std::string_view line, std::string_view word) {
  LineScanner in(line);
  if (!in.skip_past(word)) return std::nullopt;
  in.skip_blanks();
  return number_of(in.word());
}

/// "tick 1     kimg 4.0      time 13m 25s      sec/tick 291.6   sec/kimg 72.89   maintenance 468.3"
bool read_tick_line(RunPace& pace, std::string_view line) {
  if (!line.starts_with("tick ")) return false;
  const auto kimg = after(line, " kimg ");
  LineScanner in(line);
  if (!kimg || !in.skip_past(" time ")) return false;
  const auto seconds = spelt_time(in.word_until("sec/tick"));
  if (!seconds) return false;
  pace.counts_images = true;
  add_tick(pace, 1e3 * *kimg, *seconds, after(line, " sec/tick ").value_or(0),
           after(line, " maintenance ").value_or(0));
  return true;
}

/// "network-snapshot-000200   time 12m 30s   fid50k 80.1" of StyleGAN and StyleGAN2 in TensorFlow, in log.txt and in
/// metric-fid50k.txt.
bool read_snapshot_line(RunPace& pace, std::string_view line) {
  LineScanner in(line);
  if (!in.skip_past("network-snapshot-")) return false;
  const auto kimg = number_of(in.digits());
  if (!kimg || !in.skip_past(" fid")) return false;
  const std::string metric = "fid" + std::string(in.word());
  in.skip_blanks();
  const auto fid = number_of(in.word());
  if (!fid || !(*fid > 0) || (!pace.reference.empty() && pace.reference != metric)) return false;
  pace.counts_images = true;
  pace.reference = metric;
  pace.fids.push_back({1e3 * *kimg, *fid});
  return true;
}

/// "[INFO] 2021-12-09 20:46:38 > Step: 100, Progress: 0.1%, Elapsed: 0:02:18, ...", days before as "1 day, 0:02:18".
bool read_studiogan_line(RunPace& pace, std::string_view line) {
  LineScanner in(line);
  if (!in.skip_past("Step: ") || line.find("Elapsed: ") == line.npos) return false;
  in.skip_blanks();  // the number is right-aligned
  const auto step = number_of(in.digits());
  if (!step || !in.skip_past("Elapsed: ")) return false;
  double days = 0;
  std::string_view text = in.rest();
  if (const std::size_t day = text.find(" day"); day != text.npos && day < 8) {
    days = number_of(text.substr(0, day)).value_or(0);
    text.remove_prefix(std::min(text.find(' ', day + 1) + 1, text.size()));
  }
  double seconds = 0;
  LineScanner time(text);
  for (int part = 0; part < 3; ++part) {
    const auto value = number_of(time.digits());
    if (!value || (part < 2 && !time.skip(":"))) return false;
    seconds = 60 * seconds + *value;
  }
  add_point(pace, *step, 86400 * days + seconds);
  return true;
}

/// "[2026-11-03 08:15:00,123] step 100/5000 loss 0.7": any line of people's own programs and of their loggers that
/// begins with a time and has a number of steps, iterations, images or kimg.
bool read_stamped_line(RunPace& pace, std::string_view line, LogClock& clock, EpochLines& epochs) {
  constexpr std::string_view kAround = "[](): \t";
  constexpr int kMostWords = 6;  // "Tue Nov  3 08:15:00 2026"
  const std::size_t first = std::min(line.find_first_not_of(kAround), line.size());
  std::optional<double> time;
  std::size_t end = first;
  for (int words = 0; words < kMostWords && end < line.size(); ++words) {
    end = std::min(line.find_first_of(" \t", end + 1), line.size());
    std::string_view stamp = line.substr(first, end - first);
    stamp = stamp.substr(0, stamp.find_last_not_of("]|:,") + 1);
    const bool number = stamp.find_first_not_of("0123456789.") == stamp.npos;
    if (const auto found = number ? std::nullopt : moment_of(stamp)) time = found;
  }
  const auto progress = epochs.steps(line);
  if (progress && !pace.counts_images && (time || progress->seconds)) {
    if (progress->afresh) pace.points.clear();
    add_point(pace, progress->count, time ? clock.since_begin(*time) : *progress->seconds);
    pace.begin_unix_s = clock.begin();
    return true;
  }
  if (!time || progress) return false;
  const std::string rest = lower_case(std::string(line));
  if (const std::size_t evaluation = rest.find("(val)"); evaluation != rest.npos) {  // MMEngine's and mmgen's
    const auto at = bracketed(rest.substr(evaluation));
    if (!at && pace.points.empty()) return false;
    add_text_fid(pace, rest, at ? *at : pace.points.back().count);
    return true;
  }
  for (const auto& [count, images] : named_counts(line)) {
    if (clock.begin() && pace.counts_images != images) continue;  // the log's first unit counts
    pace.counts_images = images;
    add_point(pace, count, clock.since_begin(*time));
    pace.begin_unix_s = clock.begin();
    add_text_fid(pace, rest, count);
    return true;
  }
  return false;
}

/// The first column of one of these names, upper and lower case alike, and of the run if there are several.
std::optional<std::string> column(const CsvTable& table, std::initializer_list<std::string_view> names,
                                  const std::string& run = "") {
  for (const std::string_view wanted : names)
    for (const std::string& name : table.names()) {
      if (name.find(" - ") != name.npos && !name.starts_with(run)) continue;
      const std::string lower = lower_case(name), end = lower_case(std::string(wanted));
      if (lower == end || lower.ends_with(" - " + end)) return name;  // "RUN - Progress/kimg" of Weights & Biases
    }
  return std::nullopt;
}

/// "RUN - " of the first column of a run, and whether other columns are of other runs, as where Weights & Biases
/// exports a chart of several.
std::pair<std::string, bool> first_run(const CsvTable& table) {
  std::string run;
  bool several = false;
  for (const std::string& name : table.names())
    if (const std::size_t dash = name.rfind(" - "); dash != name.npos) {
      if (run.empty()) run = name.substr(0, dash + 3);
      several = several || name.substr(0, dash + 3) != run;
    }
  return {run, several};
}

/// A CSV as Weights & Biases or TensorBoard exports it, or a plain one.
std::optional<RunPace> read_table(const std::string& text, const std::string& file) {
  const std::string commas = with_commas(text);
  if (commas.substr(0, commas.find('\n')).find(',') == std::string::npos) return std::nullopt;
  std::vector<std::string> unlike;
  const CsvTable table = CsvTable::parse(commas, file, &unlike);
  const auto [run, several] = first_run(table);
  const auto images = column(table, {"images", "Progress/kimg", "kimg", "d_real_kimg"}, run);
  const auto steps = column(
      table, {"_step", "step", "global_step", "trainer/global_step", "iteration", "iter", "itr", "steps", "iterations"},
      run);
  auto unix_time =
      column(table, {"_timestamp", "unix_s", "timestamp", "wall time", "wall_time", "datetime", "date"}, run);
  const auto run_time = column(table,
                               {"_runtime", "Relative Time (Process)", "Relative Time (Wall)", "elapsed", "elapsed_s",
                                "seconds", "time_s", "Timing/total_sec"},
                               run);
  if (!unix_time && !run_time && table.has("time")) unix_time = "time";
  if ((!images && !steps) || (!unix_time && !run_time)) return std::nullopt;
  const auto fid = column(table, {"fid", "metrics/fid", "Metrics/fid50k_full", "fid50k_full"}, run);
  RunPace pace;
  pace.counts_images = images.has_value();
  pace.skipped = unlike.size();
  if (several) pace.run = run.substr(0, run.size() - 3);
  const double unit = images && lower_case(*images).ends_with("kimg") ? 1e3 : 1;
  LogClock clock;
  for (const CsvTable::Row& row : table.rows()) {
    const std::string &done = table.at(row, images ? *images : *steps),
                      &when = table.at(row, run_time ? *run_time : *unix_time);
    if (done.empty() || when.empty()) continue;  // a row of something else that was logged, or of another run
    const auto count = count_of(done), time = run_time ? number_of(when) : moment_of(when);
    if (!count || !time || *count < 0) {
      ++pace.skipped;
      continue;
    }
    add_point(pace, unit * *count, run_time ? *time : clock.since_begin(*time));
    if (!run_time)
      pace.begin_unix_s = clock.begin();
    else if (const auto unix_s = unix_time ? moment_of(table.at(row, *unix_time)) : std::nullopt)
      pace.begin_unix_s = *unix_s - *time;
    if (!fid) continue;
    pace.reference = *fid;
    if (const auto value = number_of(table.at(row, *fid)); value && *value > 0)
      pace.fids.push_back({unit * *count, *value});
  }
  return pace;
}

/// A line that counts an epoch's steps or images, and says how long they took.
bool read_epoch_line(RunPace& pace, std::string_view line, EpochLines& epochs) {
  const auto images = epochs.images(line);
  const auto found = images ? images : epochs.ended(line);
  if (!found) return false;
  pace.counts_images = images.has_value();
  if (found->afresh) pace.points.clear();
  if (pace.points.empty()) add_point(pace, 0, 0);
  add_point(pace, found->count, *found->seconds);
  return true;
}

/// A log whose first time is long past counts from another moment than 1970, or does not say its year.
RunPace finished(RunPace pace) {
  constexpr double kFirstYear = 2e8;  // 1976
  if (pace.begin_unix_s && *pace.begin_unix_s < kFirstYear) pace.begin_unix_s.reset();
  if (pace.begin_unix_s) *pace.begin_unix_s -= pace.set_back_s;
  return pace;
}

}  // namespace

std::optional<RunPace> read_run_pace(const std::string& text, const std::string& file) {
  RunPace pace;
  LogClock clock;
  if (is_event_file(text)) {
    for (const auto& [step, unix_s] : event_times(file, text)) {
      const double seconds = clock.since_begin(unix_s);
      if (pace.points.empty() || static_cast<double>(step) > pace.points.back().count)
        add_point(pace, static_cast<double>(step), seconds);
    }
    pace.begin_unix_s = clock.begin();
    return finished(std::move(pace));
  }
  std::istringstream lines(records_as_lines(without_colours(text)));
  bool known = false;
  ProgressBars bars;
  EpochLines epochs;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.starts_with('{')) {
      std::optional<JsonNode> parsed;
      try {
        parsed = JsonNode::parse(without_nan(std::move(line)), file);
      } catch (const ConfigError&) {
        ++pace.skipped;  // cut short, or another program's
        continue;
      }
      const Json& value = parsed->value();
      known = read_stats_line(pace, value) || read_metric_line(pace, value) || read_own_line(pace, value, clock) ||
              read_mm_line(pace, value) || known;
    } else if (const auto progress = bars.read(line); !progress.empty()) {
      for (const auto& [steps, seconds] : progress) add_point(pace, steps, seconds);
      known = true;
    } else {
      known = read_tick_line(pace, line) || read_snapshot_line(pace, line) || read_studiogan_line(pace, line) ||
              read_epoch_line(pace, line, epochs) || read_stamped_line(pace, line, clock, epochs) || known;
    }
  }
  if (known && !(pace.points.empty() && pace.fids.empty())) return finished(std::move(pace));
  auto table = read_table(without_colours(text), file);
  if (table) return finished(std::move(*table));
  return pace.untimed > 0 ? std::optional(std::move(pace)) : std::nullopt;
}

}  // namespace ganymede::traces
