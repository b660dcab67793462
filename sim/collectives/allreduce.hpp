#pragma once
// The all-reduce schemes: one file a scheme, one row of the table in allreduce.cpp.
//
//   const Scheme scheme = parse_scheme("ring");
//   const Schedule schedule = scheme.plan({.topology = clustered(8, 4), .bytes = 64 << 20});

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"
#include "sim/collectives/closed_form.hpp"
#include "sim/collectives/schedule.hpp"
#include "sim/collectives/topology.hpp"

namespace ganymede {

/// What the plans can do besides all-reduce. Bytes are counted as nccl-tests does: those of the whole buffer, of which
/// a rank keeps one n-th after reduce_scatter and starts with one n-th before all_gather; rank 0 is the root.
enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast };
std::string_view to_string(Collective collective);  ///< "all-reduce", ...
std::vector<std::string> collective_names();        ///< in the order of the enumeration

struct PlanRequest {
  Topology topology;
  std::int64_t bytes = 0;
  Collective collective = Collective::all_reduce;
  std::string variant;  ///< what follows the colon of "name:variant"; "" without one
};

/// A row of the table.
struct AllReduceScheme {
  std::string_view name;
  std::string_view summary;
  std::string_view variants;  ///< what may follow the colon, for `list schemes`; "" if nothing may
  /// Who sends what to whom. Pure, and O(1) in bytes and rounds. One rank or no bytes: no rounds. A precondition is
  /// that why_not() has nothing to say.
  Schedule (*plan)(const PlanRequest& request);
  /// Why the scheme cannot serve this request ("needs a torus", "knows no broadcast", a bad variant); nullopt: it can.
  std::optional<std::string> (*why_not)(const PlanRequest& request);
  /// The exact time of `plan` for an all-reduce when all endpoints hang on a star; nullptr: no formula is known.
  Seconds (*on_star)(const PlanRequest& request, const Star& star);
};

/// In the order in which they are listed to the user.
std::span<const AllReduceScheme> allreduce_schemes();
std::vector<std::string> allreduce_scheme_names();

/// The scheme of that name; an unknown one is a ConfigError with the list and the nearest.
const AllReduceScheme& find_scheme(std::string_view name);

/// "nccl", or "nccl:2.18.3": a row of the table and its variant.
struct Scheme {
  const AllReduceScheme* row = nullptr;
  std::string variant;

  std::string name() const;  ///< as it was parsed
  /// Fills in the variant. ConfigError where why_not() objects, naming the scheme.
  Schedule plan(PlanRequest request) const;
};

/// Who holds the weights of asynchronous training: an equal share each.
struct ParameterServers {
  std::vector<int> ranks;  ///< beside the workers that are there
  int machines = 0;        ///< of their own; then `ranks` is empty
};
/// By the variant of `parameter-server`; another scheme stands for its default. ConfigError where the variant is none.
ParameterServers parameter_servers(const Scheme& scheme, const Topology& topology);

/// ConfigError as find_scheme's.
Scheme parse_scheme(std::string_view text);
/// The same, located.
Scheme read_scheme(const JsonNode& node);

}  // namespace ganymede
