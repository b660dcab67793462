#include "kernel/session/session.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <optional>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "kernel/checkpoint.hpp"
#include "kernel/describe.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/ops/single_process_scope.hpp"
#include "kernel/parallel/thread_group.hpp"
#include "kernel/samples.hpp"
#include "kernel/session/run_log_writer.hpp"
#include "kernel/weights.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kSamples = 64;
constexpr int kTranslations = 12;      // of each domain
constexpr std::int64_t kReports = 10;  // number of steps whose losses are reported

/// Set by SIGINT and SIGTERM: the training ends after the current step.
volatile std::sig_atomic_t stop_asked = 0;

/// How a signal ended the program before the training began: what it is writing is removed.
void (*usual_interrupt)(int) = SIG_DFL;
void (*usual_end)(int) = SIG_DFL;

/// While it lives, the signals set stop_asked. After it the first signal lets the program write what it has trained,
/// which is what it would be stopped for, and the second ends it as usual.
class StopOnSignals {
 public:
  StopOnSignals() {
    const auto interrupt = std::signal(SIGINT, ask), end = std::signal(SIGTERM, ask);
    // A replica in another thread may have been first.
    if (interrupt != ask && interrupt != write_first) usual_interrupt = interrupt;
    if (end != ask && end != write_first) usual_end = end;
  }
  ~StopOnSignals() {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, write_first);
  }
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

 private:
  static void ask(int /*signal*/) { stop_asked = 1; }
  static void write_first(int signal) { std::signal(signal, signal == SIGINT ? usual_interrupt : usual_end); }
};

struct Stopped {};

bool is_multiple(std::int64_t step, std::int64_t interval) { return interval > 0 && step % interval == 0; }

double peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

/// The steps of each stage of a growing model, unless the user or the checkpoint to resume from sets them: the model
/// then reaches its full size within the training.
std::int64_t stage_steps_of(const SessionOptions& options) {
  const Model& model = find_model(options.train.model);
  if (!model.grows() || options.train.stage_steps > 0) return options.train.stage_steps;
  std::vector<std::string> damaged;
  if (options.resume)
    if (const auto found = last_checkpoint(options.checkpoint, damaged))
      return found->metadata().number("stage-steps", 0);
  const std::int64_t parts = 2 * std::int64_t{model.stages(image_of(options.train))} - 1;
  return std::max<std::int64_t>(1, options.steps / parts);
}

/// One replica of a training, which may be the only one. Only the first tells what it does, and writes files.
class Replica {
 public:
  Replica(const SessionOptions& options, const SessionView& view, Communicator* communicator)
      : options_(options),
        first_(communicator == nullptr || communicator->shard().rank == 0),
        view_(first_ ? view : SessionView{}),
        lock_(lock()),
        trainer_(options.train, communicator) {}

  SessionReport train() {
    const BackendInfo& info = trainer_.backend().info;
    remark(fmt::format("training {} with {} on {} ({})", options_.train.model, info.backend, info.device,
                       info.instructions));
    if (!options_.init.empty()) read_weights(trainer_.gan(), trainer_.ops(), options_.init);
    if (options_.resume) resume();
    report_.shard = trainer_.shard();
    try {
      run();
    } catch (const Stopped&) {
      report_.stopped = true;
      if (!options_.checkpoint.empty() && first_) save_checkpoint();
      remark(fmt::format(
          "stopped after step {}{}", trainer_.steps_done(),
          options_.checkpoint.empty() ? "; --checkpoint would have kept it" : "; --resume goes on from there"));
      return report_;
    }
    describe_run();
    if (first_) write_outputs();
    return report_;
  }

 private:
  void remark(const std::string& sentence) const {
    if (view_.remark) view_.remark(sentence);
  }

  /// Locks the directory of checkpoints for this training; null if it keeps none.
  std::unique_ptr<CheckpointLock> lock() const {
    if (!first_ || options_.checkpoint.empty()) return nullptr;
    auto lock = std::make_unique<CheckpointLock>(options_.checkpoint);
    // Checked again, because another training may have started and ended since the options were checked.
    refuse_earlier_checkpoints(options_);
    return lock;
  }

