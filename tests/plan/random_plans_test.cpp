// Random requests on random platforms: what a search leaves out changes nothing, and what `why` names is what a plan
// takes there.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/json.hpp"
#include "common/random.hpp"
#include "plan/why.hpp"
#include "plans.hpp"
#include "support/when.hpp"

namespace ganymede::plan {
namespace {

/// Draws platforms of one-GPU nodes in three regions, and requests that search them. Prices are few round numbers, so
/// that regions often cost the same, and spot nodes that are taken back early may be free for any time.
class RandomPlans : public Plans {
 protected:
  /// With `batches`, a second batch size, and starts whose times are drawn.
  void draw(std::uint64_t seed, bool batches = false) {
    random_ = RandomStream(seed, "random plans");
    Json platform = Json::parse(made_up_platform());
    for (const char* instance : {"one", "other"}) {
      Json& prices = platform["instances"][instance]["prices"] = Json::array();
      for (const char* region : {"room-1", "room-2", "room-3"})
        for (const char* market : {"on-demand", "spot"}) {
          if (!prices.empty() && below(3) == 0) continue;
          const bool spot = std::string_view(market) == "spot";
          prices.push_back({{"region", region},
                            {"market", market},
                            {"per_hour", fmt::format("{:.2f}USD/h", (spot ? 1 : 3) + 0.5 * below(3))},
                            {"as_of", "2026-11-01"}});
          if (spot && below(3) > 0) prices.back()["interrupted_per_month"] = pick({0.0, 0.5, 0.999});
        }
    }
    if (const std::string free = pick({std::string(), std::string("10min"), std::string("1h"), std::string("24h")});
        !free.empty())
      platform["billing"]["free_if_interrupted_within"] = free;
    if (batches) {
      platform["provisioning"] = {{"boot", {{"median", "90s"}, {"spread", 0.2}}},
                                  {"image_pull", {{"median", "60s"}, {"spread", 0.3}}},
                                  {"framework_start", {{"median", "15s"}, {"spread", 0.2}}}};
      traces::StepTrace trace = constant_trace(40);
      trace.batches.push_back(
          made_up_trace(std::vector<double>(40, pick({1.2e-3, 1.9e-3, 2e-3, 2.3e-3})), "GPU-X", 128).batches.front());
      folder_.add("t.json", traces::write_step_trace(trace));
    }
    folder_.add("lab.json", platform.dump());
    content["workload"]["images"] = 23'040'000 * pick({std::int64_t{1}, std::int64_t{6}, std::int64_t{200}});
    content["search"]["instances"] = {"one", "other"};
    content["search"]["max_gpus"] = 1;
    content["search"]["checkpoints"] = {"1h"};
    content["objective"] = pick({std::string("cost"), std::string("time"), std::string("risk-neutral")});
    content.erase("deadline");
    if (below(2) == 0) content["deadline"] = pick({std::string("8h"), std::string("60h")});
  }
  int below(int count) { return static_cast<int>(random_.uniform() * count); }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }
  double pick(std::initializer_list<double> from) { return pick(std::vector<double>(from)); }
  std::string pick(std::initializer_list<std::string> from) { return pick(std::vector<std::string>(from)); }
  std::int64_t pick(std::initializer_list<std::int64_t> from) { return pick(std::vector<std::int64_t>(from)); }

  RandomStream random_{0, ""};
};

/// What a row of a plan rents, and for what.
std::string rented(const Json& row) {
  if (row.is_null()) return "nothing";
  return fmt::format("{} {} {} {} {} {:.6f}", row["instance"].dump(), row["region"].dump(), row["market"].dump(),
                     row["policy"].dump(), row["nodes"].dump(), row["usd"]["median"].get<double>());
}

/// The best candidate of each catalog and market, and of spot nodes beside some on demand.
std::map<std::tuple<std::size_t, platforms::Market, bool>, std::optional<std::size_t>> best_of_offers(
    const Request& request, const Plan& plan) {
  std::map<std::tuple<std::size_t, platforms::Market, bool>, std::optional<std::size_t>> out;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (plan.runs[i].verdict != Verdict::meets) continue;
    const PlanCandidate& one = plan.candidates.all[i];
    auto& best = out[{one.catalog, one.market, one.on_demand_nodes > 0}];
    if (!best || objective_of(request, plan.runs[i]) < objective_of(request, plan.runs[*best])) best = i;
  }
  return out;
}

