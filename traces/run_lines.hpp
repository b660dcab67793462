#pragma once
// Logs of other programs that are not lines of one record each, brought to what read_run_pace() reads.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ganymede::traces {

/// The text with a line for each record, if it is a JSON array of records, as Weights & Biases' history is saved, or a
/// document with a "log_history", as HuggingFace's trainer_state.json; any other text unchanged.
std::string records_as_lines(std::string text);

/// Progress bars of tqdm: " 20%|##   | 2000/10000 [16:40<1:06:40,  2.00it/s]". A bar that was full and begins again is
/// the next epoch; those of another length or with another label up to its digits, of evaluations, are left out.
class ProgressBars {
 public:
  /// Steps and seconds of each bar in the line, whose bars are apart by carriage returns.
  std::vector<std::pair<double, double>> read(std::string_view line);

 private:
  struct Bar {
    double done, all, seconds;
    std::string label = {};  ///< before the first digit, without blanks: "Epoch" of "Epoch 3:  20%"
  };
  static std::optional<Bar> bar_of(std::string_view text);

  double all_ = 0, before_ = 0, seconds_before_ = 0;  // length of a bar; steps and seconds of bars that were full
  Bar last_{};
};

}  // namespace ganymede::traces
