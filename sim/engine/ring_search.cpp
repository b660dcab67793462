#include "sim/engine/ring_search.hpp"

#include <algorithm>

namespace ganymede::sim {
namespace {

/// A depth-first search for the largest set of rings. The first ring found may block a second one, so every choice of
/// rings is tried, within a budget of steps.
class RingSearch {
 public:
  RingSearch(const std::vector<platforms::MeshEdge>& mesh, int gpus) : gpus_(static_cast<std::size_t>(gpus)) {
    unused_.assign(gpus_, std::vector<int>(gpus_, 0));
    for (const platforms::MeshEdge& edge : mesh) {
      unused_[static_cast<std::size_t>(edge.a)][static_cast<std::size_t>(edge.b)] += edge.count;
      unused_[static_cast<std::size_t>(edge.b)][static_cast<std::size_t>(edge.a)] += edge.count;
    }
  }

  /// Returns the largest set of rings found within the budget.
  std::vector<std::vector<int>> run() {
    extend();
    return best_;
  }

 private:
  /// Budget of steps, which bounds the cost of an unfavourable mesh. The mesh of DGX-1 takes a few thousand.
  static constexpr int kMaxSteps = 2'000'000;

  /// An upper bound on further rings: each needs two links of every GPU.
  int max_further_rings() const {
    int bound = 1 << 20;
    for (const auto& row : unused_) {
      int sum = 0;
      for (const int count : row) sum += count;
      bound = std::min(bound, sum / 2);
    }
    return bound;
  }

  /// Tries to add one more ring to `found_`, in every possible way.
  void extend() {
    if (found_.size() > best_.size()) best_ = found_;
    if (static_cast<int>(best_.size() - found_.size()) >= max_further_rings()) return;
    std::vector<int> path = {0};
    std::vector<bool> visited(gpus_, false);
    visited[0] = true;
    walk(path, visited);
  }

  /// Extends a path that begins at GPU 0 until it is a ring.
  void walk(std::vector<int>& path, std::vector<bool>& visited) {
    if (++steps_ > kMaxSteps) return;
    const auto at = static_cast<std::size_t>(path.back());
    if (path.size() == gpus_) {
      if (unused_[at][0] == 0) return;
      change_unused(path, -1);
      found_.push_back(path);
      extend();
      found_.pop_back();
      change_unused(path, 1);
      return;
    }
    for (std::size_t next = 1; next < gpus_; ++next) {
      if (visited[next] || unused_[at][next] == 0) continue;
      visited[next] = true;
      path.push_back(static_cast<int>(next));
      walk(path, visited);
      path.pop_back();
      visited[next] = false;
      if (static_cast<int>(best_.size() - found_.size()) >= max_further_rings()) return;
    }
  }

  /// Adds `change` to the unused links between successive GPUs of a ring.
  void change_unused(const std::vector<int>& path, int change) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      const auto a = static_cast<std::size_t>(path[i]), b = static_cast<std::size_t>(path[(i + 1) % path.size()]);
      unused_[a][b] += change;
      unused_[b][a] += change;
    }
  }

  std::size_t gpus_;
  std::vector<std::vector<int>> unused_;  // links between each pair of GPUs that no found ring uses
  std::vector<std::vector<int>> found_, best_;
  int steps_ = 0;
};

}  // namespace

std::vector<std::vector<int>> link_disjoint_rings(const std::vector<platforms::MeshEdge>& mesh, int gpus) {
  if (gpus == 2) {  // a ring of two uses both directions of one link
    int links = 0;
    for (const platforms::MeshEdge& edge : mesh) links += edge.count;
    return std::vector<std::vector<int>>(static_cast<std::size_t>(links), {0, 1});
  }
  return RingSearch(mesh, gpus).run();
}

}  // namespace ganymede::sim
