#include "sim/collectives/allreduce.hpp"

#include <algorithm>

#include "common/errors.hpp"
#include "common/json.hpp"

namespace ganymede {
namespace {

// The only list of schemes.
constexpr AllReduceScheme kSchemes[] = {
    {"ring", "bandwidth-optimal: 2(n-1) rounds of one n-th of the bytes", plan_ring, ring_on_star},
    {"hierarchical-copy", "reduce inside groups, then across their mains, and copy back, as in TensorFlow",
     plan_hierarchical_copy, hierarchical_copy_on_star},
    {"reduce-to-one", "all send to rank 0, which adds up and sends the sum to all", plan_reduce_to_one,
     reduce_to_one_on_star},
};

}  // namespace

std::span<const AllReduceScheme> allreduce_schemes() { return kSchemes; }

std::vector<std::string> allreduce_scheme_names() {
  std::vector<std::string> names;
  for (const AllReduceScheme& scheme : kSchemes) names.emplace_back(scheme.name);
  return names;
}

const AllReduceScheme& find_scheme(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSchemes), std::end(kSchemes),
                                   [name](const AllReduceScheme& scheme) { return scheme.name == name; });
  if (found != std::end(kSchemes)) return *found;

  const std::vector<std::string> names = allreduce_scheme_names();
  std::string message = "unknown all-reduce scheme \"" + std::string(name) + "\", expected " + list_of(names);
  if (const auto meant = nearest(name, names)) message += "; did you mean \"" + *meant + "\"?";
  throw ConfigError(message);
}

}  // namespace ganymede
