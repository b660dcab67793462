#include "report/run_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "report/timeline.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::json;

/// Of one pool, while its events go by.
struct Pool {
  int held = 0, asked = 0;
  int waiting = 0;  // of those asked for: the provider has none
  double since = 0;
};

/// What an event does to its pool.
void apply(Pool& pool, const std::string& what, int nodes) {
  if (what == "requested") pool.asked += nodes;
  if (what == "waiting") pool.waiting += nodes;
  if (what == "provisioned") {
    pool.asked -= std::min(nodes, pool.asked);
    pool.waiting = std::min(pool.waiting, pool.asked);
    pool.held += nodes;
  }
  if (what == "lost" || what == "crashed") pool.held = std::max(0, pool.held - nodes);
  if (what == "released") {
    const int gone = std::min(nodes, pool.held);
    pool.held -= gone;
    pool.asked = std::max(0, pool.asked - (nodes - gone));
  }
}

/// By kind of `step_spans`, which track of its worker a span is on.
int track_of(const std::string& kind) { return kind == "communication" ? 1 : kind == "input" ? 2 : 0; }

void add_steps(const Json& run, Seconds origin, std::vector<TimelineSpan>& spans) {
  const Json& steps = run.at("step_spans");
  constexpr std::array<const char*, 3> kTracks = {"course", "collectives", "input pipeline"};
  for (const Json& row : steps.at("rows")) {
    const auto kind = steps.at("kinds").at(row.at(1).get<std::size_t>()).get<std::string>();
    const int track = track_of(kind);
    const Seconds start = origin + Seconds{row.at(3).get<double>()};
    spans.push_back({fmt::format("worker {}", row.at(0).get<std::size_t>()),
                     track,
                     kTracks[static_cast<std::size_t>(track)],
                     steps.at("names").at(row.at(2).get<std::size_t>()).get<std::string>(),
                     start,
                     start + Seconds{row.at(4).get<double>()},
                     {{"kind", kind}}});
  }
}

}  // namespace

std::vector<Holding> holdings_of(const Json& run) {
  std::map<std::string, Pool> pools;
  std::vector<Holding> out;
  const auto cut = [&](const std::string& name, Pool& pool, double at) {
    if (at > pool.since && pool.held + pool.asked > 0) out.push_back({name, pool.since, at, pool.held, pool.asked});
    pool.since = at;
  };
  for (const Json& event : run.at("events")) {
    const auto what = event.at("event").get<std::string>();
    const double at = event.at("at_s").get<double>();
    if (what == "ready")
      // Training begins with what has come by then.
      for (auto& [name, pool] : pools) {
        if (pool.asked == pool.waiting) continue;
        cut(name, pool, at);
        pool.held += pool.asked - pool.waiting;
        pool.asked = pool.waiting;
      }
    const std::string name = event.value("pool", "");
    const int nodes = event.value("nodes", 0);
    if (name.empty() || nodes == 0) continue;
    Pool& pool = pools[name];
    Pool after = pool;
    apply(after, what, nodes);
    if (after.held != pool.held || after.asked != pool.asked) cut(name, pool, at);
    after.since = pool.since;
    pool = after;
  }
  for (auto& [name, pool] : pools) cut(name, pool, run.at("time").at("total_s").get<double>());
  std::stable_sort(out.begin(), out.end(), [](const Holding& a, const Holding& b) { return a.from_s < b.from_s; });
  return out;
}

std::string run_trace(const Json& run) {
  std::vector<TimelineSpan> spans;
  const char* cluster = "cluster";
  std::map<std::string, int> tracks;
  for (const Holding& holding : holdings_of(run)) {
    const int track = tracks.try_emplace(holding.pool, static_cast<int>(tracks.size()) + 1).first->second;
    std::string name = fmt::format("{} held", holding.held);
    if (holding.asked > 0)
      name = holding.held > 0 ? fmt::format("{}, {} asked for", name, holding.asked)
                              : fmt::format("{} asked for", holding.asked);
    spans.push_back({cluster, track, holding.pool, name, Seconds{holding.from_s}, Seconds{holding.to_s}, {}});
  }
  Seconds training{0};
  for (const Json& event : run.at("events")) {
    const Seconds at{event.at("at_s").get<double>()};
    if (event.at("event") == "ready" && training.si == 0) training = at;
    std::vector<std::pair<std::string, std::string>> details;
    for (const auto& [key, value] : event.items())
      if (key != "at_s" && key != "event")
        details.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
    spans.push_back({cluster, 0, "events", event.at("event").get<std::string>(), at, at, std::move(details)});
  }
  if (run.contains("step_spans")) add_steps(run, training, spans);
  return chrome_trace(spans);
}

}  // namespace ganymede
