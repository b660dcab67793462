#pragma once
// All-reduce schemes: what one says of itself, and the register of all of them. Each scheme is an object in a file of
// its own under schemes/; allreduce.cpp holds the register, one row a scheme.
//
//   const Scheme scheme = parse_scheme("ring");
//   const Schedule schedule = scheme.plan({.topology = clustered(8, 4), .bytes = 64 << 20});

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"
#include "sim/collectives/closed_form.hpp"
#include "sim/collectives/schedule.hpp"
#include "sim/collectives/topology.hpp"

namespace ganymede::sim {

/// The collectives that a plan may implement. Bytes are those of the whole buffer, as in nccl-tests: after a
/// reduce_scatter a rank keeps one n-th of them, before an all_gather it holds one n-th. The root of a broadcast is
/// rank 0.
enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast };
std::string_view to_string(Collective collective);              ///< "all-reduce", "reduce-scatter", ...
std::vector<std::string> collective_names();                    ///< in the order of the enumeration
Collective parse_collective(std::string_view name);             ///< ConfigError for an unknown name
double bus_bandwidth_factor(Collective collective, int ranks);  ///< bus over algorithm bandwidth, as in nccl-tests

/// A set of collectives, for example {Collective::all_reduce, Collective::broadcast}.
class CollectiveSet {
 public:
  constexpr CollectiveSet(std::initializer_list<Collective> members) {
    for (const Collective member : members) bits_ |= 1U << static_cast<unsigned>(member);
  }
  constexpr bool contains(Collective collective) const {
    return (bits_ >> static_cast<unsigned>(collective) & 1U) != 0;
  }

 private:
  unsigned bits_ = 0;
};

/// The input of a plan.
struct PlanRequest {
  Topology topology;
  std::int64_t bytes = 0;  ///< size of each rank's buffer
  Collective collective = Collective::all_reduce;
  std::string variant;  ///< what follows the colon of "name:variant"; "" without a colon
};

/// A scheme. It describes itself: whatever lists, documents or offers schemes walks these members.
struct AllReduceScheme {
  std::string_view name;           ///< as users write it; "two-level" stands in schemes/two_level.cpp
  std::string_view summary;        ///< one line for `ganymede list schemes`
  std::string_view variants = {};  ///< what may follow the colon, in words; "": nothing may
  std::string_view needs = {};     ///< what the fabric must offer, in words; "": any fabric will do
  CollectiveSet collectives = {Collective::all_reduce};
  /// True: `ganymede plan` tries the scheme where a request names none. The other schemes were the fastest for none of
  /// 1,065 sets of 1 to 16 GPUs of the catalogs, with dcgan-64 in batches of 16 to 128 a GPU: multi-ring and two-level
  /// equal the ring there, trees and hierarchical-copy move all bytes over one link, and torus needs the shape of one.
  bool planned_by_default = false;

  /// Returns who sends what to whom. Pure, and O(1) in bytes and rounds; no rounds for one rank or no bytes. The
  /// request must be one for which why_not() returns nullopt.
  Schedule (*plan)(const PlanRequest& request) = nullptr;
  /// Reasons against a request that only the scheme can know, such as a variant that it cannot parse; null: none.
  std::optional<std::string> (*refusal)(const PlanRequest& request) = nullptr;
  /// The exact time of an all-reduce by `plan` when all endpoints hang on a star; null: no formula is known.
  Seconds (*on_star)(const PlanRequest& request, const Star& star) = nullptr;

  /// Why the scheme cannot serve the request ("knows no broadcast", "needs a torus", a bad variant); nullopt: it can.
  std::optional<std::string> why_not(const PlanRequest& request) const;
  /// The summary, followed by the variants in parentheses where there are any.
  std::string description() const;
};

/// The register, in the order in which schemes are listed. Functions below take another table for tests.
using SchemeTable = std::span<const AllReduceScheme>;
SchemeTable allreduce_schemes();

std::vector<std::string> allreduce_scheme_names(SchemeTable table = allreduce_schemes());
/// The names of schemes that are planned by default.
std::vector<std::string> default_plan_schemes(SchemeTable table = allreduce_schemes());
/// A regular expression (ECMA 262) that a JSON schema may use: "^(ring|tree(:.+)?|...)$". It accepts every known name,
/// and text after a colon where the scheme has variants.
std::string allreduce_scheme_pattern(SchemeTable table = allreduce_schemes());
/// The Markdown list of schemes that docs/model.md holds, one line for each scheme.
std::string allreduce_scheme_docs(SchemeTable table = allreduce_schemes());

/// Returns the scheme of that name. ConfigError for an unknown name, with all names and the nearest one.
const AllReduceScheme& find_scheme(std::string_view name, SchemeTable table = allreduce_schemes());

/// A scheme and its variant, as a user chose them: "nccl", or "nccl:2.18.3".
struct Scheme {
  const AllReduceScheme* row = nullptr;
  std::string variant;

  std::string name() const;  ///< as it was parsed
  /// Plans with this variant, whatever the request's. ConfigError that names the scheme where why_not() objects.
  Schedule plan(PlanRequest request) const;
};

/// Where the weights of asynchronous training lie, in equal shares: on `ranks`, or on `machines` of their own.
struct ParameterServers {
  std::vector<int> ranks;  ///< workers that also serve; empty where `machines` is above zero
  int machines = 0;        ///< beside the workers
};
/// Reads the variant of `parameter-server`; any other scheme stands for its default. ConfigError for a bad variant.
ParameterServers parameter_servers(const Scheme& scheme, const Topology& topology);

/// Parses "name" or "name:variant". ConfigError as find_scheme's, and for a variant where the scheme has none.
Scheme parse_scheme(std::string_view text, SchemeTable table = allreduce_schemes());
/// Reads a scheme from a file. ConfigError as parse_scheme's, with the place in the file.
Scheme read_scheme(const JsonNode& node);

}  // namespace ganymede::sim
