#include "sim/steps/step_distribution.hpp"

#include "common/json_value.hpp"
#include "common/units.hpp"

namespace ganymede::sim {
namespace {
Json spans_json(const std::vector<StepSpan>& spans) {
  Json out = Json::array();
  for (const StepSpan& span : spans)
    out.push_back({span.worker, static_cast<int>(span.kind), span.name, span.start.si, span.end.si});
  return out;
}

}  // namespace

std::string to_text(const StepDistribution& d) {
  Json pools = Json::array();
  for (const PoolStep& p : d.pools)
    pools.push_back({p.compute.si, p.exposed.si, p.straggler.si, p.stall.si, p.lost.si, p.device.si});
  Json between = Json::array();
  for (const PlaceTraffic& traffic : d.between_places) between.push_back({traffic.from, traffic.to, traffic.bytes.si});
  const Json out = {d.mean.si,   d.low.si,   d.high.si,           d.half_width, d.own_variance,
                    d.simulated, d.precise,  d.staleness,         between,      d.host.si,
                    d.reads,     d.flops,    d.busiest_link.si,   d.workers,    d.images,
                    pools,       d.warnings, spans_json(d.spans), d.error};
  return out.dump();
}

StepDistribution parse_distribution(const std::string& text) {
  const Json in = Json::parse(text);
  StepDistribution d;
  const auto number = [&](std::size_t i) { return in[i].get<double>(); };
  const auto seconds = [&](std::size_t i) { return Seconds{number(i)}; };
  d.mean = seconds(0), d.low = seconds(1), d.high = seconds(2);
  d.half_width = number(3), d.own_variance = number(4), d.simulated = in[5].get<std::int64_t>();
  d.precise = in[6].get<bool>(), d.staleness = number(7);
  for (const auto& part : in[8])
    d.between_places.push_back({part[0].get<std::size_t>(), part[1].get<std::size_t>(), Bytes{part[2].get<double>()}});
  d.host = seconds(9), d.reads = number(10), d.flops = number(11), d.busiest_link = seconds(12);
  d.workers = in[13].get<int>(), d.images = number(14);
  for (const auto& p : in[15]) {
    PoolStep pool;
    std::size_t i = 0;
    for (Seconds* part : {&pool.compute, &pool.exposed, &pool.straggler, &pool.stall, &pool.lost, &pool.device})
      *part = Seconds{p[i++].get<double>()};
    d.pools.push_back(pool);
  }
  d.warnings = in[16].get<std::vector<std::string>>();
  for (const auto& span : in[17])
    d.spans.push_back({span[0].get<std::size_t>(), static_cast<StepSpan::Kind>(span[1].get<int>()),
                       span[2].get<std::string>(), Seconds{span[3].get<double>()}, Seconds{span[4].get<double>()}});
  d.error = number(18);
  return d;
}

}  // namespace ganymede::sim
