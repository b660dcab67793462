#pragma once
// Records the step trace of a device at several batch sizes, as `ganymede calibrate` does.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/train.hpp"

namespace ganymede::kernel {

struct RecordOptions {
  TrainOptions train;
  std::vector<int> batches = {64};
  std::int64_t steps = 300;      ///< recorded at each batch size, after warm-up
  std::filesystem::path folder;  ///< on the storage whose reading is measured; empty: the working directory
};

/// Follows a recording. Empty functions are not called.
struct RecordView {
  std::function<void(const std::string& sentence)> remark;
  std::function<void(std::size_t done)> progress;  ///< steps of all batch sizes, of record_steps()
  std::function<std::shared_ptr<void>(const std::string& what)> waiting;  ///< as SessionView::waiting
};

/// The number of steps that record_trace() does, warm-up included.
std::size_t record_steps(const RecordOptions& options);

/// Records one trace with an entry for each batch size, and the limits of the device. Throws as Trainer does.
traces::StepTrace record_trace(const RecordOptions& options, const RecordView& view = {});

}  // namespace ganymede::kernel
