#include "studies/link_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "calibration/interval_classes.hpp"
#include "common/errors.hpp"
#include "studies/likelihood.hpp"
#include "studies/link_causes.hpp"
#include "studies/link_words.hpp"
#include "traces/inflated_text.hpp"

namespace ganymede::studies {
namespace {

using documents::CheckedSize;
using documents::LikelyCause;

// In 74 public logs and curves (bench/nccl_logs.py, nothing fitted) the mean of ln(measured / expected) from 32 MiB on
// is within 0.05 for a half, 0.22 for 80 % and 0.5 for 90 %; a mixture of two normal distributions has these quantiles.
constexpr double kPlateau = 32 << 20, kPlateauWidth = 0.5;
constexpr double kUsual = 0.08, kUnusual = 0.6, kUnusualShare = 0.25;
// The 54 of them over NVLink, or between nodes with RDMA or EFA, are within 0.1 for a half and 0.25 for 50, from 1 MiB
// on; what is farther off is over PCIe, host memory or sockets.
constexpr double kFastWidth = 0.25, kFastUsual = 0.12, kFastUnusual = 0.5, kFastUnusualShare = 0.1;
// A fault is not stated as precisely as a machine, an assumption; what is not in the table may be of any size.
constexpr double kFault = 0.2, kAnything = 1.2;
// One size about the others: up to 0.12 from 32 MiB on, and about 0.3 below, in the same logs. Noise is more.
constexpr double kSpread = 0.12, kSpreadBelow = 0.3, kNoise = 0.6;
constexpr double kFrom = 1 << 20;     // smaller sizes say more of hosts than of links
constexpr double kBroken = 5;         // times slower than expected: an assumption
constexpr double kPriorNormal = 0.5;  // an assumption: half of those who ask have nothing wrong
constexpr double kMost = 0.5;         // of the probability
constexpr double kSlower = 1.1;       // what slows large sizes down by less is no cause
// An assumption: none of 14 faults between nodes (tests/studies/situations.json, without "held") was inside a node.
constexpr double kWithinNode = 0.3;
constexpr double kFall = 2;    // 39 public logs and curves fall by 1.30 at most (bench/nccl_logs.py --falls)
constexpr double kSign = 20;   // an assumption: what the log's own words weigh
constexpr double kThin = 3.5;  // sizes are taken so far apart at least
constexpr double kCollapses[] = {3, 6, 12, 25, 50};  // an assumption

struct Sample {
  double bytes, measured;
};

struct Spreads {
  double usual = kUsual, unusual = kUnusual, share = kUnusualShare, single = 1;
};

constexpr Spreads kFaulty = {kFault, kUnusual, kUnusualShare, 1};

/// ln of the likelihood of the residuals, ln(measured / predicted): one shift of all of them, integrated over, and what
/// each has beyond it. Sizes below the plateau count as half of one.
double likelihood(const std::vector<Sample>& samples, const std::vector<double>& predicted, const Spreads& spreads) {
  double sum = 0;
  constexpr double kStep = 0.02;
  double largest = -1e300;
  std::vector<double> terms;
  for (double shift = -4; shift <= 4; shift += kStep) {
    double term = ln((1 - spreads.share) * normal_density(shift, spreads.usual) +
                     spreads.share * normal_density(shift, spreads.unusual) + 1e-300);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const bool plateau = samples[i].bytes >= kPlateau;
      const double deviation = spreads.single * (plateau ? kSpread : kSpreadBelow);
      // Tails are those of a Student distribution with four degrees of freedom: one odd size decides nothing.
      const double off = (ln(samples[i].measured / predicted[i]) - shift) / deviation;
      term += (plateau ? 1 : 0.5) * (-2.5 * ln(1 + off * off / 4) - ln(deviation));
    }
    terms.push_back(term);
    largest = std::max(largest, term);
  }
  for (const double term : terms) sum += kStep * portable_exp(term - largest);
  return largest + ln(sum);
}

/// One size in each factor of four, down from the largest.
std::vector<Sample> thinned(const traces::NcclLog& log) {
  std::vector<Sample> out;
  for (auto row = log.rows.rbegin(); row != log.rows.rend(); ++row)
    if (out.empty() || static_cast<double>(row->bytes) * kThin <= out.back().bytes)
      out.push_back({static_cast<double>(row->bytes), row->out_of_place.si});
  std::reverse(out.begin(), out.end());
  return out;
}

/// ln of the mean of what the terms are logarithms of.
double ln_mean(const std::vector<double>& terms) {
  const double largest = *std::max_element(terms.begin(), terms.end());
  double sum = 0;
  for (const double term : terms) sum += portable_exp(term - largest);
  return largest + ln(sum / static_cast<double>(terms.size()));
}

class Checker {
 public:
  Checker(const LinkCheckOptions& options, const traces::NcclLog& log, const std::string& text)
      : text_(text),
        machine_(logged_machine(log, text, options, options)),
        ran_(free_log(log), options, machine_.instance),
        samples_(thinned(log)) {
    if (const std::string& stated = ran_.scheme.variant; std::isdigit(static_cast<unsigned char>(stated[0])) != 0)
      version_ = stated.substr(0, stated.find('/'));
    for (const Sample& sample : samples_)
      if (sample.bytes >= kFrom || &sample == &samples_.back()) large_.push_back(sample);
  }