TEST_F(RandomPlans, AreThoseOfExhaustiveSearch) {
  NOT_SANITIZED("simulates every candidate of some plans");
  int some = 0;
  std::size_t fewer = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    draw(seed, seed >= 30);
    if (seed >= 22) {  // several nodes, of which some may be on demand, and a budget
      content["search"]["max_gpus"] = 2;
      content["search"]["seeds"] = seed < 30 ? 7 : 20;  // from ten on, five may beat a candidate
      content["workload"]["images"] = 46'080'000;
      content["budget"] = pick({std::string("5USD"), std::string("9USD"), std::string("100USD")});
    }
    const Request of = request();
    PlanOptions options;
    const Plan quick = make_plan(of, options);
    options.effort = Effort::exhaustive;
    const Plan all = make_plan(of, options);
    ASSERT_EQ(quick.candidates.all.size(), all.candidates.all.size());
    EXPECT_EQ(quick.best, all.best) << seed << " " << content.dump();
    EXPECT_EQ(quick.best_of_known_risk, all.best_of_known_risk) << seed;
    EXPECT_EQ(quick.pareto, all.pareto) << seed;
    EXPECT_EQ(quick.untried, 0U);
    const auto of_all = best_of_offers(of, all);
    for (const auto& [offer, best] : best_of_offers(of, quick))
      EXPECT_EQ(objective_of(of, quick.runs[*best]), objective_of(of, all.runs[*of_all.at(offer)])) << seed;
    fewer += all.simulated - quick.simulated;
    some += all.best ? 1 : 0;
    for (std::size_t i = 0; i < all.runs.size(); ++i)
      if (all.runs[i].simulated()) {
        EXPECT_GE(all.runs[i].usd_at_worst, all.candidates.all[i].bounds.usd_at_worst)
            << seed << " " << label_of(of, all.candidates.all[i]);
      }
  }
  EXPECT_GT(some, 15);
  EXPECT_GT(fewer, 100U);
}

/// The nodes of a row.
std::string nodes_of(const Json& row) {
  if (row.is_null()) return "nothing";
  return fmt::format("{} {} {} {} {}", row["instance"].dump(), row["region"].dump(), row["market"].dump(),
                     row["nodes"].dump(), row["on_demand_nodes"].dump());
}

class RandomWhys : public RandomPlans {
 protected:
  /// The row that a plan among all candidates chooses with an assumption at a value, knowing nothing before.
  static Json chosen_at(const KnownPlan& known, Assumption assumption, double value) {
    const Request changed =
        with_assumption(known.request, known.plan.candidates.all[*known.plan.best], assumption, value);
    const Plan there = make_plan(changed, {.jobs = 2});
    return there.best ? Json(documents::row_json(row_of(changed, there, *there.best))) : Json();
  }
  /// Compares what `why` says with whole plans at the value that it names and below it by three times its tolerance,
  /// because bills of whole seconds let equals take turns, or at the highest that it has tried. Returns how many values
  /// it names.
  int compare(std::uint64_t seed) {
    const Json file = json();
    if (file["chosen"].is_null()) return 0;
    const KnownPlan known = read_plan(JsonNode::load(folder_.add("plan.json", file.dump())));
    int named = 0;
    for (const Sensitivity& answer : why(known, 2)) {
      if (!answer.without.empty()) continue;
      const auto say = [&] {
        return fmt::format("{} {} {}", seed, to_string(answer.assumption), answer.threshold.value_or(answer.tried));
      };
      const bool boot = answer.assumption == Assumption::boot;
      const double below = !answer.threshold ? answer.tried : boot ? *answer.threshold - 3 : *answer.threshold / 1.0006;
      if (below > answer.now) {
        EXPECT_EQ(nodes_of(chosen_at(known, answer.assumption, below)), nodes_of(file["chosen"])) << say();
      }
      if (!answer.threshold) continue;
      const Json chosen = chosen_at(known, answer.assumption, *answer.threshold);
      EXPECT_EQ(rented(Json(answer.next)), rented(chosen)) << say();
      EXPECT_NE(nodes_of(chosen), nodes_of(file["chosen"])) << say();
      if (!chosen.is_null()) {
        EXPECT_EQ(Json(answer.next)["scheme"], chosen["scheme"]);
      }
      ++named;
    }
    return named;
  }
};

// Runs are short, and few seeds tell them apart.
TEST_F(RandomWhys, AreThoseOfWholePlans) {
  NOT_SANITIZED("repeats whole plans, which other tests make once");
  int named = 0;
  for (std::uint64_t seed = 0; seed < 14; ++seed) {
    draw(seed);
    content["workload"]["images"] = 46'080'000;
    content["search"]["seeds"] = 5;
    content["search"]["markets"] = seed < 4 ? Json{"on-demand"} : Json{"on-demand", "spot"};
    if (seed >= 10) content["search"]["max_gpus"] = 2;
    named += compare(seed);
  }
  EXPECT_GT(named, 20);
}

}  // namespace
}  // namespace ganymede::plan
