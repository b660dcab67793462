#include "sim/cluster/shared_storage.hpp"

#include <algorithm>
#include <map>

namespace ganymede::sim {

std::vector<double> steps_of_readers(std::span<const Reader> readers) {
  std::vector<double> steps;
  std::map<std::string, std::vector<std::size_t>> by_store;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    steps.push_back(readers[i].step_s);
    if (readers[i].reading->store_s > 0) by_store[readers[i].reading->store].push_back(i);
  }
  const auto wanted = [&](std::size_t i) { return readers[i].reading->store_s / readers[i].step_s; };
  for (auto& [store, members] : by_store) {
    std::stable_sort(members.begin(), members.end(),
                     [&](std::size_t a, std::size_t b) { return wanted(a) < wanted(b); });
    double left = 1;  // share of the store's rate that nobody has yet
    for (std::size_t k = 0; k < members.size(); ++k) {
      const std::size_t i = members[k];
      const double share = std::min(wanted(i), left / static_cast<double>(members.size() - k));
      left -= share;
      if (share < wanted(i))
        steps[i] = std::max(steps[i], readers[i].reading->latency_s + readers[i].reading->store_s / share);
    }
  }
  return steps;
}

}  // namespace ganymede::sim