  documents::LinkCheck check(const traces::NcclLog& log) {
    documents::LinkCheck out;
    out.log = log.file, out.collective = ran_.collective, out.scheme = ran_.scheme.name();
    out.catalog = machine_.catalog, out.instance = machine_.instance.name, out.recognised = machine_.how;
    out.nodes = ran_.nodes, out.gpus_per_node = ran_.gpus_per_node, out.notes = log.notes;
    out.links = machine_.platform.fabric_label(machine_.instance, ran_.nodes, ran_.gpus_per_node);
    const CheckedMachine normal{machine_.instance, ran_.nodes, ran_.gpus_per_node};
    const auto& links = machine_.instance.gpu_links;
    const bool through_host = ran_.gpus_per_node > 1 && (!links || links->staging);
    const double width =
        calibration::half_width_of_collective(calibration::link_evidence(out.links), ran_.nodes > 1, through_host);
    const bool has_plateau = samples_.back().bytes >= kPlateau;
    const double usual_width = is_fast() ? kFastWidth : kPlateauWidth;
    const double plateau_width = has_plateau ? std::min(width, usual_width) : width;
    if (is_fast()) usual_ = {kFastUsual, kFastUnusual, kFastUnusualShare, 1};
    double shift = 0, shift_below = 0;
    int count = 0, count_below = 0;
    for (const Sample& sample : samples_) {
      const double expected = predict(normal, sample.bytes);
      const bool plateau = sample.bytes >= kPlateau || &sample == &samples_.back();
      const double factor = portable_exp(plateau ? plateau_width : width);
      const double bus =
          sim::bus_bandwidth_factor(sim::parse_collective(ran_.collective), ran_.ranks()) * sample.bytes * 1e-9;
      out.sizes.push_back({sample.bytes,
                           sample.measured,
                           expected,
                           {expected / factor, expected * factor},
                           bus / sample.measured,
                           bus / expected});
      if (plateau) shift += ln(sample.measured / expected), ++count;
      if (!plateau && sample.bytes >= kFrom) shift_below += ln(sample.measured / expected), ++count_below;
    }
    shift /= count;
    out.ratio = portable_exp(-shift);
    // What is somewhat faster than expected is the model's error and no other machine.
    out.interval = {portable_exp(-plateau_width), portable_exp(has_plateau ? std::min(width, kPlateauWidth) : width)};
    const bool low_below = count_below > 0 && shift_below / count_below > width;
    out.verdict = shift > ln(kBroken) ? "broken" : shift > plateau_width || low_below ? "low" : "normal";
    if (low_below && shift <= plateau_width)
      out.notes.emplace_back("large sizes are as expected, those from 1 to 32 MiB are not: latency, not bandwidth");
    if (samples_.back().bytes < kPlateau)
      out.notes.emplace_back("no size from 32 MiB on was measured, and smaller ones say little of bandwidth");
    const bool faster = out.ratio > out.interval.high;
    if (faster) note_peer_to_peer(normal, out);
    if (faster) out.notes.emplace_back("the log is faster than this machine should be: is it another one?");
    explain(normal, out);
    if (faster) out.verdict = "faster";
    return out;
  }

