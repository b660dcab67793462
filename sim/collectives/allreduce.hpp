#pragma once
// The descriptor of an all-reduce scheme and the register of all schemes. Each scheme is an object in its own file
// under schemes/; allreduce.cpp holds the register, with one row for each scheme.
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

#include "common/errors.hpp"
#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "sim/collectives/closed_form.hpp"
#include "sim/collectives/schedule.hpp"
#include "sim/collectives/topology.hpp"

namespace ganymede::sim {

/// The collectives that a plan may implement. Sizes in bytes are those of the whole buffer, as in nccl-tests: with n
/// ranks, a rank keeps 1/n of the bytes after a reduce_scatter and holds 1/n of them before an all_gather; it sends 1/n
/// of them to each other rank in an all_to_all, and all of them to the next rank in a send_receive. The root of a
/// broadcast, a reduce, a gather of n parts and a scatter is rank 0.
enum class Collective {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  all_to_all,
  send_receive,
  gather,
  scatter
};
std::string_view to_string(Collective collective);              ///< "all-reduce", "reduce-scatter", ...
std::vector<std::string> collective_names();                    ///< in the order of the enumeration
Collective parse_collective(std::string_view name);             ///< throws ConfigError for an unknown name
double bus_bandwidth_factor(Collective collective, int ranks);  ///< bus bandwidth / algorithm bandwidth (nccl-tests)

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
  std::string variant;  ///< the text after the colon of "name:variant"; "" if there is no colon
  /// Sizes of the largest variables, as shares of the bytes. Parameter servers hold each of them whole and are filled
  /// up with the rest, which is in small pieces. Empty: all variables are small.
  std::vector<double> variables = {};
};

/// A scheme that describes itself: lists, documentation and choices of schemes are made from these members.
struct AllReduceScheme {
  std::string_view name;           ///< as users write it; "two-level" is in schemes/two_level.cpp
  std::string_view summary;        ///< one line for `ganymede list schemes`
  std::string_view variants = {};  ///< says what may follow the colon; "": there are no variants
  std::string_view needs = {};     ///< says what the fabric must offer; "": any fabric will do
  CollectiveSet collectives = {Collective::all_reduce};
  /// True: messages are sent by kernels that occupy multiprocessors of the GPUs meanwhile, as NCCL's are. False: by
  /// copy engines or hosts, or the scheme is an algorithm of which no implementation is modelled.
  bool by_kernels = false;
  /// True: parameter servers hold the gradients, so that it matters how large single variables are.
  bool has_servers = false;

  /// Returns the schedule: who sends which bytes to whom. Pure; the cost does not grow with the number of bytes or
  /// rounds. The schedule has no rounds for one rank or zero bytes. Precondition: why_not(request) returns nullopt.
  Schedule (*plan)(const PlanRequest& request) = nullptr;
  /// Returns why the scheme refuses a request, for example because it cannot parse the variant; nullopt: it does not. A
  /// null pointer: the scheme refuses nothing.
  std::optional<std::string> (*refusal)(const PlanRequest& request) = nullptr;
  /// Returns the exact time of an all-reduce by `plan` on a star (closed_form.hpp). A null pointer: no formula is
  /// known.
  Seconds (*on_star)(const PlanRequest& request, const Star& star) = nullptr;

  /// Returns why the scheme cannot serve the request ("knows no broadcast", "needs a torus", a bad variant); nullopt:
  /// it can.
  std::optional<std::string> why_not(const PlanRequest& request) const;
  /// The summary, followed by the variants in parentheses if there are any.
  std::string description() const;
};

/// The register, in the order in which schemes are listed. Tests may pass another table to the functions below.
using SchemeTable = std::span<const AllReduceScheme>;
SchemeTable allreduce_schemes();

std::vector<std::string> allreduce_scheme_names(SchemeTable table = allreduce_schemes());
/// A regular expression (ECMA 262) that a JSON schema may use: "^(ring|tree(:.+)?|...)$". It accepts every known name,
/// and text after a colon if the scheme has variants.
std::string allreduce_scheme_pattern(SchemeTable table = allreduce_schemes());
/// The Markdown list of schemes that docs/model.md holds, one line for each scheme.
std::string allreduce_scheme_docs(SchemeTable table = allreduce_schemes());

/// Returns the scheme of that name. Throws ConfigError for an unknown name; the message lists all names and suggests
/// the nearest one.
const AllReduceScheme& find_scheme(std::string_view name, SchemeTable table = allreduce_schemes());

/// A scheme cannot serve a request; the message says which one and why.
class SchemeRefused : public ConfigError {
  using ConfigError::ConfigError;
};

/// A scheme and its variant, as a user chose them: "nccl", or "nccl:2.18.3".
struct Scheme {
  const AllReduceScheme* row = nullptr;
  std::string variant;
  std::vector<double> variables = {};  ///< as PlanRequest::variables

  std::string name() const;  ///< as it was parsed
  /// Plans with this object's variant and variables; those of the request are ignored. Throws SchemeRefused if
  /// why_not() returns a reason.
  Schedule plan(PlanRequest request) const;
};

/// The servers that hold the weights of asynchronous training in equal shares: either workers or dedicated machines.
struct ParameterServers {
  std::vector<int> ranks;  ///< workers that also serve; empty if `machines` is above zero
  int machines = 0;        ///< number of dedicated machines, in addition to the workers
};
/// Returns the servers that the variant of `parameter-server` describes; any other scheme gets those of the default
/// variant. Throws ConfigError for a bad variant.
ParameterServers parameter_servers(const Scheme& scheme, const Topology& topology);

/// Parses "name" or "name:variant". Throws ConfigError for an unknown name, for an empty variant, and for a variant if
/// the scheme has none.
Scheme parse_scheme(std::string_view text, SchemeTable table = allreduce_schemes());
/// Reads a scheme from a file. Throws ConfigError as parse_scheme() does, with the place in the file.
Scheme read_scheme(const JsonNode& node);

}  // namespace ganymede::sim
