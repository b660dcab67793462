#include "serve/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/budget.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/units.hpp"
#include "kernel/checkpoint.hpp"
#include "serve/job_answers.hpp"

namespace ganymede::serve {
namespace {
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxListed = 200;
constexpr const char* kLossesFile = "losses.csv";
constexpr std::uintmax_t kMaxGenerationBytes = 64 << 10;  ///< of the output of `generate` that is shown

bool may_run_again(JobState state) {
  return state == JobState::failed || state == JobState::cancelled || state == JobState::interrupted;
}

/// The steps after which a training has written pictures, in ascending order.
std::vector<std::int64_t> pictures_in(const std::filesystem::path& folder) {
  std::vector<std::int64_t> steps;
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    long step = 0;
    if (std::sscanf(name.c_str(), "samples-%9ld.png", &step) == 1 && step > 0 && name == picture_file(step))
      steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

/// The sum of the files' sizes below a folder. What cannot be looked at counts as nothing.
Bytes bytes_below(const std::filesystem::path& folder) {
  double sum = 0;
  std::error_code ignored;
  const auto skip = std::filesystem::directory_options::skip_permission_denied;
  for (std::filesystem::recursive_directory_iterator it(folder, skip, ignored), end; it != end; it.increment(ignored)) {
    std::error_code gone;
    if (!it->is_regular_file(gone) || it->is_symlink(gone)) continue;
    if (const auto size = it->file_size(gone); !gone) sum += static_cast<double>(size);
  }
  return Bytes{sum};
}

}  // namespace

Jobs::Jobs(JobOptions options)
    : options_(std::move(options)), store_(options_.data), uploads_(store_.uploads(), remarks_) {
  for (JobRecord& record : store_.load(remarks_)) jobs_[record.id].record = std::move(record);
  if (options_.remark)
    for (const std::string& remark : remarks_) options_.remark(remark);
}

Jobs::~Jobs() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (auto& [id, job] : jobs_)
      if (job.stop) job.stop->raise();
    for (const int id : queue_) {
      Job& job = jobs_[id];
      job.record.state = JobState::interrupted;
      job.record.message = "the server ended before the job began";
      save(job);
    }
    queue_.clear();
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

Offer Jobs::offer() const {
  Offer offer{find_checkpoints(options_.checkpoints, store_.checkpoints()), uploads_.all()};
  const std::lock_guard lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    const auto trained = store_.folder(id) / kTrainedCheckpoint;
    if (job.record.kind == JobKind::train && kernel::has_checkpoints(trained))
      offer.checkpoints.emplace(fmt::format("job-{}", id), trained);
  }
  return offer;
}

const Jobs::Job& Jobs::find(int id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) throw NoSuchJob(fmt::format("there is no job {}", id));
  return found->second;
}

void Jobs::refuse_if_full() const {
  if (closing_) throw QueueFull("the server is ending");
  if (const Bytes used = bytes_below(options_.data); used >= options_.disk)
    throw QueueFull(fmt::format("{} holds {}, and {} is the most that it may (--disk): forget jobs that are done",
                                options_.data.string(), to_string(used), to_string(options_.disk)));
  // While two jobs take turns, both are held for a moment; those that have a place do not wait.
  const auto places = static_cast<std::size_t>(std::max(0, options_.at_once - background_));
  const std::size_t waiting = queue_.size() + held_.size() - std::min(held_.size(), places);
  // A job that begins at once does not count as waiting.
  if (waiting + static_cast<std::size_t>(quick_) >=
      static_cast<std::size_t>(options_.queue) + static_cast<std::size_t>(options_.at_once))
    throw QueueFull(fmt::format("{} job{} wait already, as many as may (--queue): wait until one begins, or cancel one",
                                waiting, waiting == 1 ? "" : "s"));
}

void Jobs::begin_what_may() {
  if (queue_.empty() || quick_ >= options_.at_once || closing_) return;
  if (idle_ == 0) workers_.emplace_back([this] { work(); });
  changed_.notify_one();
}

void Jobs::enqueue(Job& job) {
  job.record.state = JobState::queued;
  job.progress = {};
  job.cancelled = job.too_large = false;
  job.stop = std::make_shared<StopSignal>();
  queue_.push_back(job.record.id);
  save(job);
  begin_what_may();
}

int Jobs::submit(const Form& form) {
  keep_memory_reserve();  // a server runs for long: what happened before may have used it up
  const std::lock_guard lock(mutex_);
  refuse_if_full();
  JobRecord record;
  const int id = record.id = store_.make();
  record.kind = form.kind;
  record.title = form.title;
  record.created = format_time(now());
  try {
    for (const JobInput& file : form.files) write_file(store_.folder(id) / file.name, file.text);
    write_file(store_.folder(id) / kInputFile, form.input);
    store_.save(record);  // a server that is started later would not know the job without it
  } catch (...) {         // for example, the disk is full
    std::error_code ignored;
    std::filesystem::remove_all(store_.folder(id), ignored);
    throw;
  }
  Job& job = jobs_[id];
  job.record = std::move(record);
  enqueue(job);
  return id;
}

