#include "studies/task_offers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "common/text.hpp"
#include "common/usd.hpp"
#include "platforms/catalog.hpp"
#include "platforms/catalog_lists.hpp"
#include "platforms/gpu_names.hpp"

namespace ganymede::studies {
namespace {

using report::LikeOffer;

double speed_of(const platforms::Gpu& gpu) { return gpu.tensor.value_or(gpu.fp32).si; }

/// The best price of an instance type on each market, in the region if one is named.
std::vector<LikeOffer> offers_of(const platforms::Platform& platform, const platforms::Instance& instance, int nodes,
                                 const std::string& region, bool named = false) {
  std::vector<LikeOffer> out;
  if (nodes > 1 && !instance.nic && !named) return out;  // no network joins them, and none asks for them by name
  for (const platforms::Price& price : instance.prices) {
    if (price.ownership || (!region.empty() && price.region != region)) continue;
    if (price.market != platforms::Market::on_demand && price.market != platforms::Market::spot) continue;
    const double usd = usd_of(price.per_hour) * nodes;
    const std::string market(to_string(price.market));
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const LikeOffer& other) { return other.market == market; });
    if (same != out.end() && same->usd_per_hour <= usd) continue;
    if (same != out.end()) out.erase(same);
    out.push_back({platform.name, price.region, market, instance.name, instance.gpu, nodes, nodes * instance.gpus, usd,
                   price.as_of, false});
  }
  return out;
}

/// GPUs are compared with GPUs; a machine of TPUs counts where it is the one that is named.
bool may_be_meant(const AskedResources& asked, const platforms::Gpu& gpu, const platforms::Instance& instance) {
  return gpu.kind == platforms::Gpu::Kind::gpu ||
         (gpu.kind == platforms::Gpu::Kind::tpu && instance.name == asked.instance);
}

/// Throws ConfigError if the instance type is one that cannot be rented any more.
void check_retired(const std::string& asked) {
  for (const std::string& provider : platforms::provider_names())
    for (const platforms::Instance& instance : platforms::catalog(provider).instances)
      if (!instance.retired.empty() && lower_case(instance.name) == lower_case(asked))
        throw ConfigError(
            fmt::format("the instance type \"{}\" of {} is retired: {}; `ganymede list instances` names "
                        "others",
                        asked, provider, instance.retired));
}

/// Throws ConfigError for an instance type that no catalog has, or not this cloud's (then it has no GPUs).
void check_instance(const AskedResources& asked, const std::vector<std::string>& instances, int gpus) {
  if (!asked.instance.empty() && std::find(instances.begin(), instances.end(), asked.instance) == instances.end()) {
    check_retired(asked.instance);
    throw ConfigError(
        fmt::format("no catalog has the instance type \"{}\" with GPUs{}; `ganymede list instances` names them",
                    asked.instance, did_you_mean(asked.instance, instances)));
  }
  if (gpus == 0) throw ConfigError(fmt::format("\"{}\" has no instance type \"{}\"", asked.cloud, asked.instance));
}

/// The least of what is asked for: any offer that is not below it would do.
struct Least {
  double memory = 0, speed = 0;

  void add(const platforms::Gpu& gpu) {
    memory = memory == 0 ? gpu.memory.si : std::min(memory, gpu.memory.si);
    speed = speed == 0 ? speed_of(gpu) : std::min(speed, speed_of(gpu));
  }
  bool is_held_by(const platforms::Gpu& gpu) const { return gpu.memory.si >= memory && speed_of(gpu) >= speed; }
};

struct Alternative {
  AskedResources asked;
  double usd_per_hour = std::numeric_limits<double>::infinity();  ///< infinite without a price
};

/// The alternative that the lists lead to, from that at `depth` of their paths on; the first if none has a price.
/// `all` has one at least, and the same path up to there.
Alternative best_of(const std::vector<Alternative>& all, std::size_t depth) {
  const auto has_list = [&](const Alternative& one) { return depth < one.asked.path.size(); };
  if (!has_list(all.front())) return all.front();
  std::map<std::size_t, std::vector<Alternative>> places;
  for (const Alternative& one : all) places[one.asked.path[depth].place].push_back(one);
  std::optional<Alternative> best;
  for (const auto& [place, of] : places) {
    const Alternative here = best_of(of, depth + 1);
    const bool decided = best && all.front().asked.path[depth].by_preference && std::isfinite(best->usd_per_hour);
    if (!best || (!decided && here.usd_per_hour < best->usd_per_hour)) best = here;
  }
  return *best;
}

}  // namespace

std::vector<std::string> gpus_meant(const std::string& name) {
  std::set<std::string> names;
  int best = 1;
  for (const std::string& provider : platforms::provider_names())
    for (const platforms::Gpu& gpu : platforms::catalog(provider).gpus) {
      const int points = name.empty() ? gpu.kind == platforms::Gpu::Kind::gpu : platforms::gpu_likeness(name, gpu);
      if (points < best) continue;
      if (points > best) names.clear();
      best = points;
      names.insert(gpu.name);
    }
  return {names.begin(), names.end()};
}

