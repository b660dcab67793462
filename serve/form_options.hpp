#pragma once
// The choices of the page: everything that comes with the program, the checkpoints that the user has named, and the
// files that the user has sent. A request can choose only among these; it can name neither a file nor a policy that
// runs one of the user's programs.

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "platforms/platform.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::serve {

enum class UploadKind { trace, platform };

/// The name of a file as it is shown: without control characters, and at most UploadStore::kMaxName bytes. Throws
/// ConfigError for a text that is not UTF-8.
std::string shown_name(std::string name);

struct Upload {
  int id = 0;
  UploadKind kind = UploadKind::trace;
  std::string name;                                     ///< for people
  std::string text;                                     ///< as it was sent
  std::unique_ptr<const traces::StepTrace> trace;       ///< not null for UploadKind::trace
  std::unique_ptr<const platforms::Platform> platform;  ///< not null for UploadKind::platform

  /// "upload:3", by which a form names it.
  std::string key() const;
  /// "trace-3.json": its name in the folder of a job that uses it.
  std::string file() const;
};
using Uploads = std::vector<std::shared_ptr<const Upload>>;

/// Thrown for an id that no upload has.
struct NoSuchUpload : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class UploadStore {
 public:
  static constexpr std::size_t kMaxBytes = 8 << 20;  ///< of one file
  static constexpr std::size_t kMaxFiles = 32;
  static constexpr std::size_t kMaxName = 100;  ///< bytes of the shown name

  /// Reads what `folder` holds. A file that cannot be read is left out, and `remarks` says so.
  UploadStore(std::filesystem::path folder, std::vector<std::string>& remarks);

  /// Checks the text as the command would that reads it, keeps it, and returns its id. Throws ConfigError with the
  /// place in the text for what is wrong with it, and if there are kMaxFiles already.
  int add(const std::string& kind, const std::string& name, std::string text);
  /// Removes it. Jobs have copies of their own. Throws NoSuchUpload.
  void forget(int id);
  /// All of them, by id.
  Uploads all() const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path file_of(int id) const;

  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::map<int, std::shared_ptr<const Upload>> uploads_;
  int last_ = 0;
};

/// Directories that hold checkpoints, by the names under which the page offers them.
using Checkpoints = std::map<std::string, std::filesystem::path>;

/// The files that a form may name besides those that come with the program.
struct Offer {
  Checkpoints checkpoints;
  Uploads uploads;
};

struct WorkloadOption {
  std::string trace;  ///< as a form names it: "recorded:mlp-gan-cpu", "layers:biggan", "upload:3"
  std::string model, about;
  std::map<int, double> memory_bytes;  ///< by the recorded batch sizes: what a GPU must hold in a training with it
  std::string dataset;                 ///< name of the offered data set whose images have the size of the model's
  bool measurable = false;             ///< a step that the user measured may stand in place of the recorded ones
};

/// Recorded traces, then lists of layers; not those that the user has sent. Read once, on first use.
const std::vector<WorkloadOption>& workload_options();
/// Policies that need no file from the user, that is neither a program nor a trained table.
const std::vector<std::string>& policy_options();

/// The checkpoints of `named` and those in the directories of `folder`, which need not exist.
Checkpoints find_checkpoints(const Checkpoints& named, const std::filesystem::path& folder);

/// All options, as the page gets them from /api/choices.
OrderedJson form_options_json(const Offer& offer);

}  // namespace ganymede::serve
