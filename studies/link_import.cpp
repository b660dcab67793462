#include "studies/link_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "calibration/link_fit.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "platforms/measured_collective.hpp"
#include "platforms/overlay.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/nccl_tuner.hpp"
#include "studies/link_report.hpp"
#include "studies/logged_collective.hpp"
#include "traces/nccl_log.hpp"

namespace ganymede::studies {
namespace {

/// If even a link of endless bandwidth leaves a model this many times slower than the log, the log is of another
/// machine.
constexpr double kAnotherMachine = 3;

/// A link that would have to be faster than stated by more than kTooFast is no such link; one slower by more than
/// kSlow, or whose latency is longer by more, is worth a remark.
constexpr double kTooFast = 10, kSlow = 5;

/// The link that bounds the log's collective, which is the one to fit.
struct FittedLink {
  const char* name;   ///< the instance's member, or MEMBER/MEMBER inside it
  const char* title;  ///< for people
};
FittedLink fitted_link(const platforms::Instance& instance, int nodes) {
  if (nodes > 1) return {"nic", "NIC"};
  if (!instance.gpu_links) return {"host_link", "host link"};
  if (instance.gpu_links->staging) return {"gpu_links/staging", "staging through host memory"};
  return {"gpu_links", "GPU links"};
}

platforms::Link& link_of(platforms::Instance& instance, const FittedLink& which) {
  const std::string_view name = which.name;
  if (name == "nic") return *instance.nic;
  if (name == "host_link") return *instance.host_link;
  if (name == "gpu_links") return *instance.gpu_links;
  return *instance.gpu_links->staging;
}

/// The allocation and the collective of a log, on a platform whose link is fitted.
class Setting : public LoggedCollective {
 public:
  Setting(const traces::NcclLog& log, const LinkImport& options, platforms::Platform platform)
      : LoggedCollective(log, options, platform.instance(options.instance)),
        link(fitted_link(platform.instance(options.instance), nodes)),
        platform_(std::move(platform)),
        instance_(static_cast<std::size_t>(&platform_.instance(options.instance) - platform_.instances.data())),
        stated_(instance()) {}

  const platforms::Platform& platform() const { return platform_; }
  const platforms::Instance& instance() const { return platform_.instances[instance_]; }

  Prediction predict(Seconds latency, BytesPerSecond bandwidth, std::int64_t bytes, bool explain) {
    platforms::Instance& instance = platform_.instances[instance_];
    platforms::Link& fitted = link_of(instance, link);
    fitted.latency = latency;
    fitted.bandwidth = bandwidth;
    (nodes == 1 && instance.gpu_links ? static_cast<platforms::Link&>(*instance.gpu_links) : fitted).label = "measured";
    if (instance.nic && nodes > 1) {  // the measured bandwidth includes these limits
      instance.nic->per_flow.reset();
      instance.nic->tcp.reset();
    }
    return LoggedCollective::predict(platform_, {{&instance, nodes, gpus_per_node}}, bytes, explain);
  }

  /// The link as the platform states it.
  const platforms::Link& stated() { return link_of(stated_, link); }
  /// The links that explain the samples best, or nearly with the platform's bandwidth kept. Sizes from 1 MiB on tell
  /// little of a latency: if there are no others, and the machine was known, the platform's is kept.
  calibration::LinkFit fit(std::span<const calibration::CollectiveSample> samples, bool keep_bandwidth = false) {
    constexpr std::int64_t kTellsLatency = 1 << 20;
    calibration::StatedLink before{stated().bandwidth, keep_bandwidth};
    if (samples.front().bytes >= kTellsLatency && stated_off(samples) < platforms::MeasuredCollective::kKnown)
      before.latency = stated().latency;
    return calibration::fit_links(
        samples,
        [this](Seconds latency, BytesPerSecond bandwidth, std::int64_t bytes) {
          return predict(latency, bandwidth, bytes, false).time;
        },
        before);
  }
  /// MeasuredCollective::stated_off of the samples.
  double stated_off(std::span<const calibration::CollectiveSample> samples) const {
    platforms::Platform platform = platform_;
    platforms::Instance& instance = platform.instances[instance_] = stated_;
    double off = 0;
    for (const calibration::CollectiveSample& sample : {samples.front(), samples.back()})
      off = std::max(
          off,
          std::abs(std::log(
              sample.time /
              LoggedCollective::predict(platform, {{&instance, nodes, gpus_per_node}}, sample.bytes, false).time)));
    return off;
  }

  FittedLink link{};

