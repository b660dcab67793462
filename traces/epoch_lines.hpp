#pragma once
// Lines of logs that count steps or images within an epoch.

#include <optional>
#include <string_view>
#include <vector>

namespace ganymede::traces {

class EpochLines {
 public:
  struct Progress {
    double count = 0;
    std::optional<double> seconds;  ///< since the training began, if the lines say it
    bool afresh = false;            ///< the lines before were counted wrongly, as only this one tells
  };

  /// Steps of "Epoch: [3][ 100/1000]  Time 0.300 ( 0.290)" (PyTorch's ImageNet example, whose mean time is that of a
  /// step), "Epoch [3/200], Step [100/1000]", "[Epoch 3/200] [Batch 100/938]" and "[3/25][100/1583]", the last also
  /// behind a time. Steps that do not fall when the epoch rises are those of all epochs; of a line that has a step
  /// besides, nothing.
  std::optional<Progress> steps(std::string_view line);
  /// Steps of Keras' "500/500 [=====] - 61s 122ms/step", each an epoch that has ended; no samples of TensorFlow 1.
  std::optional<Progress> ended(std::string_view line);
  /// Images of "(epoch: 3, iters: 400, time: 0.123, data: 0.002)" of CycleGAN's and pix2pix's code: seconds an image.
  std::optional<Progress> images(std::string_view line);

 private:
  struct Images {
    double epoch, within, count, seconds;
  };
  void count_from(double epoch, double done, double all, bool from_zero);

  double epoch_ = -1, within_ = 0, first_ = 0, gap_ = 0, mean_ = 0, samples_ = -1;
  double count_ = 0, seconds_ = 0, before_ = 0, length_ = 0;
  std::optional<double> rank_;
  bool falls_ = false, goes_on_ = false;          // the steps, when an epoch begins
  bool epoch_begins_ = false, of_epoch_ = false;  // an epoch of Keras has begun; length_ is that of one
  std::vector<Images> images_;                    // of the lines that count
};

}  // namespace ganymede::traces