 private:
  /// True if links are of kinds whose speed is known well.
  bool is_fast() const {
    const platforms::Instance& of = machine_.instance;
    return ran_.nodes > 1 ? of.nic && of.nic->transport != platforms::Nic::Transport::tcp
                          : of.gpu_links && of.gpu_links->kind != platforms::GpuLinks::Kind::pcie;
  }

  /// GPUs that the machine's drivers let talk through the host's memory alone may have been given direct access.
  void note_peer_to_peer(CheckedMachine machine, documents::LinkCheck& out) const {
    if (machine.instance.gpu_links || !machine.instance.host_link || ran_.gpus_per_node < 2) return;
    machine.instance.gpu_links.emplace();
    machine.instance.gpu_links->kind = platforms::GpuLinks::Kind::pcie;
    machine.instance.gpu_links->bandwidth = machine.instance.host_link->bandwidth;
    machine.instance.gpu_links->latency = 2 * machine.instance.host_link->latency;
    const double bus =
        sim::bus_bandwidth_factor(sim::parse_collective(ran_.collective), ran_.ranks()) * samples_.back().bytes * 1e-9;
    out.notes.push_back(fmt::format(
        "GPUs of this machine are taken to talk through the host's memory; with peer-to-peer over PCIe {:.4g} GB/s "
        "would be expected",
        bus / predict(machine, samples_.back().bytes)));
  }

  /// A log that says nothing of forced algorithms and protocols: the expected curve is that of NCCL's own choice.
  static traces::NcclLog free_log(traces::NcclLog log) {
    log.algorithm.clear(), log.protocol.clear();
    return log;
  }

  double predict(const CheckedMachine& machine, double bytes) const {
    LoggedCollective ran = ran_;
    if (!machine.forced.empty())
      ran.scheme = sim::parse_scheme(fmt::format("nccl:{}{}{}", version_, version_.empty() ? "" : "/", machine.forced));
    std::vector<sim::NodeGroup> groups = {{&machine.instance, machine.nodes, machine.gpus_per_node}};
    if (machine.last_node) {
      groups[0].nodes -= 1;
      groups.push_back({&*machine.last_node, 1, machine.gpus_per_node});
    }
    return ran.predict(machine_.platform, groups, static_cast<std::int64_t>(bytes), false).time.si;
  }

  std::vector<double> predict(const CheckedMachine& machine) const {
    std::vector<double> times;
    for (const Sample& sample : large_) times.push_back(predict(machine, sample.bytes));
    return times;
  }

  void add(documents::LinkCheck& out, LikelyCause cause, double likelihood, double prior, const double* largest) {
    if (largest != nullptr)
      cause.bus = sim::bus_bandwidth_factor(sim::parse_collective(ran_.collective), ran_.ranks()) *
                  large_.back().bytes * 1e-9 / *largest;
    cause.against_normal = portable_exp(std::min(likelihood - normal_, 600.0));
    cause.share = portable_exp(std::min(likelihood - normal_ + ln(prior), 600.0));
    out.causes.push_back(std::move(cause));
  }

  void explain(const CheckedMachine& normal, documents::LinkCheck& out) {
    const std::vector<double> expected = predict(normal);
    normal_ = likelihood(large_, expected, usual_);
    add(out, {"normal", "nothing is wrong", ""}, normal_, kPriorNormal, &expected.back());
    const double prior = (1 - kPriorNormal) / static_cast<double>(link_causes().size() + 3);
    if (out.ratio < out.interval.high)
      add(out,
          {"unexplained", "something is wrong that none of these causes explains",
           "NCCL_DEBUG=INFO, and the same test on fewer GPUs and nodes"},
          likelihood(large_, expected, {kAnything, kAnything, 0, 1}), prior, nullptr);
    if (out.ratio <= out.interval.high && large_.size() >= 4)
      add(out, {"noise", "the times scatter: other jobs, clocks, or too few iterations", "repeat with -n 100 -w 20"},
          likelihood(large_, expected, {usual_.usual, usual_.unusual, usual_.share, kNoise / kSpread}), prior, nullptr);
    if (out.ratio < 1) add_causes(normal, expected, prior, out);
    if (out.ratio < 1 && ran_.nodes > 1 && machine_.instance.nic &&
        machine_.instance.nic->transport == platforms::Nic::Transport::rdma)
      add_collapse(expected, prior, out);
    double all = 0;
    for (const LikelyCause& cause : out.causes) all += cause.share;
    for (LikelyCause& cause : out.causes) cause.share /= all;
    std::stable_sort(out.causes.begin(), out.causes.end(),
                     [](const LikelyCause& a, const LikelyCause& b) { return a.share > b.share; });
    agree(out);
  }