 private:
  platforms::Platform platform_;
  std::size_t instance_ = 0;
  platforms::Instance stated_;
};

std::vector<calibration::CollectiveSample> samples_of(const traces::NcclLog& log) {
  std::vector<calibration::CollectiveSample> samples;
  for (const traces::NcclRow& row : log.rows) samples.push_back({row.bytes, row.out_of_place});
  if (samples.size() < 2)
    throw ConfigError(fmt::format("{}: found {} usable sizes, expected at least two to fit latency and bandwidth",
                                  log.file, samples.size()));
  return samples;
}

/// Explains the sizes that the model predicts worst: a note for each run of neighbouring sizes that are off by
/// more than a tenth in the same direction and have the same choice.
std::vector<std::string> explanations(Setting& setting, const calibration::LinkFit& fit) {
  constexpr double kWorthANote = 0.1;
  struct Run {
    std::string choice, bottleneck;
    std::int64_t first = 0, last = 0;
    double worst = 0;
  };
  std::vector<Run> runs;
  bool joined = false;
  for (const calibration::FittedSample& sample : fit.samples) {
    const double off = sample.predicted / sample.measured.time - 1;
    if (std::abs(off) < kWorthANote) {
      joined = false;
      continue;
    }
    const auto what = setting.predict(fit.latency, fit.bandwidth, sample.measured.bytes, true);
    if (!joined || runs.back().choice != what.choice || runs.back().worst * off < 0)
      runs.push_back({what.choice, what.bottleneck, sample.measured.bytes, 0, 0});
    joined = true;
    runs.back().last = sample.measured.bytes;
    if (std::abs(off) > std::abs(runs.back().worst)) runs.back().worst = off, runs.back().bottleneck = what.bottleneck;
  }
  std::vector<std::string> out;
  for (const Run& run : runs)
    out.push_back(
        fmt::format("{}{}: by links up to {:.0f} % too {}; {}{}", to_string(Bytes{static_cast<double>(run.first)}),
                    run.first == run.last ? "" : " to " + to_string(Bytes{static_cast<double>(run.last)}),
                    100 * std::abs(run.worst), run.worst > 0 ? "long" : "short",
                    run.choice.empty() ? "" : run.choice + (setting.is_large() ? "" : ", "),
                    setting.is_large() ? "" : "bounded by " + (run.bottleneck.empty() ? "nothing" : run.bottleneck)));
  return out;
}

/// Reasons to doubt the fit that are not reasons to refuse the log.
std::vector<std::string> doubts(const traces::NcclLog& log, Setting& setting, const calibration::LinkFit& fit) {
  std::vector<std::string> out;
  const std::string& family = setting.platform().gpu_of(setting.instance()).family;
  if (!log.gpu.empty() && log.gpu.find(family) == std::string::npos)
    out.push_back(fmt::format("the log is of {}, {} has {}", log.gpu, setting.instance().name, family));
  if (log.collective.empty()) out.push_back("the log does not name its collective, taken as an all-reduce");
  if (log.version.empty() && setting.scheme.name() == "nccl")
    out.push_back("the log does not name its NCCL; --scheme nccl:2.18.3 would");
  if (!fit.meets_ends)
    out.push_back("no latency and bandwidth of this link give the two fitted times: another link bounds them");
  const platforms::Link& stated = setting.stated();
  if (fit.bandwidth * kSlow < stated.bandwidth)
    out.push_back(fmt::format("{}: the {} would have {}, but {} states {}: was something else slow, or shared?",
                              log.where(fit.samples.back().measured.bytes), setting.link.title,
                              to_string(fit.bandwidth), setting.instance().name, to_string(stated.bandwidth)));
  if (fit.latency > kSlow * stated.latency + Seconds{10e-6})  // a launch may take a little more here than there
    out.push_back(fmt::format("{}: the {} would have a latency of {}, but {} states {}: was something else slow?",
                              log.where(fit.samples.front().measured.bytes), setting.link.title, to_string(fit.latency),
                              setting.instance().name, to_string(stated.latency)));
  return out;
}

/// Says which of NCCL's algorithms, if it is forced, explains a log best that does not say how it was made. Its error
/// is that of the links that are fitted under it.
std::vector<std::string> other_schemes(const traces::NcclLog& log, Setting& setting,
                                       std::span<const calibration::CollectiveSample> samples,
                                       const calibration::LinkFit& fit) {
  constexpr double kBetter = 0.7;
  if (!setting.scheme.row->by_kernels || !log.algorithm.empty() || setting.is_large() || samples.size() < 3) return {};
  const auto error_of = [](const calibration::LinkFit& tried) {
    double sum = 0;
    for (const auto& sample : tried.samples) sum += std::abs(std::log(sample.predicted / sample.measured.time));
    return std::expm1(sum / static_cast<double>(tried.samples.size()));
  };
  const double chosen = error_of(fit);
  const std::string name = setting.scheme.name();
  double best = kBetter * chosen;
  std::string best_name;
  for (const char* algorithm : {"ring", "tree", "nvls", "nvls-tree"}) {
    const std::string forced = name + (setting.scheme.variant.empty() ? ":" : "/") + algorithm;
    if (!sim::parse_nccl_options(forced.substr(forced.find(':') + 1))) return {};  // an algorithm is forced already
    const sim::Scheme kept = std::exchange(setting.scheme, sim::parse_scheme(forced));
    try {
      const double error = error_of(setting.fit(samples));
      if (error < best) best = error, best_name = forced;
    } catch (const sim::SchemeRefused&) {
      // NCCL does not use it on this machine.
    }
    setting.scheme = kept;
  }
  if (best_name.empty()) return {};
  return {
      fmt::format("links fitted under {} are {:.1f} % off on average, those under {} {:.1f} %: --scheme {} takes it",
                  best_name, 100 * best, name, 100 * chosen, best_name)};
}

/// A fit that needs a link much faster than stated: throws ConfigError if the stated link would take far longer, else
/// bandwidth hardly matters, and the stated one is kept, as `notes` say.
calibration::LinkFit without_endless_links(const traces::NcclLog& log, Setting& setting,
                                           std::span<const calibration::CollectiveSample> samples,
                                           const calibration::LinkFit& fit, std::vector<std::string>& notes) {
  const BytesPerSecond stated = setting.stated().bandwidth;
  if (!fit.bandwidth_fitted || fit.bandwidth <= kTooFast * stated) return fit;
  calibration::LinkFit kept = setting.fit(samples, true);
  const calibration::FittedSample& last = kept.samples.back();
  const std::string found =
      fmt::format("{}: found {} for {}, which needs {} of the {} with {}", log.where(last.measured.bytes),
                  to_string(last.measured.time), to_string(Bytes{static_cast<double>(last.measured.bytes)}),
                  to_string(fit.bandwidth), setting.link.title, setting.scheme.name());
  if (last.predicted / last.measured.time > kAnotherMachine)
    throw ConfigError(
        fmt::format("{}: {}; expected a time near the {} of the {} that {} states. Do --scheme, --nodes and --instance "
                    "say what ran?",
                    log.file, found, to_string(last.predicted), to_string(stated), setting.instance().name));
  notes.push_back(
      fmt::format("{}; bandwidth hardly matters there, and the platform's {} was kept", found, to_string(stated)));
  return kept;
}

}  // namespace

ImportedLinks import_links(const LinkImport& options, std::size_t width) {
  const traces::NcclLog log = undisturbed(traces::read_nccl_log(options.log));
  Setting setting(log, options, platforms::load_platform_choice(options.catalog, options.overlay));
  std::vector<std::string> notes = log.notes;
  const auto samples = samples_of(log);
  calibration::LinkFit fit = setting.fit(samples);
  if (fit.predicted_at_no_cost && *fit.predicted_at_no_cost / samples.back().time > kAnotherMachine)
    throw ConfigError(
        fmt::format("{}: {}: found {} for {}, but {} takes {} over links of endless bandwidth; --scheme, --nodes or "
                    "--instance say otherwise",
                    log.file, log.where(samples.back().bytes), to_string(samples.back().time),
                    to_string(Bytes{static_cast<double>(samples.back().bytes)}), setting.scheme.name(),
                    to_string(*fit.predicted_at_no_cost)));
  if (fit.predicted_at_no_cost) {
    // No bandwidth of this link explains the log, so the platform's stands, and only the latency is fitted.
    const auto bound = setting.predict(Seconds{0}, fit.bandwidth, samples.back().bytes, true);
    notes.push_back(fmt::format(
        "{}: {} for {}, but {} ({}) takes {} over a {} of endless bandwidth{}; the platform's bandwidth was kept. "
        "Do --scheme, --nodes and --instance say what ran?",
        log.where(samples.back().bytes), to_string(samples.back().time),
        to_string(Bytes{static_cast<double>(samples.back().bytes)}), setting.scheme.name(), bound.choice,
        to_string(*fit.predicted_at_no_cost), setting.link.title,
        bound.bottleneck.empty() ? "" : ", bounded by " + bound.bottleneck));
    fit = setting.fit(samples, true);
  }
  fit = without_endless_links(log, setting, samples, fit, notes);
  const auto others = options.scheme.empty() ? other_schemes(log, setting, samples, fit) : std::vector<std::string>();
  for (const auto& more : {doubts(log, setting, fit), explanations(setting, fit), others})
    notes.insert(notes.end(), more.begin(), more.end());
  return imported_links(
      {log.file, log.version, setting.instance().name, setting.link.name, setting.link.title, setting.scheme.name(),
       setting.collective, setting.nodes, setting.gpus_per_node, setting.stated_off(samples), fit, notes},
      width);
}

}  // namespace ganymede::studies
