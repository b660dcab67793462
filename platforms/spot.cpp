#include "platforms/spot.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "common/embedded.hpp"
#include "common/json.hpp"
#include "common/units.hpp"

namespace ganymede::platforms {
namespace {

constexpr double kMaxDuration_s = 1e8;  // three years: longer than any run
constexpr double kMinDuration_s = 1;

SpotClass read_class(const std::string& name, const JsonNode& node) {
  JsonObject in(node);
  SpotClass of;
  of.name = name;
  of.mean_up = Seconds{3600 * in.required("mean_up_h").as_number(1e-3, 1e4)};
  of.mean_up_spread = in.required("mean_up_spread").as_number(0, 10);
  of.availability = in.required("availability").as_number(1e-6, 1 - 1e-6);
  of.availability_spread = in.required("availability_spread").as_number(0, 10);
  of.zones = static_cast<int>(in.required("zones").as_integer(0, 1'000'000));
  in.finish();
  return of;
}

SpotModel read_spot_model(const JsonNode& root) {
  JsonObject in(root);
  check_schema(in, "ganymede.spot/1");
  for (const char* about : {"about", "sources", "wider", "zones"}) in.optional(about);
  SpotModel model;
  const JsonNode durations = in.required("durations");
  model.up_spread = durations.child("up_spread").as_number(0, 10);
  model.down_spread = durations.child("down_spread").as_number(0, 10);
  model.correlation = in.required("correlation").as_number(-1, 1);
  const JsonNode past = in.required("past");
  model.up_noise = past.child("mean_up_noise").as_number(0, 1e4);
  model.availability_noise = past.child("availability_noise").as_number(0, 1e4);
  const JsonNode region = in.required("region");
  model.follows = region.child("follows").as_number(0, 1);
  model.alike = region.child("alike").as_number(0, 0.999);
  model.together = in.required("together").child("share").as_number(0, 1);
  for (const auto& [name, node] : in.required("classes").as_map()) model.classes.push_back(read_class(name, node));
  in.finish();
  return model;
}

Seconds bounded(double seconds) { return Seconds{std::clamp(seconds, kMinDuration_s, kMaxDuration_s)}; }

}  // namespace

SpotZone SpotClass::zone(double up_normal, double availability_normal) const {
  const double up = mean_up.si * portable_exp(mean_up_spread * up_normal);
  // The time up divided by the time down.
  const double odds = availability / (1 - availability) * portable_exp(availability_spread * availability_normal);
  return {Seconds{up}, Seconds{up / odds}};
}

const SpotClass& SpotModel::of(std::string_view gpu_family) const {
  const auto named = [&](std::string_view name) {
    return std::find_if(classes.begin(), classes.end(), [&](const SpotClass& one) { return one.name == name; });
  };
  const auto found = named(gpu_family);
  if (found != classes.end()) return *found;
  const auto other = named("other");
  assert(other != classes.end());
  return *other;
}

SpotClass SpotModel::given(const SpotClass& kind, const SpotPast& past) const {
  // At least one up-time, and a second up and down, so that each logarithm is finite.
  const double times = std::max(past.times_up, 1), up = std::max(past.up.si, 1.0), down = std::max(past.down.si, 1.0);
  const auto mix = [&](double mean, double& spread, double seen, double noise) {
    const double variance = spread * spread, weight = variance > 0 ? variance / (variance + noise / times) : 0;
    spread *= std::sqrt(1 - weight);
    return mean + weight * (seen - mean);
  };
  SpotClass out = kind;
  out.mean_up =
      Seconds{portable_exp(mix(portable_log(kind.mean_up.si), out.mean_up_spread, portable_log(up / times), up_noise))};
  const double logit = mix(portable_log(kind.availability / (1 - kind.availability)), out.availability_spread,
                           portable_log(up / down), availability_noise);
  out.availability = 1 / (1 + portable_exp(-logit));
  return out;
}

SpotZone SpotModel::draw(const SpotClass& kind, const std::array<double, 2>& normals) const {
  const auto [up, own] = normals;
  return kind.zone(up, correlation * up + std::sqrt(1 - correlation * correlation) * own);
}

const SpotModel& spot_model() {
  static const SpotModel model =
      read_spot_model(JsonNode::parse(embedded_spot().front().text, "platforms/spot/measured.json"));
  return model;
}

Seconds draw_duration(Seconds mean, double spread, RandomStream& random) {
  return bounded(mean.si * portable_exp(spread * random.normal() - spread * spread / 2));
}

Seconds draw_rest(Seconds mean, double spread, RandomStream& random) {
  // A lognormal duration weighted by its length is lognormal too, with a median that is exp(spread squared) times as
  // long.
  const double whole = mean.si * portable_exp(spread * random.normal() + spread * spread / 2);
  return bounded(whole * random.uniform());
}

}  // namespace ganymede::platforms
