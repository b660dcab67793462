#pragma once
// FIDs that trainings of other programs have logged, with the real images that their discriminators had seen.

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ganymede::traces {

/// One training.
struct QualityLog {
  std::string run;
  /// The file's words on the training: "dataset", "reference" (what the FID compares with: "test 10000"), "backbone",
  /// "conditioning", "loss", "diffaug", "ada". Absent if it does not say it.
  std::map<std::string, std::string> facts;
  double batch = 0;  ///< images of one update, accumulation included; 0 if the file does not say it
  std::string
      images_are_steps;  ///< where the file has as many images as steps, so that the batch must be one; or empty
  struct Point {
    double images = 0, fid = 0;
  };
  std::vector<Point> points;       ///< in ascending order of images
  std::vector<std::string> notes;  ///< what was left out, and why
};

/// Adds a point, unless it is of no images: StyleGAN evaluates before the first step too. If a training was set back to
/// a checkpoint and evaluates again, what it had logged after that counts no more; `log.notes` then says so.
void add_point(QualityLog& log, const QualityLog::Point& point);

struct QualityLogOptions {
  std::filesystem::path runs;  ///< a CSV with more columns for each run; may be empty
  double images_per_step = 0;  ///< for files that count steps; 0: not known
  std::string tag;             ///< of the scalar in TensorBoard's files; empty: the only one with "fid" in its name
};

/// Reads a file of any known kind, which its content tells: CSV of points, StyleGAN's metric-*.jsonl, StudioGAN's log,
/// TensorBoard's event file. Throws ConfigError, with file and line, for an FID of zero or below, steps without
/// images, references that differ within a training, and a file of another kind.
std::vector<QualityLog> read_quality_logs(const std::filesystem::path& file, const QualityLogOptions& options);

// The kinds, one file each.
/// A table whose cells tabs or semicolons part, as one with commas; behind semicolons a comma may stand for the point.
std::string with_commas(std::string text);

std::vector<QualityLog> read_quality_csv(const std::filesystem::path& file, const QualityLogOptions& options);
QualityLog read_stylegan_metrics(const std::filesystem::path& file, const std::string& text);
QualityLog read_studiogan_log(const std::filesystem::path& file, const std::string& text,
                              const QualityLogOptions& options);
QualityLog read_event_file(const std::filesystem::path& file, const std::string& bytes,
                           const QualityLogOptions& options);
/// Steps of the scalars in an event file, each with the Unix time in seconds at which it was written.
std::vector<std::pair<std::int64_t, double>> event_times(const std::string& file, const std::string& bytes);
/// True if the bytes begin with a record as TensorFlow writes it, with a valid checksum.
bool is_event_file(const std::string& bytes);

/// The number in `text`; throws ConfigError "WHERE: ..." unless it is finite and above zero.
double positive_number(const std::string& text, const std::string& where, const std::string& what);
/// The same for a number that may be zero.
double number_from_zero(const std::string& text, const std::string& where, const std::string& what);
/// Images of a step, for a file that counts steps; throws ConfigError if they are not known.
double images_of_step(const std::string& where, const QualityLogOptions& options);

}  // namespace ganymede::traces