  /// What lies within the interval is low if one fault has most of the probability; what lies below it is normal if
  /// "normal" has. The first row is that of the verdict; times that scatter about what is expected are not low.
  static void agree(documents::LinkCheck& out) {
    const auto normal = std::find_if(out.causes.begin(), out.causes.end(),
                                     [](const LikelyCause& cause) { return cause.cause == "normal"; });
    const LikelyCause& first = out.causes.front();
    const bool is_most = first.share > kMost;
    if (is_most && normal == out.causes.begin())
      out.verdict = "normal";
    else if (is_most && out.verdict == "normal" && first.cause != "noise")
      out.verdict = "low";
    if (out.verdict == "normal" && !is_most) std::rotate(out.causes.begin(), normal, normal + 1);
    if (out.verdict != "normal" && normal == out.causes.begin() && out.causes.size() > 1)
      std::iter_swap(normal, normal + 1);
  }

  /// The times of a cause: which algorithm NCCL takes on a machine with a fault depends on its version, so that over a
  /// network the better of its own choice and the ring counts. Nothing if the cause cannot be, or slows nothing down.
  std::optional<std::pair<double, double>> likelihood_of(CheckedMachine machine, double expected) const {
    std::optional<std::pair<double, double>> best;
    const bool by_kernels = ran_.scheme.row->by_kernels;
    if (!machine.forced.empty() && !by_kernels) return best;
    const bool also_ring = machine.forced.empty() && ran_.nodes > 1 && by_kernels;
    for (int turn = 0; turn < (also_ring ? 2 : 1); ++turn) {
      if (turn == 1) machine.forced = "ring";
      try {
        const std::vector<double> times = predict(machine);
        if (times.back() < kSlower * expected) continue;
        const double fits = likelihood(large_, times, kFaulty);
        if (!best || fits > best->first) best = {fits, times.back()};
      } catch (const ConfigError&) {
        // NCCL does not use it on this machine, or the machine has no such part.
      }
    }
    return best;
  }

  /// NICs of a node that carry traffic: those that the log names, and no more than one for each GPU in use, because a
  /// GPU takes the NIC next to it.
  int used_nics() const {
    const int named = nics_of(text_), near = ran_.gpus_per_node;
    return named > 0 ? std::min(named, near) : near < machine_.instance.nic->count ? near : 0;
  }

  /// The log's own words on a cause: `found` gets a line that speaks for it; returns their weight.
  double weight_of_words(const LinkCause& cause, LikelyCause& found) const {
    if (found.sign.empty()) found.sign = line_with(text_, cause.signs);
    if (found.sign.empty() && !cause.lacks.first.empty())
      found.sign = line_with(text_, {cause.lacks.first}, cause.lacks.second);
    bool against = found.sign.empty() && !line_with(text_, cause.against).empty();
    if (const int used = cause.counts_nics ? used_nics() : 0; used > 0) {
      against = used >= machine_.instance.nic->count;
      if (!against && (used == 1) == (cause.name == "one-nic"))
        found.sign = fmt::format("NCCL uses {} of {} NICs", used, machine_.instance.nic->count);
    }
    return (found.sign.empty() ? 1 : kSign) / (against ? kSign : 1);
  }

  /// The times where NCCL chooses among these degrees alone: the fastest of them for each size. Nothing if that slows
  /// nothing down, as where they have NCCL's own choice.
  std::optional<std::pair<double, double>> likelihood_among(const LinkCause& cause, const CheckedMachine& normal,
                                                            const std::vector<double>& degrees, double expected) const {
    std::vector<double> fastest;
    for (const double degree : ran_.scheme.row->by_kernels ? degrees : std::vector<double>()) {
      CheckedMachine machine = normal;
      if (!cause.change(machine, degree)) continue;
      try {
        const std::vector<double> times = predict(machine);
        if (fastest.empty()) fastest = times;
        for (std::size_t i = 0; i < times.size(); ++i) fastest[i] = std::min(fastest[i], times[i]);
      } catch (const ConfigError&) {
        // NCCL does not use it on this machine.
      }
    }
    if (fastest.empty() || fastest.back() < kSlower * expected) return std::nullopt;
    return std::pair(likelihood(large_, fastest, kFaulty), fastest.back());
  }

