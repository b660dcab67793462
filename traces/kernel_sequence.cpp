// Finds the steps of a profiler trace in the sequence of its kernels.

#include <algorithm>
#include <cstdint>
#include <map>
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

  /// The kernel with which steps begin: of those that run once a step the one that the stream waits longest for. The
  /// places of all of them; none if nothing repeats.
  std::vector<std::size_t> begins() const {
    // A kernel that runs once a step has the step as distance. Rare ones come first, because distances of those that
    // run in every layer are those of layers.
    std::vector<const std::vector<std::size_t>*> by_count;
    for (const auto& [name, places] : places_)
      if (places.size() > 1) by_count.push_back(&places);
    std::sort(by_count.begin(), by_count.end(), [](const auto* a, const auto* b) {
      return std::pair(a->size(), a->front()) < std::pair(b->size(), b->front());
    });
    for (const bool exactly : {true, false}) {
      std::set<std::pair<std::size_t, std::size_t>> tried;  // periods, and how often
      for (const auto* places : by_count) {
        const std::size_t period = distance(*places), count = exactly ? 0 : places->size();
        if (tried.size() == kMostTried || !tried.emplace(period, count).second) continue;
        if (!(exactly ? repeats_after(period) : recurs_between(*places))) continue;
        const std::vector<std::size_t>* best = nullptr;
        double longest = -1;
        for (const auto* other : by_count)
          if (distance(*other) == period && (exactly || other->size() == count))
            if (const double wait = wait_before(*other); wait > longest) best = other, longest = wait;
        return *best;
      }
    }
    return {};
  }

 private:
  static constexpr std::size_t kMostTried = 64;
  static constexpr double kAlike = 0.9;

  /// The median distance between neighbours.
  static std::size_t distance(const std::vector<std::size_t>& places) {
    std::vector<std::size_t> distances;
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
  /// A layer within a step is no such stretch: the step's first and last kernels stand outside.
  bool recurs_between(const std::vector<std::size_t>& places) const {
    constexpr std::size_t kFewest = 4;
    constexpr double kRegular = 0.8;
    const std::size_t stretches = places.size() - 1;
    if (stretches < kFewest) return false;
    double within = 0, regular = 0;
    for (const auto& [name, all] : places_) {
      std::size_t in = 0, last = 0, kernels = 0;
      for (const std::size_t place : all) {
        const auto stretch =
            static_cast<std::size_t>(std::upper_bound(places.begin(), places.end(), place) - places.begin());
        if (stretch == 0 || stretch > stretches) continue;
        ++kernels;
        in += stretch != last ? 1 : 0;
        last = stretch;
      }
      if (kernels == 0) return false;
      within += static_cast<double>(kernels);
      if (static_cast<double>(in) >= kAlike * static_cast<double>(stretches)) regular += static_cast<double>(kernels);
    }
    return regular >= kRegular * within;
  }

  /// Mean seconds for which the stream is idle before the kernels, of which there are two at least.
  double wait_before(const std::vector<std::size_t>& places) const {
    double sum = 0, waits = 0;
    for (const std::size_t place : places)
      if (place > 0) sum += kernels_[place]->start - kernels_[place - 1]->end, ++waits;
    return sum / waits;
  }

  std::vector<const ProfilerGpuEvent*> kernels_;
  std::map<std::uint32_t, std::vector<std::size_t>> places_;
};

}  // namespace

std::vector<std::size_t> step_begins(std::vector<const ProfilerGpuEvent*> kernels) {
  return Sequence(std::move(kernels)).begins();
}

}  // namespace ganymede::traces
