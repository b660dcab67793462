#include "serve/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/dates.hpp"
#include "common/file.hpp"
#include "common/process.hpp"

namespace ganymede::serve {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxListed = 200;
constexpr std::uintmax_t kMaxGenerationBytes = 64 << 10;  ///< of the output of `generate` that is shown

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool may_run_again(JobState state) {
  return state == JobState::failed || state == JobState::cancelled || state == JobState::interrupted;
}

}  // namespace

Jobs::Jobs(JobOptions options) : options_(std::move(options)), store_(options_.data) {
  std::vector<std::string> remarks;
  for (JobRecord& record : store_.load(remarks)) jobs_[record.id].record = std::move(record);
  if (options_.remark)
    for (const std::string& remark : remarks) options_.remark(remark);
  for (int i = 0; i < options_.at_once; ++i) workers_.emplace_back([this] { work(); });
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

Checkpoints Jobs::checkpoints() const { return find_checkpoints(options_.checkpoints, store_.checkpoints()); }

const Jobs::Job& Jobs::find(int id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) throw NoSuchJob(fmt::format("there is no job {}", id));
  return found->second;
}

void Jobs::refuse_if_full() const {
  if (closing_) throw QueueFull("the server is ending");
  // A job that begins at once does not count as waiting.
  if (queue_.size() + running_ >= static_cast<std::size_t>(options_.queue) + static_cast<std::size_t>(options_.at_once))
    throw QueueFull(fmt::format("{} job{} wait already, as many as may (--queue): wait until one begins, or cancel one",
                                queue_.size(), queue_.size() == 1 ? "" : "s"));
}

void Jobs::enqueue(Job& job) {
  job.record.state = JobState::queued;
  job.progress = {};
  job.cancelled = false;
  job.stop = std::make_shared<StopSignal>();
  queue_.push_back(job.record.id);
  save(job);
  changed_.notify_one();
}

int Jobs::submit(const Form& form) {
  const std::lock_guard lock(mutex_);
  refuse_if_full();
  const int id = store_.make();
  try {
    write_file(store_.folder(id) / kInputFile, form.input);
  } catch (...) {  // for example, the disk is full
    std::error_code ignored;
    std::filesystem::remove_all(store_.folder(id), ignored);
    throw;
  }
  Job& job = jobs_[id];
  job.record.id = id;
  job.record.kind = form.kind;
  job.record.title = form.title;
  job.record.created = format_time(now());
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

void Jobs::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (closing_) return;
    Job& job = jobs_[queue_.front()];
    queue_.pop_front();
    ++running_;
    run(job, lock);
    --running_;
  }
}

void Jobs::run(Job& job, std::unique_lock<std::mutex>& lock) {
  job.record.state = JobState::running;
  job.started = Clock::now();
  save(job);
  JobRecord record = job.record;
  const auto stop = job.stop;
  lock.unlock();
  const auto folder = store_.folder(record.id);
  try {
    const int cores = std::max(1, usable_cores() / options_.at_once);
    const auto arguments = arguments_of(record.kind, read_file(folder / kInputFile), checkpoints(), cores);
    do_job(record, arguments, folder, *stop, options_.limit, [&](const Progress& progress) {
      const std::lock_guard inner(mutex_);
      job.progress = progress;
    });
  } catch (const std::exception& error) {
    record.state = JobState::failed;
    record.message = error.what();
  }
  lock.lock();
  record.seconds = seconds_since(job.started);
  if (record.state == JobState::cancelled && !job.cancelled) {
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
                      {"state", to_string(record.state)},
                      {"created", record.created},
                      {"seconds", record.state == JobState::running ? seconds_since(job.started) : record.seconds}};
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
  const auto result = folder / "result.json";
  if (job.record.kind == JobKind::generate && job.record.state == JobState::done &&
      std::filesystem::file_size(result, ignored) < kMaxGenerationBytes) {
    json["result"] = OrderedJson::parse(read_file(result), nullptr, false);
    if (json["result"].is_discarded()) json.erase("result");
  }
  return json;
}

std::optional<std::filesystem::path> Jobs::file(int id, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  find(id);
  for (const JobFile& file : job_files()) {
    std::error_code ignored;
    const auto path = store_.folder(id) / file.name;
    if (file.name == name && std::filesystem::is_regular_file(path, ignored)) return path;
  }
  return std::nullopt;
}

}  // namespace ganymede::serve
