#pragma once
// Logs of other programs that are not lines of one record each, brought to what read_run_pace() reads.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ganymede::traces {

/// Text in UTF-8, without a byte order mark and the colours of terminals: some shells write UTF-16, some programs
/// escape sequences into files.
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
/// The decimal number that a text in lower case begins with, "123.45" or "1.2345e+02", and the text behind it.
std::optional<std::pair<double, std::string_view>> leading_number(std::string_view text);
/// Whether a name in lower case is that of the best value so far, as "best_fid".
bool is_best(std::string_view lower);
/// The name and the value of the first FID in a line in lower case, such as "fid: 12.3", "fid-full-50k/fid: 1.23e+01"
/// or "fid50k_full = 12.3", but not of the best so far.
std::optional<std::pair<std::string, double>> fid_of(std::string_view lower);

/// Steps or images behind their name in a line.
struct NamedCount {
  double count = 0;
  bool images = false;
};
/// The counts of a line such as "kimg 4.0", "images: 64,000", "step 100/5000" or "Iter(train) [ 100/5000]": kimg first,
/// then images, then steps.
std::vector<NamedCount> named_counts(std::string_view line);

/// Progress bars of tqdm: " 20%|##   | 2000/10000 [16:40<1:06:40,  2.00it/s]". A bar that was full and begins again, or
/// is full again with another number of an epoch in its label, is the next epoch; those of another length or with
/// another label up to its digits, of evaluations, are left out, and so are those of all ranks but the first.
class ProgressBars {
 public:
  /// Steps and seconds of each bar in the line, whose bars are apart by carriage returns.
  std::vector<std::pair<double, double>> read(std::string_view line);

 private:
  struct Bar {
    double done, all, seconds;
    std::string label = {};   ///< before the first digit, without blanks: "Epoch" of "Epoch 3:  20%"
    std::string number = {};  ///< "3" of it; empty if the label is not of an epoch
    std::string rank = {};    ///< "0" of "[rank0] Epoch 3:  20%"
  };
  static std::optional<Bar> bar_of(std::string_view text);

  double all_ = 0, before_ = 0, seconds_before_ = 0;  // length of a bar; steps and seconds of bars that were full
  Bar last_{};
};

}  // namespace ganymede::traces