  /// A cause of several degrees is as likely as they are on average. A log that names some leaves no other.
  void add_causes(const CheckedMachine& normal, const std::vector<double>& expected, double prior,
                  documents::LinkCheck& out) {
    for (const LinkCause& cause : link_causes()) {
      std::vector<double> fits;
      double best = -1e300, largest = 0;
      const Allowed allowed = allowed_by(text_, cause, ran_.collective);
      const auto add_fit = [&](const std::optional<std::pair<double, double>>& fit) {
        if (!fit) return;
        fits.push_back(fit->first);
        if (fit->first > best) best = fit->first, largest = fit->second;
      };
      if (!allowed.degrees.empty()) {
        add_fit(likelihood_among(cause, normal, allowed.degrees, expected.back()));
      } else {
        for (const double degree : cause.degrees) {
          CheckedMachine machine = normal;
          if (cause.change(machine, degree)) add_fit(likelihood_of(machine, expected.back()));
        }
      }
      if (fits.empty()) continue;
      LikelyCause found{std::string(cause.name), std::string(cause.says), std::string(cause.shows)};
      found.sign = allowed.line;
      if (!allowed.degrees.empty()) found.says = said_of(cause, allowed.degrees);
      const double words = weight_of_words(cause, found);
      const double place = cause.within_node && ran_.nodes > 1 ? kWithinNode : 1;
      add(out, std::move(found), ln_mean(fits), prior * cause.weight * place * words, &largest);
    }
  }

  /// Where bandwidth falls to a half or less as sizes grow, which other faults do not explain; "" if it does not.
  std::string fall() const {
    for (std::size_t i = 1; i < large_.size(); ++i) {
      const Sample &small = large_[i - 1], &large = large_[i];
      if (large.measured * small.bytes < kFall * small.measured * large.bytes) continue;
      return fmt::format("{:.3g} GB/s at {}, {:.3g} GB/s at {}", small.bytes / small.measured * 1e-9,
                         to_string(Bytes{small.bytes}), large.bytes / large.measured * 1e-9,
                         to_string(Bytes{large.bytes}));
    }
    return "";
  }

  /// A network that loses packets: from one of the sizes on, but not the first, times are several times as long.
  void add_collapse(const std::vector<double>& expected, double prior, documents::LinkCheck& out) {
    std::vector<double> fits;
    double best = -1e300, largest = 0;
    for (std::size_t from = 1; from < large_.size(); ++from)
      for (const double factor : kCollapses) {
        std::vector<double> times = expected;
        for (std::size_t i = from; i < times.size(); ++i) times[i] *= factor;
        fits.push_back(likelihood(large_, times, kFaulty));
        if (fits.back() > best) best = fits.back(), largest = times.back();
      }
    if (fits.empty()) return;
    LikelyCause found{"lossy-network",
                      "beyond some size the network loses packets: congestion, or RoCE without flow control",
                      "the same test on two nodes of one switch; ethtool -S on each NIC (out_of_sequence, discards, "
                      "pauses); PFC and ECN on the switches, adaptive routing"};
    if (const std::string falls = fall(); !falls.empty()) found.sign = "bandwidth falls as sizes grow: " + falls;
    const double words = found.sign.empty() ? 1 : kSign;
    add(out, std::move(found), ln_mean(fits), prior * words, &largest);
  }

  const std::string& text_;
  LoggedMachine machine_;
  LoggedCollective ran_;
  std::string version_;
  std::vector<Sample> samples_, large_;
  Spreads usual_;      // of what such links are off where nothing is wrong
  double normal_ = 0;  // ln of the likelihood of "normal"
};

}  // namespace

documents::LinkCheck check_link_log(const LinkCheckOptions& options) {
  const traces::NcclLog log = undisturbed(traces::read_nccl_log(options.log));
  const std::string text = traces::inflated_text(options.log);
  return Checker(options, log, text).check(log);
}

}  // namespace ganymede::studies