  void save_checkpoint() { kernel::save_checkpoint(options_.checkpoint, trainer_.steps_done(), trainer_.checkpoint()); }

  void write_samples(const std::string& file) {
    trainer_.pause();
    const SingleProcessScope single(trainer_.ops());
    const Dataset& dataset = trainer_.dataset();
    if (!trainer_.gan().takes_images())
      return write_file(file, sample_grid(trainer_.gan(), trainer_.ops(), options_.train.seed, kSamples));
    const auto read = [&](int domain, int index, std::uint8_t* out) {
      (domain == 0 ? dataset : *dataset.other).read(static_cast<std::uint32_t>(index), out);
    };
    write_file(file, translation_grid(trainer_.gan(), trainer_.ops(), read, kTranslations));
  }

  Quality measure() {
    trainer_.pause();
    const SingleProcessScope single(trainer_.ops());
    report_.quality.emplace_back(trainer_.steps_done(),
                                 meter_->measure(trainer_.gan(), trainer_.ops(), options_.train.seed));
    return report_.quality.back().second;
  }

  void prepare_to_measure();
  void resume();
  void run();
  void after_step(const Progress& progress, RunLogWriter& log);
  void describe_run();
  void write_outputs();
  bool is_for_checkpoint(std::int64_t step) const {
    return !options_.checkpoint.empty() && is_multiple(step, options_.checkpoint_every);
  }

  const SessionOptions& options_;
  bool first_;
  SessionView view_;
  std::unique_ptr<CheckpointLock> lock_;
  Trainer trainer_;
  std::optional<QualityMeter> meter_;
  SessionReport report_;
};

/// Continues from the last whole checkpoint; if there is none, says that the training begins. If all the steps are
/// done, only the outputs are written, which a program killed after its last checkpoint could not write. Throws
/// ConfigError if more steps are done than the training has, or if a trace is asked for where no step is left to time.
void Replica::resume() {
  std::vector<std::string> damaged;
  const auto found = last_checkpoint(options_.checkpoint, damaged);
  for (const auto& file : damaged) remark(file + "; left aside");
  if (!found) return remark(fmt::format("{}: no checkpoint yet, beginning", options_.checkpoint));
  trainer_.restore(found->content, found->file);
  remark(fmt::format("going on from {}", found->file));
  if (trainer_.steps_done() < options_.steps) return;
  if (trainer_.steps_done() > options_.steps)
    throw ConfigError(fmt::format("--steps: found {}, expected at least the {} that {} has done", options_.steps,
                                  trainer_.steps_done(), found->file));
  if (!options_.trace.empty())
    throw ConfigError(
        fmt::format("--trace: found all {} steps done in {}, expected one to time", options_.steps, found->file));
  remark(fmt::format("all {} steps are done; writing what the training leaves", options_.steps));
}

void Replica::prepare_to_measure() {
  const SingleProcessScope single(trainer_.ops());
  remark(options_.features.empty() ? "measuring quality by a classifier, which is trained at its first use"
                                   : "measuring quality by " + options_.features);
  const auto waiting = view_.waiting ? view_.waiting("preparing to measure quality") : nullptr;
  meter_.emplace(trainer_.whole_dataset(), trainer_.ops(), options_.quality, cache_directory(), options_.features);
}

void Replica::run() {
  if (options_.quality != 0 && first_) prepare_to_measure();
  const std::int64_t first = trainer_.steps_done(), last = options_.steps;
  std::function<void(const Progress&)> show;
  report_.loss_names = loss_names(trainer_.gan().step);
  if (view_.steps)
    show =
        view_.steps(first, last, trainer_.global_batch(), find_model(options_.train.model).grows(), report_.loss_names);
  const StopOnSignals signals;
  const std::int64_t interval = std::max<std::int64_t>(1, (last - first) / kReports);
  report_.history.reserve(2 * kReports);
  RunLogWriter log(first_ ? options_.metrics : "", trainer_, options_.steps, options_.resume,
                   [this](const std::string& sentence) { remark(sentence); });
  const auto report = [&](const Progress& progress) {
    if (show) show(progress);
    if ((progress.step - first) % interval == 0 || progress.step == last) report_.history.push_back(progress);
    after_step(progress, log);
  };
  report_.result = trainer_.run(last - first, report, [&](std::int64_t step) {
    return is_for_checkpoint(step) || is_multiple(step, options_.samples_every) ||
           is_multiple(step, options_.quality_every);
  });
  if (meter_) log.evaluation(trainer_.steps_done(), [&] { return measure(); });
  log.end("finished", trainer_.steps_done());
}