void Jobs::cancel(int id) {
  const std::lock_guard lock(mutex_);
  Job& job = find(id);
  if (!job.stop) throw ConfigError(fmt::format("job {} is {} already", id, to_string(job.record.state)));
  job.cancelled = true;
  job.stop->raise();
  const auto waiting = std::find(queue_.begin(), queue_.end(), id);
  if (waiting == queue_.end()) return;
  queue_.erase(waiting);
  job.stop.reset();
  job.record.state = JobState::cancelled;
  save(job);
}

void Jobs::again(int id) {
  const std::lock_guard lock(mutex_);
  Job& job = find(id);
  if (!may_run_again(job.record.state))
    throw ConfigError(fmt::format("job {} is {}; only one that was cancelled, interrupted or failed runs again", id,
                                  to_string(job.record.state)));
  refuse_if_full();
  job.record.message = job.record.note = "";
  job.record.exit_code.reset();
  job.record.seconds = 0;
  job.record.peak_memory_bytes = 0;
  enqueue(job);
}

void Jobs::name(int id, const std::string& name) {
  const std::lock_guard lock(mutex_);
  Job& job = find(id);
  job.record.name = name;
  save(job);
}

void Jobs::forget(int id) {
  const std::lock_guard lock(mutex_);
  const Job& job = find(id);
  if (job.stop) throw ConfigError(fmt::format("job {} is {}: cancel it first", id, to_string(job.record.state)));
  store_.remove(id);
  jobs_.erase(id);
}

void Jobs::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [&] { return closing_ || (!queue_.empty() && quick_ < options_.at_once); });
    --idle_;
    if (closing_) return;
    Job& job = jobs_[queue_.front()];
    queue_.pop_front();
    change_lane(job, Lane::quick);
    run(job, lock);
    change_lane(job, Lane::none);
  }
}

void Jobs::change_lane(Job& job, Lane lane) {
  const auto now = Clock::now();
  if (job.lane == Lane::quick) --quick_;
  if (job.lane == Lane::background) --background_;
  if (job.lane == Lane::held) {
    job.held += now - job.since;
    std::erase(held_, job.record.id);
  }
  job.lane = lane;
  job.since = now;
  if (lane == Lane::quick) ++quick_;
  if (lane == Lane::background) ++background_;
  if (lane == Lane::held) held_.push_back(job.record.id);
  begin_what_may();
}

/// Stops the job if the folder of all jobs has grown beyond its quota. Precondition: the mutex is held.
void Jobs::stop_beyond_quota(Job& job) {
  constexpr auto kBetweenLooks = std::chrono::seconds(2);
  if (job.too_large || Clock::now() - job.measured < kBetweenLooks) return;
  job.measured = Clock::now();
  if (bytes_below(options_.data) <= options_.disk) return;
  job.too_large = true;
  job.stop->raise();
}

Pace Jobs::pace_of(Job& job) {
  const std::lock_guard lock(mutex_);
  stop_beyond_quota(job);
  const bool turn_is_over = std::chrono::duration<double>(Clock::now() - job.since).count() >= options_.short_run.si;
  if (turn_is_over && (job.lane == Lane::quick || (job.lane == Lane::background && !held_.empty())))
    change_lane(job, Lane::held);
  if (job.lane == Lane::held && held_.front() == job.record.id && background_ < options_.at_once)
    change_lane(job, Lane::background);
  return job.lane == Lane::quick ? Pace::full : job.lane == Lane::held ? Pace::held : Pace::background;
}

double Jobs::seconds_of(const Job& job) const {
  const auto until = job.lane == Lane::held ? job.since : Clock::now();
  return std::chrono::duration<double>(until - job.started - job.held).count();
}

void Jobs::run(Job& job, std::unique_lock<std::mutex>& lock) {
  job.record.state = JobState::running;
  job.started = Clock::now();
  job.held = {};
  save(job);
  JobRecord record = job.record;
  const auto stop = job.stop;
  lock.unlock();
  const auto folder = store_.folder(record.id);
  Losses losses;
  if (record.kind == JobKind::train) losses = Losses::read(folder / kLossesFile);
  try {
    const int cores = std::max(1, usable_cores() / options_.at_once);
    const auto commands = commands_of(record.kind, read_file(folder / kInputFile), offer().checkpoints, cores);
    const auto told = [&](const Progress& progress) {
      losses.add(progress);
      const std::lock_guard inner(mutex_);
      job.progress = progress;
      job.losses = losses;
    };
    do_job(record, commands, folder, *stop, options_.limit, {told, [&] { return pace_of(job); }});
    if (!losses.points().empty()) write_file(folder / kLossesFile, losses.csv());
  } catch (const std::exception& error) {
    record.state = JobState::failed;
    record.message = error.what();
  }
  lock.lock();
  record.seconds = seconds_of(job);
  record.name = job.record.name;  // it may have been given meanwhile
  if (record.state == JobState::cancelled && !job.cancelled && job.too_large) {
    record.state = JobState::failed;
    record.message = fmt::format("the jobs' folder grew beyond {} (--disk)", to_string(options_.disk));
  } else if (record.state == JobState::cancelled && !job.cancelled) {
    record.state = JobState::interrupted;
    record.message = "the server ended before the job did";
  }
  job.record = std::move(record);
  job.stop.reset();
  save(job);
}

