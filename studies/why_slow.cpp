#include "studies/why_slow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "plan/pick_trace.hpp"
#include "studies/likelihood.hpp"
#include "studies/link_causes.hpp"
#include "studies/scaling.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"

namespace ganymede::studies {
namespace {

using documents::SlowCause;

constexpr double kQuantile95 = 1.6449;  // 95 % quantile of the standard normal distribution
// Assumptions: what is not in the table may be of any size, a fault is known to a third, and that one process drives
// all GPUs is twice as likely the cause where it is known to.
constexpr double kFaultSpread = 0.3, kUnknownSpread = 1.0, kNormalWeight = 3, kKnownProcess = 2;
// Images a second of one hardware thread: the middle of the decoders' of sim/scenario/storage.cpp for ImageNet's
// images, which lie between 70 and 330; smaller images and more work are up to five times off.
constexpr double kThread = 140, kThreadSpread = 1.0, kInputWeight = 2;
constexpr double kInputEdge = 0.15;  // more GPUs that read may be this much slower than one, an assumption
constexpr std::int64_t kUsualParameters = 25'557'032;  // ResNet-50, as torchvision counts them
constexpr int kUsualBatch = 32;
// ResNet-50 takes three times 4.1e9 multiply-adds an image (torchvision); of a GPU's peak it reaches some 0.4, as 190
// images a second of a GTX 1080 Ti are. What trains faster has fewer parameters: in proportion is an assumption.
constexpr double kUsualFlops = 3 * 2 * 4.1e9, kReached = 0.4;

/// What is trained: the gradients and the batch.
constexpr const char* kAssumed = "assumed gradients";
struct Training {
  std::string of;
  double parameters = kUsualParameters;
  int batch = kUsualBatch;
};

Training training_of(const WhySlowOptions& options, std::vector<std::string>& notes) {
  Training out;
  if (!options.model.empty() && !options.recipe.empty())
    throw ConfigError("--model: stands beside --recipe, expected only one of the two");
  if (!options.model.empty() || !options.recipe.empty()) {
    std::string how, name;
    if (options.recipe.empty())
      name = plan::pick_trace(JsonNode::wrap({{"model", options.model}}, "--model", "").child("model"), how);
    if (!options.recipe.empty()) {
      const traces::Recipe recipe = traces::resolve_recipe(options.recipe);
      name = recipe.trace_name();
      out.batch = std::max(1, recipe.batch_on(options.gpus).all / options.gpus);
    }
    const traces::StepTrace trace =
        traces::read_step_trace(JsonNode::parse(traces::trace_text(JsonNode::wrap(Json(name), name, "")), name));
    double bytes = 0;
    for (const traces::TraceBucket& bucket : trace.batches.back().buckets) bytes += static_cast<double>(bucket.bytes);
    out.of = trace.model;
    out.parameters = bytes / 4;
  } else if (options.parameters == 0) {
    out.of = kAssumed;
  }
  if (options.parameters > 0) out.parameters = static_cast<double>(options.parameters), out.of = "--parameters";
  if (options.batch > 0) out.batch = options.batch;
  if (options.batch == 0)
    notes.push_back(fmt::format("{} images on a GPU are taken: --batch says how many", out.batch));
  return out;
}

/// A training and its machine, as a series of measurements in which the rate of one GPU is known.
struct Setup {
  Json series, steps;
  Machine machine;
  calibration::WorkerVariation variation = calibration::kEagerVariation;
  int gpus = 1, batch = 1;
  double one = 0, all = 0;
};

CellPrediction predicted(const Setup& setup) {
  const Json root = {{"machines", {{"here", {{"catalog", "aws"}, {"instance", "p3.16xlarge"}}}}},
                     {"steps", setup.steps}};
  const JsonNode file = JsonNode::wrap(root, "why-slow", "");
  ScalingSeries series(JsonNode::wrap(setup.series, "why-slow", ""), file, setup.machine);
  series.set_variation(setup.variation);
  (void)series.fit({});
  return series.predict({setup.gpus, setup.batch, 1, setup.all, false, {}});
}

/// A cause in how the training is written. Those of links are in link_causes().
struct TrainingCause {
  const char *name, *says, *shows;
  double weight;
  /// The rate with it, one for each degree in which it may be so.
  std::vector<double> (*rates)(const Setup& setup);
};

double rate_with(Setup setup, void (*change)(Setup&)) {
  change(setup);
  return predicted(setup).value;
}

Setup of_split_batch(Setup setup) {
  setup.batch = std::max(1, setup.batch / setup.gpus);
  return setup;
}

/// One process launches the kernels of all replicas one after the other, besides gathering on one GPU. How much of one
/// GPU's step is launching is not known: nothing, half or all of it. Nor is whether the batch was split.
std::vector<double> of_one_process(const Setup& setup) {
  std::vector<double> rates;
  for (const Setup& of : {setup, of_split_batch(setup)}) {
    const double gathered =
        rate_with(of, [](Setup& one) { one.series["scheme"] = "reduce-to-one", one.series["overlap"] = false; });
    const double images = of.gpus * of.batch, alone = setup.batch / setup.one;
    for (const double launching : {0.0, 0.5, 1.0})
      rates.push_back(images / std::max(images / gathered, launching * setup.gpus * alone));
  }
  return rates;
}

// Prior weights are assumptions, set once by how often each is the answer in the half of tests/studies/situations.json
// that is not held out.
constexpr TrainingCause kTrainingCauses[] = {
    {"single-process",
     "one process drives all GPUs (nn.DataParallel): it launches for each in turn, and gathers gradients on one",
     "ps shows one process; torchrun with DistributedDataParallel mends it", 2, of_one_process},
    {"no-overlap", "gradients are reduced only after the backward pass",
     "a profiler trace shows NCCL after the last backward kernel: no_sync, a hook or one flat buffer", 0.5,
     [](const Setup& setup) {
       return std::vector{rate_with(setup, [](Setup& one) { one.series["overlap"] = false; })};
     }},
    {"split-batch", "the batch of one GPU was split over all, so that each has too little to do",
     "compare the batch of one GPU in both runs; raise it with the number of GPUs", 0.3,
     [](const Setup& setup) { return std::vector{predicted(of_split_batch(setup)).value}; }},
    {"stragglers", "workers wait for each other: unlike inputs, clocks or other jobs on the GPUs",
     "step times by rank; nvidia-smi -q -d PERFORMANCE shows throttled clocks", 0.7, [](const Setup& setup) {
       return std::vector{
           rate_with(setup, [](Setup& one) { one.variation.between *= 3, one.variation.central *= 3; }),
           rate_with(setup, [](Setup& one) { one.variation.between *= 10, one.variation.central *= 10; }),
           rate_with(setup, [](Setup& one) { one.variation.between *= 30, one.variation.central *= 30; })};
     }}};
// Links inside a node, and those again where there is a network, whose weight is 1.
constexpr double kInsideWeight = 0.5, kInsideBesideNetwork = 0.25;

double dollars_an_hour(const platforms::Instance& instance) {
  double least = 0;
  for (const platforms::Price& price : instance.prices)
    if (price.market == platforms::Market::on_demand && !price.ownership) {
      const double usd = usd_of(price.per_hour);
      if (usd > 0 && (least == 0 || usd < least)) least = usd;
    }
  return least;
}

class Scaling {
 public:
  explicit Scaling(const WhySlowOptions& options) {
    const int nodes = std::max(1, options.nodes);
    if (options.gpus < 2) throw ConfigError("--gpus: expected the number of GPUs of the second rate, two or more");
    if (options.gpus % nodes != 0)
      throw ConfigError(fmt::format("--nodes {}: does not divide the {} GPUs", nodes, options.gpus));
    Training training = training_of(options, answer_.notes);
    answer_.one = rate_of("--one", options.one, training.batch, options.images);
    answer_.all = rate_of("--all", options.all, static_cast<double>(training.batch) * options.gpus, options.images);
    if (answer_.all > 2 * answer_.one * options.gpus)
      throw ConfigError(fmt::format("--all {}: more than twice {} times --one {}: do both count the same images?",
                                    options.all, options.gpus, options.one));
    if (options.parameters > 250'000'000'000)
      throw ConfigError("--parameters: expected at most 250 billion, which every GPU would reduce whole");
    per_node_ = options.gpus / nodes;
    traces::NcclLog asked;
    asked.file = "why-slow", asked.ranks = options.gpus, asked.nodes = nodes;
    const LoggedMachine found = logged_machine(asked, "", options, options);
    if (found.instance.gpus < per_node_)
      throw ConfigError(fmt::format("--gpus {}: {} has {}; --nodes says over how many nodes they are", options.gpus,
                                    found.instance.name, found.instance.gpus));
    checked_ = {found.instance, nodes, per_node_};
    platform_ = found.platform;
    if (training.of == kAssumed) {
      const double usual = kReached * platform_.gpu_of(found.instance).fp32.si / kUsualFlops;
      training.parameters *= std::min(1.0, usual / answer_.one);
      answer_.notes.push_back(
          fmt::format("gradients are taken to be of {:.3g}M parameters, ResNet-50's or less where one GPU is faster: "
                      "--parameters, --model or --recipe say it",
                      training.parameters * 1e-6));
    }
    launcher_ = options.launcher, synthetic_ = options.synthetic;
    answer_.catalog = found.catalog, answer_.instance = found.instance.name, answer_.recognised = found.how;
    answer_.of = training.of, answer_.parameters = training.parameters, answer_.batch = training.batch;
    answer_.gpus = options.gpus, answer_.nodes = nodes, answer_.images = images_of(options);
    answer_.usd_per_hour = dollars_an_hour(found.instance) * nodes;
    answer_.efficiency = answer_.all / (answer_.one * options.gpus);
    setup_ = setup_of(training);
  }

  documents::WhySlow explain() {
    const CellPrediction normal = predicted(setup_);
    answer_.expected = normal.value, answer_.interval = {normal.low, normal.high};
    add_shares(normal);
    const double off = ln(answer_.all / normal.value);
    const double width = std::max(0.03, ln(normal.high / normal.low) / 2 / kQuantile95);
    // Within the interval or faster, nothing is wrong but what the machine and the training make of it.
    answer_.verdict = answer_.all > normal.high ? "faster" : answer_.all >= normal.low ? "as expected" : "slow";
    add({"normal", "this is what the machine gives: see the parts of a step", ""}, normal_density(off, width),
        kNormalWeight, normal.value);
    if (answer_.verdict != "faster")
      add({"unexplained",
           "none of these: host work between steps (logging, checkpoints, evaluation), one process for all "
           "workers' host work",
           "a profiler trace of one rank: why-slow TRACE"},
          normal_density(off, kUnknownSpread), 1, {});
    if (off < 0) {
      if (!synthetic_) add_input();
      for (const TrainingCause& cause : kTrainingCauses)
        if (const double weight = cause.weight * known(cause.name); weight > 0)
          try_cause({cause.name, cause.says, cause.shows}, weight, cause.rates(setup_), width);
      for (const LinkCause& cause : link_causes()) add_link_cause(cause, width);
    }
    finish();
    return answer_;
  }

 private:
  /// How much likelier a cause is by what is known of this training. Images differ, and the mean of a few in a step
  /// varies more than that of many, with the root of their number: then workers wait more.
  double known(std::string_view cause) const {
    if (cause == "stragglers") return std::sqrt(std::max(1.0, static_cast<double>(kUsualBatch) / answer_.batch));
    if (cause != "single-process" || launcher_.empty()) return 1;
    return launcher_ == "processes" ? 0 : kKnownProcess;
  }

  Setup setup_of(const Training& training) {
    Setup out;
    out.gpus = answer_.gpus, out.batch = training.batch, out.one = answer_.one, out.all = answer_.all;
    out.machine = machine_of(checked_.instance);
    // A backward pass costs two forward ones; gradients become ready evenly over it, in five pieces: assumptions.
    Json buckets = Json::array();
    for (int i = 1; i <= 5; ++i)
      buckets.push_back({{"network", "model"},
                         {"bytes", std::round(training.parameters * 4 / 5)},
                         {"after", "backward"},
                         {"ready", i / 5.0}});
    const auto phase = [](const char* name, double share) {
      return Json{{"name", name}, {"network", "model"}, {"share", share}};
    };
    out.steps = {
        {"step",
         {{"phases", {phase("forward", 0.33), phase("backward", 0.66), phase("update", 0.01)}}, {"buckets", buckets}}}};
    const auto cell = [&](int gpus, double rate, const char* role) {
      return Json{{"gpus", gpus}, {"batch", training.batch}, {"measured", rate}, {"role", role}};
    };
    out.series = {{"name", "rates"},
                  {"unit", "images/s"},
                  {"machine", "here"},
                  {"step", "step"},
                  {"scheme", "nccl"},
                  {"executor", "eager"},
                  {"cells", {cell(1, answer_.one, "fit")}}};
    return out;
  }

  Machine machine_of(const platforms::Instance& instance) const {
    platforms::Platform platform = platform_;
    for (platforms::Instance& other : platform.instances)
      if (other.name == instance.name) other = instance;
    const auto changed = std::make_shared<const platforms::Platform>(std::move(platform));
    return {changed, changed, instance.name, per_node_, {}};
  }

  void add_shares(const CellPrediction& normal) {
    const double step = answer_.gpus * answer_.batch / answer_.all;
    const double alone = std::min(step, answer_.batch / answer_.one);
    const double links = normal.parts.collectives_s;
    const double waiting = normal.parts.step_s - normal.parts.alone_s - links;
    // Where a training is faster than expected, what is beyond computing is shared out as it was expected.
    const double beyond = std::max(0.0, step - alone), scale = std::min(1.0, beyond / std::max(links + waiting, 1e-12));
    const auto part = [&](const char* name, const char* says, double seconds) {
      answer_.shares.push_back({name, says, seconds, seconds / step});
    };
    part("compute", "as on one GPU", alone);
    part("communication", "gradients on links that work, beyond what computing hides", links * scale);
    part("waiting", "for the slowest worker and for work on gradients, as usual", waiting * scale);
    part("rest", "what is not explained by these: see the causes",
         std::max(0.0, step - alone - (links + waiting) * scale));
  }

  void add(SlowCause cause, double likelihood, double prior, std::optional<double> rate) {
    cause.probability = likelihood * prior;
    cause.rate = rate;
    answer_.causes.push_back(std::move(cause));
  }

  /// A cause of several degrees is as likely as they are on average; the rate is that of the one that fits best.
  void try_cause(SlowCause cause, double weight, const std::vector<double>& rates, double width) {
    double sum = 0, best = 0, rate_of_best = 0;
    int count = 0;
    for (const double rate : rates) {
      if (rate > 0.97 * answer_.expected) continue;  // it does not slow the training down
      const double fits = normal_density(ln(answer_.all / rate), std::hypot(width, kFaultSpread));
      sum += fits, ++count;
      if (fits >= best) best = fits, rate_of_best = rate;
    }
    if (count > 0) add(std::move(cause), sum / count, weight, rate_of_best);
  }

  void add_link_cause(const LinkCause& cause, double width) {
    std::vector<double> rates;
    CheckedMachine one_node = checked_;
    one_node.nodes = 1;
    const bool inside = cause.change(one_node, cause.degrees.front());
    const double place = !inside ? 1 : checked_.nodes > 1 ? kInsideBesideNetwork : kInsideWeight;
    for (const double degree : cause.degrees) {
      CheckedMachine machine = checked_;
      if (!cause.change(machine, degree) || !machine.forced.empty() || machine.last_node) continue;
      Setup changed = setup_;
      changed.machine = machine_of(machine.instance);
      try {
        rates.push_back(predicted(changed).value);
      } catch (const ConfigError&) {
        // The machine has no such part.
      }
    }
    try_cause({std::string(cause.name), std::string(cause.says), std::string(cause.shows)}, cause.weight * place, rates,
              width);
  }

  /// One GPU was fed, all are not. Either the hardware threads prepare no more, or storage or the loader gives out
  /// somewhere between the rate of one GPU and what all should train.
  void add_input() {
    const int threads = checked_.instance.vcpus * checked_.nodes;
    const double below = std::min(0.0, ln(answer_.all / answer_.one)) / kInputEdge;
    const double anywhere =
        portable_exp(-0.5 * below * below) / std::max(2 * kInputEdge, ln(answer_.expected / answer_.one));
    const double processors =
        threads == 0 ? anywhere : normal_density(ln(answer_.all / threads / kThread), kThreadSpread);
    add({"input",
         threads == 0
             ? "images are not prepared fast enough"
             : fmt::format("images are not prepared fast enough, by {} hardware threads or by storage", threads),
         "nvidia-smi shows GPUs that wait while processors or storage are busy; the same with synthetic images is "
         "faster; more workers, a faster decoder, a cache"},
        (below < 0 ? anywhere : (processors + anywhere) / 2), kInputWeight, answer_.all);
  }

  void finish() {
    double all = 0;
    for (const SlowCause& cause : answer_.causes) all += cause.probability;
    for (SlowCause& cause : answer_.causes) {
      cause.probability = all > 0 ? cause.probability / all : 0;
      if (cause.probability > 0.5 && cause.cause != "normal" && answer_.all < answer_.expected)
        answer_.verdict = "slow";  // within the interval, but something is likelier than that nothing is wrong
    }
    for (SlowCause& cause : answer_.causes) {
      if (cause.cause == "normal" || answer_.verdict != "slow") continue;
      cause.mended = answer_.expected;
      cause.saved_hours = answer_.images * (1 / answer_.all - 1 / answer_.expected) / 3600;
      if (answer_.usd_per_hour > 0) cause.saved_usd = *cause.saved_hours * answer_.usd_per_hour;
    }
    std::stable_sort(answer_.causes.begin(), answer_.causes.end(),
                     [](const SlowCause& a, const SlowCause& b) { return a.probability > b.probability; });
  }

  documents::WhySlow answer_;
  platforms::Platform platform_;
  CheckedMachine checked_;
  Setup setup_;
  int per_node_ = 1;
  std::string launcher_;
  bool synthetic_ = false;
};

}  // namespace

documents::WhySlow why_slow(const WhySlowOptions& options) {
  if (!options.trace.empty()) {
    if (!options.one.empty() || !options.all.empty())
      throw ConfigError("why-slow: found a trace and rates, expected one of the two");
    return why_slow_of_trace(options);
  }
  if (options.one.empty() || options.all.empty())
    throw ConfigError("why-slow: expected --one and --all, the rates of one GPU and of all, or a profiler trace");
  return Scaling(options).explain();
}

}  // namespace ganymede::studies