report::LikeAnswer task_offers(const AskedResources& asked, const std::string& gpu) {
  constexpr std::size_t kShown = 12;
  report::LikeAnswer answer{asked.format,
                            gpu.empty() ? asked.gpu : gpu,
                            asked.gpus_per_node,
                            asked.nodes,
                            asked.spot,
                            asked.time ? asked.time->si / 3600 : 0,
                            {},
                            asked.notes};
  const std::vector<std::string> meant = gpus_meant(answer.gpu);
  if (meant.empty() && asked.instance.empty())
    throw ConfigError(
        fmt::format("no catalog has the GPU \"{}\"; --gpu says another, `ganymede list gpus` names them{}", answer.gpu,
                    platforms::did_you_mean_gpu(answer.gpu)));
  if (answer.gpu.empty() && asked.instance.empty())
    answer.notes.emplace_back("the file does not say which GPU: all are compared; --gpu says which");
  Least least;
  std::vector<LikeOffer> as_asked, others;
  const auto each = [&](const auto& body) {
    platforms::for_each_instance([&](const platforms::Platform& platform, const platforms::Instance& instance) {
      if (may_be_meant(asked, platform.gpu_of(instance), instance)) body(platform, instance);
    });
  };
  const auto is_asked = [&](const platforms::Platform& platform, const platforms::Instance& instance) {
    if (!asked.cloud.empty() && platform.provider != asked.cloud && platform.name != asked.cloud) return false;
    if (!asked.instance.empty()) return instance.name == asked.instance;
    return instance.gpus >= answer.gpus_per_node && std::find(meant.begin(), meant.end(), instance.gpu) != meant.end();
  };
  std::vector<std::string> instances;
  each([&](const platforms::Platform& platform, const platforms::Instance& instance) {
    instances.push_back(instance.name);
    if (!is_asked(platform, instance)) return;
    if (answer.gpus_per_node == 0) answer.gpus_per_node = instance.gpus;
    least.add(platform.gpu_of(instance));
    for (LikeOffer& offer : offers_of(platform, instance, asked.nodes, asked.region, instance.name == asked.instance))
      if ((offer.market == "spot") == asked.spot) offer.asked = true, as_asked.push_back(std::move(offer));
  });
  check_instance(asked, instances, answer.gpus_per_node);
  if (least.memory == 0 && !answer.gpu.empty())  // the cloud that is asked for has no such GPU: others' say what it is
    each([&](const platforms::Platform& platform, const platforms::Instance& instance) {
      if (std::find(meant.begin(), meant.end(), instance.gpu) != meant.end()) least.add(platform.gpu_of(instance));
    });
  const auto cheaper = [](const LikeOffer& a, const LikeOffer& b) { return a.usd_per_hour < b.usd_per_hour; };
  std::stable_sort(as_asked.begin(), as_asked.end(), cheaper);
  if (as_asked.empty())
    answer.notes.emplace_back(
        "no catalog has a price for exactly that: cloud, region, market and instance type together");
  each([&](const platforms::Platform& platform, const platforms::Instance& instance) {
    if (instance.gpus < answer.gpus_per_node || !least.is_held_by(platform.gpu_of(instance))) return;
    for (LikeOffer& offer : offers_of(platform, instance, asked.nodes, ""))
      if (as_asked.empty() || offer.usd_per_hour < as_asked.front().usd_per_hour) others.push_back(std::move(offer));
  });
  std::stable_sort(others.begin(), others.end(), cheaper);
  if (others.size() > kShown) others.resize(kShown);
  if (as_asked.size() > kShown / 2) as_asked.resize(kShown / 2);
  answer.offers = std::move(others);
  answer.offers.insert(answer.offers.end(), as_asked.begin(), as_asked.end());
  return answer;
}

namespace {

/// USD/h of the cheapest offer that is what is asked for; infinite if no catalog has it.
double least_usd(const AskedResources& asked, const std::string& gpu) {
  double least = std::numeric_limits<double>::infinity();
  try {
    for (const LikeOffer& offer : task_offers(asked, gpu).offers)
      if (offer.asked) least = std::min(least, offer.usd_per_hour);
  } catch (const ConfigError&) {  // no catalog has it
  }
  return least;
}

}  // namespace

AskedResources read_priced_task(const std::string& file, const std::string& gpu) {
  constexpr int kMostRead = 32;
  std::vector<Alternative> all;
  int choices = 1;  // a choice may have choices of its own
  bool sets = false, lists = false, bare = false;
  for (int i = 0; i < std::min(choices, kMostRead); ++i) {
    Alternative one{read_task_file(file, i)};
    choices = std::max(choices, one.asked.choices);
    for (const AskedResources::Taken& of : one.asked.path) (of.by_preference ? lists : sets) = true;
    if (one.asked.gpus_per_node == 0 && one.asked.instance.empty()) {
      bare = true;
      continue;
    }
    if (choices > 1) one.usd_per_hour = least_usd(one.asked, gpu);
    all.push_back(std::move(one));
  }
  if (all.empty()) throw ConfigError(file + ": none of its alternatives asks for a GPU");
  AskedResources best = best_of(all, 0).asked;
  if (choices == 1) return best;
  best.notes.push_back(fmt::format("of several alternatives the {} is taken{}",
                                   !lists  ? "cheapest"
                                   : !sets ? "first with a price"
                                           : "cheapest of each set and the first with a price of each list",
                                   choices > kMostRead ? fmt::format(", of the first {}", kMostRead) : ""));
  if (bare) best.notes.emplace_back("alternatives without a GPU are left out");
  return best;
}

}  // namespace ganymede::studies