void Jobs::save(const Job& job) const {
  try {
    store_.save(job.record);
  } catch (const std::exception& error) {  // a full disk must not end the server
    if (options_.remark) options_.remark(error.what());
  }
}

OrderedJson Jobs::json_of(const Job& job) const {
  const JobRecord& record = job.record;
  OrderedJson json = {{"id", record.id},
                      {"kind", to_string(record.kind)},
                      {"title", record.title},
                      {"name", record.name},
                      {"state", to_string(record.state)},
                      {"created", record.created},
                      {"seconds", record.state == JobState::running ? seconds_of(job) : record.seconds}};
  if (record.state == JobState::running)
    json["lane"] = job.lane == Lane::held ? "held" : job.lane == Lane::background ? "background" : "short";
  if (record.state == JobState::queued)
    json["ahead"] = std::find(queue_.begin(), queue_.end(), record.id) - queue_.begin();
  if (record.state == JobState::running && job.progress.count > 0)
    json["progress"] = {{"done", job.progress.done}, {"count", job.progress.count}, {"what", job.progress.what}};
  return json;
}

OrderedJson Jobs::list() const {
  const std::lock_guard lock(mutex_);
  OrderedJson all = OrderedJson::array();
  for (auto it = jobs_.rbegin(); it != jobs_.rend() && all.size() < kMaxListed; ++it)
    all.push_back(json_of(it->second));
  return all;
}

OrderedJson Jobs::describe(int id) const {
  const std::lock_guard lock(mutex_);
  const Job& job = find(id);
  OrderedJson json = json_of(job);
  if (job.record.exit_code) json["exit_code"] = *job.record.exit_code;
  json["message"] = job.record.message;
  json["note"] = job.record.note;
  json["peak_memory_bytes"] = job.record.peak_memory_bytes;
  json["files"] = OrderedJson::array();
  std::error_code ignored;
  const auto folder = store_.folder(id);
  for (const JobFile& file : job_files())
    if (std::filesystem::exists(folder / file.name, ignored)) json["files"].push_back(file.name);
  if (job.record.kind == JobKind::train) {
    json["losses"] = OrderedJson::array();
    const Losses losses = job.stop ? job.losses : Losses::read(folder / kLossesFile);
    for (const Losses::Point& point : losses.points())
      json["losses"].push_back({point.step, point.discriminator, point.generator});
    json["pictures"] = pictures_in(folder);
    if (kernel::has_checkpoints(folder / kTrainedCheckpoint)) json["checkpoint"] = fmt::format("job-{}", id);
  }
  const auto result = folder / "result.json";
  const bool brief = job.record.kind == JobKind::generate || job.record.kind == JobKind::train;
  if (brief && job.record.state == JobState::done &&
      std::filesystem::file_size(result, ignored) < kMaxGenerationBytes) {
    json["result"] = OrderedJson::parse_or_null(read_file(result));
    if (json["result"].is_null()) json.erase("result");
  }
  return json;
}

std::string Jobs::differences(int before, int after) const {
  std::filesystem::path files[2];
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, file] : {std::pair{before, &files[0]}, std::pair{after, &files[1]}}) {
      const JobRecord& record = find(id).record;
      *file = store_.folder(id) / "result.json";
      if (record.state != JobState::done || (record.kind != JobKind::compare && record.kind != JobKind::plan))
        throw ConfigError(
            fmt::format("job {} has no result to compare: expected a comparison or a plan that is done", id));
    }
    if (find(before).record.kind != find(after).record.kind)
      throw ConfigError(
          fmt::format("jobs {} and {} are of different kinds: expected two comparisons or two plans", before, after));
  }
  std::string text = differences_of_results(files[0], files[1]);
  for (const auto& [id, file] : {std::pair{before, files[0].string()}, std::pair{after, files[1].string()}})
    for (std::size_t at; (at = text.find(file)) != std::string::npos;)
      text.replace(at, file.size(), fmt::format("job {}", id));
  return text;
}

std::optional<std::filesystem::path> Jobs::file(int id, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  find(id);
  const auto path = store_.folder(id) / name;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return path;
  return std::nullopt;
}

}  // namespace ganymede::serve
