#pragma once
// Jobs on disk, so that a restarted server knows the jobs of the server before it. DATA/jobs/ID/ holds a job's record
// (job.json), its input and its output. The user may put checkpoints into DATA/checkpoints/. DATA/uploads/ is that of
// form_options.hpp.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.hpp"
#include "serve/command_run.hpp"
#include "serve/forms.hpp"
#include "serve/job_answers.hpp"

namespace ganymede::serve {

enum class JobState { queued, running, done, failed, cancelled, interrupted };
std::string_view to_string(JobState state);
/// The names of all states, in the order of JobState.
const std::vector<std::string>& state_names();

struct JobRecord {
  int id = 0;  ///< from 1, in the order in which jobs were submitted
  JobKind kind = JobKind::compare;
  std::string title;  ///< what is asked for, made of the form
  std::string name;   ///< the user's; "": none
  JobState state = JobState::queued;
  std::string created;           ///< UTC
  double seconds = 0;            ///< during which it ran
  std::optional<int> exit_code;  ///< of the program; none if it was stopped or has not ended
  std::string message;           ///< for people: why there is no result, or why the result may be of no use
  std::string note;              ///< why there is no report page beside the result
  std::int64_t peak_memory_bytes = 0;
};

/// Runs the job in `folder` and fills in the end of `record`: state (cancelled if `stop` was raised), exit code and
/// messages. Throws nothing.
void do_job(JobRecord& record, const std::vector<JobCommand>& commands, const std::filesystem::path& folder,
            const StopSignal& stop, Seconds limit, const RunHooks& hooks);

/// A file of a job that the page may fetch.
struct JobFile {
  std::string_view name, content_type;
};
std::span<const JobFile> job_files();
/// The file of the picture that a training has written after so many steps: "samples-000500.png".
std::string picture_file(std::int64_t step);

class JobStore {
 public:
  /// Makes the folders, which only this user can read. Throws ConfigError if they cannot be made, belong to another
  /// user or are in use by another server.
  explicit JobStore(std::filesystem::path data);
  JobStore(const JobStore&) = delete;
  JobStore& operator=(const JobStore&) = delete;
  ~JobStore();

  std::filesystem::path folder(int id) const;
  std::filesystem::path checkpoints() const { return data_ / "checkpoints"; }
  std::filesystem::path uploads() const { return data_ / "uploads"; }

  /// The jobs, by id. An unreadable record adds a remark, and its id is not used again. Unfinished jobs are marked as
  /// interrupted.
  std::vector<JobRecord> load(std::vector<std::string>& remarks);
  /// Makes the folder of a new job and returns its id.
  int make();
  void save(const JobRecord& record) const;
  /// Removes the job's folder with all that it holds. Throws Failure if something of it stays.
  void remove(int id) const;

 private:
  void save_or_say(const JobRecord& record, std::vector<std::string>& remarks) const;

  std::filesystem::path data_;
  int lock_ = -1;
  int last_ = 0;
};

}  // namespace ganymede::serve