void Replica::after_step(const Progress& progress, RunLogWriter& log) {
  const std::int64_t step = progress.step;
  log.step(progress);
  if (step == options_.steps) return;  // the last step leaves nothing to stop, nor to go on with
  if (stop_asked != 0) trainer_.stop();
  if (trainer_.stopping()) {
    log.end("stopped", step);
    throw Stopped{};
  }
  if (!first_) return;
  if (is_for_checkpoint(step)) log.pause("checkpoint", step, [&] { save_checkpoint(); });
  if (is_multiple(step, options_.samples_every))
    log.pause("samples", step, [&] { write_samples(name_at_step(options_.samples, step)); });
  if (is_multiple(step, options_.quality_every)) log.evaluation(step, [&] { return measure(); });
}

void Replica::describe_run() {
  report_.dataset = trainer_.dataset().name;
  report_.images = trainer_.dataset().count();
  report_.epoch = trainer_.epoch();
  report_.backend = trainer_.backend().info;
  report_.reduces_on_device = trainer_.backend().gradient_reducer != nullptr;
  report_.global_batch = trainer_.global_batch();
  report_.waited_s = trainer_.waited_s();
  report_.predicted_bytes = predicted_memory_bytes(trainer_.options(), trainer_.ops());
  report_.allocated_peak_bytes = static_cast<double>(trainer_.ops().peak_allocated_bytes());
  report_.resident_peak_bytes = peak_resident_bytes();
}

void Replica::write_outputs() {
  // One that cannot be written, as on a full disk, takes none of the others with it.
  std::exception_ptr first;
  const auto write = [&first](const std::string& file, const auto& act) {
    try {
      if (!file.empty()) act(file);
    } catch (const std::exception&) {
      if (!first) first = std::current_exception();
    }
  };
  write(options_.checkpoint, [&](const std::string&) { save_checkpoint(); });
  write(options_.samples, [&](const std::string& file) { write_samples(file); });
  write(options_.weights,
        [&](const std::string& file) { write_file(file, write_weights(trainer_.gan(), trainer_.ops())); });
  write(options_.trace, [&](const std::string& file) {
    write_file(file, traces::write_step_trace(trainer_.trace(warmup_of(options_.steps))));
  });
  write(options_.quality_curve, [&](const std::string&) { add_quality_curve(report_, options_); });
  if (first) std::rethrow_exception(first);
}

}  // namespace

SessionReport run_session(const SessionOptions& given, const SessionView& view) {
  check_gpus(given);
  SessionOptions options = given;
  options.train.trace = !options.trace.empty();
  options.train.stage_steps = stage_steps_of(options);
  if (options.gpus > 1) {
    check_replicas(options, options.gpus);
    SessionReport report;
    ThreadGroup::run(options.gpus, [&](Communicator& communicator) {
      SessionOptions mine = options;
      mine.train.gpu = communicator.shard().rank;
      const SessionReport own = Replica(mine, view, &communicator).train();
      if (communicator.shard().rank == 0) report = own;
    });
    return report;
  }
  const auto communicator = open_communicator();
  if (communicator != nullptr) check_same_options(options, *communicator);
  check_replicas(options, communicator == nullptr ? 1 : communicator->shard().ranks);
  if (communicator != nullptr && options.train.backend != "cpu") options.train.gpu = gpu_of_process(count_gpus().count);
  return Replica(options, view, communicator.get()).train();
}

}  // namespace ganymede::kernel
