#pragma once
// How far trainings of other programs have come, and when: what `watch` reads of them.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ganymede::traces {

/// The log of one training. `count` is of real images that the discriminator has seen, or of steps; `seconds` counts
/// from the log's own beginning.
struct RunPace {
  bool counts_images = false;
  struct Point {
    double count = 0, seconds = 0;
    bool clock_set = false;  ///< the time since the point before is not known, because the clock was set back
  };
  std::vector<Point> points;  ///< in ascending order of both
  struct Pause {
    double count = 0, seconds = 0;
  };
  std::vector<Pause> pauses;  ///< in which it did not train: StyleGAN's snapshots and evaluations
  struct Fid {
    double count = 0, fid = 0;
  };
  std::vector<Fid> fids;
  std::string reference;               ///< the metric's name; empty if there is none
  std::optional<double> begin_unix_s;  ///< Unix time of second 0; nothing if the log does not say it
  double set_back_s = 0;               ///< by which clocks were set back, which `seconds` do not count
  std::size_t untimed = 0;             ///< records with a step and no time
  std::size_t skipped = 0;             ///< lines that look like the log's and cannot be read
  std::string run;                     ///< the one that was taken of a file of several runs
};

/// Reads a log of a kind that its content tells: StyleGAN's stats.jsonl and log.txt, StudioGAN's log, the JSON lines of
/// MMEngine and mmcv, records of Weights & Biases and HuggingFace, bars of tqdm, lines that begin with a time and say a
/// step, an event file of TensorBoard, or a CSV with a column of steps or images and one of time, as Weights & Biases
/// and TensorBoard export them. Nothing if it is none of these; no points if its records say no time yet.
/// A run that was set back to a checkpoint counts from there again.
std::optional<RunPace> read_run_pace(const std::string& text, const std::string& file);

}  // namespace ganymede::traces
