#include "sim/collectives/allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/text.hpp"

// The register: one row for each scheme, in the order in which users see them. ROW(two_level) is the object
// `two_level_scheme` that schemes/two_level.cpp defines.
#define GANYMEDE_ALLREDUCE_SCHEMES(ROW) \
  ROW(ring)                             \
  ROW(multi_ring)                       \
  ROW(tree)                             \
  ROW(double_binary_tree)               \
  ROW(recursive_doubling)               \
  ROW(halving_doubling)                 \
  ROW(hierarchical_copy)                \
  ROW(two_level)                        \
  ROW(reduce_to_one)                    \
  ROW(parameter_server)                 \
  ROW(hierarchical_parameter_server)    \
  ROW(torus)                            \
  ROW(in_network)                       \
  ROW(mixed)                            \
  ROW(nccl)

namespace ganymede::sim {

#define GANYMEDE_DECLARE(scheme) extern const AllReduceScheme scheme##_scheme;
GANYMEDE_ALLREDUCE_SCHEMES(GANYMEDE_DECLARE)

namespace {

constexpr std::array kCollectiveNames{"all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce",
                                      "all-to-all", "send-receive",   "gather",     "scatter"};

/// Lists the collectives that a scheme knows besides all-reduce, for example "reduce-scatter, broadcast"; "" if it
/// knows only all-reduce.
std::string other_collectives(const AllReduceScheme& scheme) {
  std::string text;
  for (std::size_t i = 1; i < kCollectiveNames.size(); ++i)
    if (scheme.collectives.contains(static_cast<Collective>(i)))
      text += (text.empty() ? "" : ", ") + std::string(kCollectiveNames[i]);
  return text;
}

}  // namespace

SchemeTable allreduce_schemes() {
#define GANYMEDE_OBJECT(scheme) scheme##_scheme,
  static const std::array schemes{GANYMEDE_ALLREDUCE_SCHEMES(GANYMEDE_OBJECT)};
  return schemes;
}

std::string_view to_string(Collective collective) { return kCollectiveNames[static_cast<std::size_t>(collective)]; }

std::vector<std::string> collective_names() { return {kCollectiveNames.begin(), kCollectiveNames.end()}; }

Collective parse_collective(std::string_view name) {
  const auto found = std::find(kCollectiveNames.begin(), kCollectiveNames.end(), name);
  if (found == kCollectiveNames.end())
    throw ConfigError(fmt::format("unknown collective \"{}\", expected {}", name, list_of(collective_names())));
  return static_cast<Collective>(found - kCollectiveNames.begin());
}

// nccl-tests defines the factor in doc/PERFORMANCE.md.
double bus_bandwidth_factor(Collective collective, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * share;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      return share;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_receive:
      return ranks == 1 ? 0 : 1;
  }
  return 0;
}

std::optional<std::string> AllReduceScheme::why_not(const PlanRequest& request) const {
  if (variants.empty() && !request.variant.empty())
    return fmt::format("has no variants, found \"{}\"", request.variant);
  if (refusal != nullptr)
    if (auto why = refusal(request)) return why;
  if (!collectives.contains(request.collective)) return fmt::format("knows no {}", to_string(request.collective));
  return std::nullopt;
}

std::string AllReduceScheme::description() const {
  return variants.empty() ? std::string(summary) : fmt::format("{} (:{})", summary, variants);
}

std::vector<std::string> allreduce_scheme_names(SchemeTable table) {
  std::vector<std::string> names;
  for (const AllReduceScheme& scheme : table) names.emplace_back(scheme.name);
  return names;
}

std::string allreduce_scheme_pattern(SchemeTable table) {
  std::string names;
  for (const AllReduceScheme& scheme : table)
    names += fmt::format("{}{}{}", names.empty() ? "" : "|", scheme.name, scheme.variants.empty() ? "" : "(:.+)?");
  return "^(" + names + ")$";
}

std::string allreduce_scheme_docs(SchemeTable table) {
  std::string text;
  for (const AllReduceScheme& scheme : table) {
    text += fmt::format("- `{}`: {}.", scheme.name, scheme.summary);
    if (!scheme.variants.empty()) text += fmt::format(" After a colon: {}.", scheme.variants);
    if (!scheme.needs.empty()) text += fmt::format(" Needs {}.", scheme.needs);
    if (const std::string others = other_collectives(scheme); !others.empty())
      text += fmt::format(" Other collectives: {}.", others);
    if (scheme.on_star != nullptr) text += " It has a formula.";
    text += "\n";
  }
  return text;
}

const AllReduceScheme& find_scheme(std::string_view name, SchemeTable table) {
  const auto found =
      std::find_if(table.begin(), table.end(), [name](const AllReduceScheme& scheme) { return scheme.name == name; });
  if (found != table.end()) return *found;

  const std::vector<std::string> names = allreduce_scheme_names(table);
  std::string message = "unknown all-reduce scheme \"" + std::string(name) + "\", expected " + list_of(names);
  if (const auto meant = nearest(name, names)) message += "; did you mean \"" + *meant + "\"?";
  throw ConfigError(message);
}

std::string Scheme::name() const { return std::string(row->name) + (variant.empty() ? "" : ":" + variant); }

Schedule Scheme::plan(PlanRequest request) const {
  request.variant = variant;
  request.variables = variables;
  if (const auto why = row->why_not(request))
    throw SchemeRefused(fmt::format("scheme {} on {} ranks in {} node{}: {}", name(), request.topology.ranks,
                                    request.topology.nodes(), request.topology.nodes() == 1 ? "" : "s", *why));
  return row->plan(request);
}

Scheme parse_scheme(std::string_view text, SchemeTable table) {
  const std::size_t colon = text.find(':');
  const AllReduceScheme& row = find_scheme(text.substr(0, colon), table);
  if (colon == std::string_view::npos) return {&row, ""};
  const std::string variant(text.substr(colon + 1));
  if (row.variants.empty() || variant.empty())
    throw ConfigError(fmt::format("scheme \"{}\": {}", text,
                                  row.variants.empty() ? fmt::format("{} has no variants", row.name)
                                                       : fmt::format("after the colon, expected {}", row.variants)));
  return {&row, variant};
}

Scheme read_scheme(const JsonNode& node) {
  const std::string text = node.as_string();
  if (text.find(':') == std::string::npos) return {&find_scheme(node.as_choice(allreduce_scheme_names())), ""};
  try {
    return parse_scheme(text);
  } catch (const ConfigError& error) {
    node.fail(error.what());
  }
}

}  // namespace ganymede::sim
