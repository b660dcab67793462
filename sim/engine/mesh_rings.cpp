#include "sim/engine/mesh_rings.hpp"

#include <algorithm>

namespace ganymede {
namespace {

class Search {
 public:
  Search(const std::vector<MeshEdge>& mesh, int gpus) : gpus_(static_cast<std::size_t>(gpus)) {
    left_.assign(gpus_, std::vector<int>(gpus_, 0));
    for (const MeshEdge& edge : mesh) {
      left_[static_cast<std::size_t>(edge.a)][static_cast<std::size_t>(edge.b)] += edge.count;
      left_[static_cast<std::size_t>(edge.b)][static_cast<std::size_t>(edge.a)] += edge.count;
    }
  }

  /// The most rings, one search for each way to begin: taking the first cycle found may block a second one. The budget
  /// bounds what an unlucky mesh costs; DGX-1's needs a few thousand steps.
  std::vector<std::vector<int>> run() {
    extend();
    return best_;
  }

 private:
  static constexpr int kBudget = 2'000'000;

  int degree_bound() const {
    int bound = 1 << 20;
    for (const auto& row : left_) {
      int sum = 0;
      for (const int count : row) sum += count;
      bound = std::min(bound, sum / 2);
    }
    return bound;
  }

  /// Adds one more ring to `found_` in every possible way, deepest first.
  void extend() {
    if (found_.size() > best_.size()) best_ = found_;
    if (static_cast<int>(best_.size() - found_.size()) >= degree_bound()) return;
    std::vector<int> path = {0};
    std::vector<bool> seen(gpus_, false);
    seen[0] = true;
    walk(path, seen);
  }

  void walk(std::vector<int>& path, std::vector<bool>& seen) {
    if (++steps_ > kBudget) return;
    const auto at = static_cast<std::size_t>(path.back());
    if (path.size() == gpus_) {
      if (left_[at][0] == 0) return;
      take(path, -1);
      found_.push_back(path);
      extend();
      found_.pop_back();
      take(path, 1);
      return;
    }
    for (std::size_t next = 1; next < gpus_; ++next) {
      if (seen[next] || left_[at][next] == 0) continue;
      seen[next] = true;
      path.push_back(static_cast<int>(next));
      walk(path, seen);
      path.pop_back();
      seen[next] = false;
      if (static_cast<int>(best_.size() - found_.size()) >= degree_bound()) return;
    }
  }

  void take(const std::vector<int>& path, int change) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      const auto a = static_cast<std::size_t>(path[i]), b = static_cast<std::size_t>(path[(i + 1) % path.size()]);
      left_[a][b] += change;
      left_[b][a] += change;
    }
  }

  std::size_t gpus_;
  std::vector<std::vector<int>> left_;  // links not used yet
  std::vector<std::vector<int>> found_, best_;
  int steps_ = 0;
};

}  // namespace

std::vector<std::vector<int>> link_disjoint_rings(const std::vector<MeshEdge>& mesh, int gpus) {
  if (gpus == 2) {  // a ring of two uses a link in both directions already
    int links = 0;
    for (const MeshEdge& edge : mesh) links += edge.count;
    return std::vector<std::vector<int>>(static_cast<std::size_t>(links), {0, 1});
  }
  return Search(mesh, gpus).run();
}

}  // namespace ganymede
