#pragma once
// The algorithms of convolutions as they were timed on a GPU, kept for later trainings.

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace ganymede::kernel {

/// An algorithm of cuDNN for one pass of a convolution, and the time it took.
struct TimedAlgorithm {
  int number = 0;        ///< cuDNN's
  int math = 0;          ///< its cudnnMathType_t
  bool repeats = false;  ///< true: it computes the same bits every time
  double seconds = 0;
};

class AlgorithmChoices {
 public:
  AlgorithmChoices() = default;
  AlgorithmChoices(const AlgorithmChoices&) = delete;
  AlgorithmChoices& operator=(const AlgorithmChoices&) = delete;
  virtual ~AlgorithmChoices() = default;

  /// The algorithms timed under this key, which names GPU, cuDNN's version, precision, pass, shape and batch, in the
  /// order of cuDNN's heuristics. Empty: none were.
  virtual std::vector<TimedAlgorithm> find(const std::string& key) = 0;
  virtual void keep(const std::string& key, const std::vector<TimedAlgorithm>& timed) = 0;
};

/// Choices in a file. What it cannot read or write it ignores, with a warning on the standard error stream: the
/// algorithms are then timed again.
class FileChoices final : public AlgorithmChoices {
 public:
  explicit FileChoices(std::filesystem::path file) : file_(std::move(file)) {}

  std::vector<TimedAlgorithm> find(const std::string& key) override;
  void keep(const std::string& key, const std::vector<TimedAlgorithm>& timed) override;

 private:
  void read();

  std::filesystem::path file_;
  std::mutex mutex_;
  bool was_read_ = false;
  std::map<std::string, std::vector<TimedAlgorithm>> all_;
};

/// The choices in the file convolutions.json of the cache's folder (see cache_directory()).
AlgorithmChoices& kept_choices();

}  // namespace ganymede::kernel
