#pragma once
// Logs of other programs that are not lines of one record each, brought to what read_run_pace() reads.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ganymede::traces {

/// Text in UTF-8 without the colours of terminals: some shells write UTF-16, some programs escape sequences into files.
std::string without_colours(const std::string& text);

/// The text with a line for each record, if it is a JSON array of records, as Weights & Biases' history is saved, or a
/// document with a "log_history", as HuggingFace's trainer_state.json; any other text unchanged.
std::string records_as_lines(std::string text);

/// Python writes NaN and Infinity, which JSON does not have: they become null. StyleGAN's statistics have them where
/// nothing was counted.
std::string without_nan(std::string line);

/// Seconds of "1d 02h 13m 25s".
std::optional<double> spelt_time(std::string_view text);
/// The number of the first "[1000]"; nothing of "[100/100]", which counts something else than steps.
std::optional<double> bracketed(std::string_view text);
/// The name and the value of the first FID in a line in lower case, such as "fid: 12.3", "fid-full-50k/fid: 12.3" or
/// "fid50k_full = 12.3".
std::optional<std::pair<std::string, double>> fid_of(std::string_view lower);

/// Progress bars of tqdm: " 20%|##   | 2000/10000 [16:40<1:06:40,  2.00it/s]". A bar that was full and begins again, or
/// is full again with another number in its label, is the next epoch; those of another length or with another label up
/// to its digits, of evaluations, are left out.
class ProgressBars {
 public:
  /// Steps and seconds of each bar in the line, whose bars are apart by carriage returns.
  std::vector<std::pair<double, double>> read(std::string_view line);

 private:
  struct Bar {
    double done, all, seconds;
    std::string label = {};   ///< before the first digit, without blanks: "Epoch" of "Epoch 3:  20%"
    std::string number = {};  ///< "3" of it; empty if the first number is the percentage
  };
  static std::optional<Bar> bar_of(std::string_view text);

  double all_ = 0, before_ = 0, seconds_before_ = 0;  // length of a bar; steps and seconds of bars that were full
  Bar last_{};
};

/// Lines that count within an epoch.
class EpochLines {
 public:
  struct Progress {
    double count = 0;
    std::optional<double> seconds;  ///< since the training began, if the lines say it
  };

  /// Steps of "Epoch: [3][ 100/1000]  Time 0.300 ( 0.290)" (PyTorch's ImageNet example, whose mean time is that of a
  /// step), "Epoch [3/200], Step [100/1000]", "[Epoch 3/200] [Batch 100/938]" and "[3/25][100/1583]".
  std::optional<Progress> steps(std::string_view line);
  /// Steps of Keras' "500/500 [=====] - 61s 122ms/step", each an epoch that has ended.
  std::optional<Progress> ended(std::string_view line);
  /// Images of "(epoch: 3, iters: 400, time: 0.123, data: 0.002)" of CycleGAN's and pix2pix's code: seconds an image.
  std::optional<Progress> images(std::string_view line);

 private:
  double epoch_ = -1, within_ = 0, first_ = 0, gap_ = 0;
  double count_ = 0, seconds_ = 0, before_ = 0, length_ = 0;
};

}  // namespace ganymede::traces
