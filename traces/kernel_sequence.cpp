// Finds the steps of a profiler trace in the sequence of its kernels.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "traces/profiler_steps.hpp"

namespace ganymede::traces {
namespace {

/// Kernels of one stream by name, in the order in which they ran.
class Sequence {
 public:
  explicit Sequence(std::vector<const ProfilerGpuEvent*> kernels) : kernels_(std::move(kernels)) {
    for (std::size_t i = 0; i < kernels_.size(); ++i) places_[kernels_[i]->name].push_back(i);
  }

  /// The kernel with which steps begin: of those that run once a step the one that the stream waits longest for, or,
  /// where two networks of a step run the same kernels, twice to four times. The places of all of them; none if nothing
  /// repeats.
  std::vector<std::size_t> begins() const {
    constexpr std::size_t kMostRuns = 4;  // of a kernel in a step
    for (const bool exactly : {true, false}) {
      const std::vector<Places> candidates = every(exactly ? 1 : kMostRuns);
      if (const Places* best = begins_of(candidates, exactly)) return *best;
    }
    return {};
  }

 private:
  using Places = std::vector<std::size_t>;

  /// All kernels of each name, and every second to every `most`-th from each of the first ones on. Rare names come
  /// first, because distances of those that run in every layer are those of layers.
  std::vector<Places> every(std::size_t most) const {
    std::vector<const Places*> by_count;
    for (const auto& [name, places] : places_) by_count.push_back(&places);
    std::sort(by_count.begin(), by_count.end(), [](const Places* a, const Places* b) {
      return std::pair(a->size(), a->front()) < std::pair(b->size(), b->front());
    });
    std::vector<Places> out;
    for (const Places* places : by_count)
      for (std::size_t runs = 1; runs <= most; ++runs)
        for (std::size_t first = 0; first < runs && first + runs < places->size(); ++first) {
          Places& some = out.emplace_back();
          for (std::size_t i = first; i < places->size(); i += runs) some.push_back((*places)[i]);
        }
    return out;
  }

  /// A kernel that runs once a step has the step as distance.
  const Places* begins_of(const std::vector<Places>& candidates, bool exactly) const {
    std::set<std::pair<std::size_t, std::size_t>> tried;  // periods, and how often
    for (const Places& places : candidates) {
      const std::size_t period = distance(places), count = exactly ? 0 : places.size();
      if (tried.size() == kMostTried || !tried.emplace(period, count).second) continue;
      if (!(exactly ? repeats_after(period) : recurs_between(places))) continue;
      const Places* best = nullptr;
      double longest = -1;
      for (const Places& other : candidates)
        if (distance(other) == period && (exactly || other.size() == count))
          if (const double wait = wait_before(other); wait > longest) best = &other, longest = wait;
      return best;
    }
    return nullptr;
  }

  static constexpr std::size_t kMostTried = 256;
  static constexpr double kAlike = 0.9;

  /// The median distance between neighbours.
  static std::size_t distance(const Places& places) {
    Places distances;
    for (std::size_t i = 1; i < places.size(); ++i) distances.push_back(places[i] - places[i - 1]);
    const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::nth_element(distances.begin(), middle, distances.end());
    return *middle;
  }

  /// True if most kernels are the same again after `period` others. Names count alike, however often they run: layers
  /// that are alike repeat within a step, but its first and last kernels do not.
  bool repeats_after(std::size_t period) const {
    double names = 0, alike = 0;
    for (const auto& [name, places] : places_) {
      double all = 0, same = 0;
      for (const std::size_t place : places)
        if (place + period < kernels_.size()) ++all, same += kernels_[place + period]->name == name ? 1 : 0;
      if (all == 0) continue;
      ++names;
      alike += same / all;
    }
    return names > 0 && alike >= kAlike * names;
  }

  /// True if what lies between neighbours is a step, some of which do more, as a regularization every fourth: most
  /// kernels are of names that nearly all stretches have, and no name stands before the first or after the last alone.
  /// A layer within a step is no such stretch: the step's first and last kernels stand outside. Those of a warm-up do
  /// too, but the stream waits for the step, and for no layer. Stretches that alternate are halves of a step.
  bool recurs_between(const Places& places) const {
    constexpr std::size_t kFewest = 4;
    constexpr double kRegular = 0.8;
    const std::size_t stretches = places.size() - 1;
    if (stretches < kFewest) return false;
    double within = 0, regular = 0;
    std::optional<bool> waits;
    std::vector<std::map<std::uint32_t, int>> usual(stretches);  // kernels by name, but for those that only some have
    for (const auto& [name, all] : places_) {
      std::size_t in = 0, last = 0, kernels = 0;
      Places of;
      for (const std::size_t place : all) {
        const auto stretch =
            static_cast<std::size_t>(std::upper_bound(places.begin(), places.end(), place) - places.begin());
        if (stretch == 0 || stretch > stretches) continue;
        ++kernels;
        in += stretch != last ? 1 : 0;
        last = stretch;
        of.push_back(stretch - 1);
      }
      if (kernels == 0) {
        if (!waits) waits = waits_for(places);
        if (!*waits) return false;
      }
      within += static_cast<double>(kernels);
      if (static_cast<double>(in) < kAlike * static_cast<double>(stretches)) continue;
      regular += static_cast<double>(kernels);
      for (const std::size_t stretch : of) ++usual[stretch][name];
    }
    const auto alike = [&](std::size_t apart) {
      std::size_t same = 0;
      for (std::size_t i = 0; i + apart < stretches; ++i) same += usual[i] == usual[i + apart] ? 1 : 0;
      return same;
    };
    return regular >= kRegular * within && 2 * alike(1) >= alike(2);
  }

  /// True if before nearly each of these kernels the stream is idle for twice as long as ever until the next one.
  bool waits_for(const Places& places) const {
    double clear = 0;
    for (std::size_t i = 1; i < places.size(); ++i) {
      double longest = 0;
      for (std::size_t place = places[i - 1] + 1; place < places[i]; ++place)
        longest = std::max(longest, idle_before(place));
      clear += idle_before(places[i]) > 2 * longest ? 1 : 0;
    }
    return clear >= kAlike * static_cast<double>(places.size() - 1);
  }

  /// Seconds for which the stream is idle before a kernel that is not the first.
  double idle_before(std::size_t place) const { return kernels_[place]->start - kernels_[place - 1]->end; }

  /// Mean seconds for which the stream is idle before the kernels, of which there are two at least.
  double wait_before(const Places& places) const {
    double sum = 0, waits = 0;
    for (const std::size_t place : places)
      if (place > 0) sum += idle_before(place), ++waits;
    return sum / waits;
  }

  std::vector<const ProfilerGpuEvent*> kernels_;
  std::map<std::uint32_t, Places> places_;
};

}  // namespace

std::vector<std::size_t> step_begins(std::vector<const ProfilerGpuEvent*> kernels) {
  return Sequence(std::move(kernels)).begins();
}

}  // namespace ganymede::traces
