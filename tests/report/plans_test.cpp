// A plan on the terminal, as CSV and on the page: the same Pareto rule, the chosen batch size, and marks for doubtful
// values.

#include "report/plans.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "common/json_value.hpp"
#include "report/page.hpp"
#include "report/plan_answer.hpp"
#include "report/results.hpp"

namespace ganymede::report {
namespace {
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBatches = "batches_per_gpu";

Json row(const std::string& instance, double hours, double usd, double at_worst, int batch) {
  Json out = a_plan()["chosen"];
  out.update({{"instance", instance},
              {"gpus_per_node", 4},
              {"part_of_instance", false},
              {"batch_per_gpu", batch},
              {"usd_per_hour", "1.00"},
              {"prices_as_of", "2026-07-20"},
              {"risk", "none"},
              {"losses_mean", 0.0},
              {"chosen", false},
              {"time_s", {{"median", hours * 3600}, {"interval", {hours * 3600, hours * 3600}}}},
              {"usd", {{"median", usd}, {"interval", {usd, at_worst}}, {"at_worst_prices", at_worst}}}});
  out["price"] = {{"usd_per_hour", "1.00"}, {"as_of", "2026-07-20"}, {"source", "a list"}, {"factors", {1.0, 1.0}}};
  out["price"]["doubt"] = nullptr;
  return out;
}

/// By their medians, no candidate of the four is beaten in both time and cost. "quick" misses the goals, and at the
/// high end of its price "doubtful" is slower and dearer than "brisk": "brisk" and "cheap" are left, and the cheapest
/// is chosen.
Json a_searched_plan() {
  Json cheap = row("cheap", 3, 5, 5, 64), brisk = row("brisk", 1, 10, 10, 32);
  Json doubtful = row("doubtful", 2, 6, 12, 32), quick = row("quick", 0.5, 20, 20, 32);
  cheap["chosen"] = cheap["part_of_instance"] = true;
  doubtful["price"]["doubt"] = "undated";
  doubtful["risk"] = "assumed";
  quick["verdict"] = "misses";
  quick["reason"] = "it does";
  Json plan = a_plan();
  plan["request"].update({{kBatches, {32, 64}},
                          {"trace", "recorded:x"},
                          {"objective", "cost"},
                          {"deadline", nullptr},
                          {"deadline_s", nullptr},
                          {"start", nullptr},
                          {"budget_usd", nullptr},
                          {"catalogs", {"gcp"}},
                          {"seeds", 5},
                          {"certainty", 0.9}});
  plan["searched"] = {{"candidates", 4}, {"too_slow", 0},   {"too_dear", 0}, {"beaten", 0},
                      {"simulated", 4},  {"impossible", 0}, {"meeting", 3}};
  plan["chosen"] = cheap;
  plan["chosen"]["warnings"] = Json::array();
  plan["best_of_each"] = Json::array({cheap});
  plan["pareto"] = Json::array({brisk, cheap});
  plan["near_misses"] = Json::array({quick});
  plan["left_out"] = plan["cannot_run"] = Json::array();
  plan["simulated"] = Json::array({cheap, brisk, doubtful, quick});
  return plan;
}

documents::PlanRow chosen_of(const Json& plan) { return *documents::plan_in(plan).chosen; }

std::string table_of(const std::string& page, const std::string& id) {
  const std::size_t start = page.find("<table id=\"" + id + "\"");
  return start == std::string::npos ? "" : page.substr(start, page.find("</table>", start) - start);
}

TEST(PlanReport, ParetoIsThePlansOwnOnThePageToo) {
  const Json plan = a_searched_plan();
  EXPECT_THAT(plan_text(plan), HasSubstr("Nothing that meets the goals is both faster and cheaper than one of these, "
                                         "doubtful prices taken at the high end of what they may be:"));
  EXPECT_THAT(pareto_of(candidates_in(plan)), ElementsAre(1, 0));
  const std::string page = report_page(plan);
  const std::string listed = table_of(page, "pareto-table");
  EXPECT_THAT(listed, AllOf(HasSubstr(std::string(kPlanPareto)), HasSubstr("1 x brisk"), HasSubstr("1 x cheap"),
                            Not(HasSubstr("doubtful,")), Not(HasSubstr("quick"))));
  EXPECT_LT(listed.find("1 x brisk"), listed.find("1 x cheap"));
  EXPECT_THAT(page, HasSubstr("\"ranked_usd\":{\"values\":[5,10,12,null]}"));  // by which the script finds it anew
  EXPECT_THAT(page, HasSubstr("by the plan's own rule"));
}

// Two of the three cards are one candidate. The sentence says what is rented, the range, the probability, rounded down,
// and what a little more money buys: 10 USD for 5 USD are no 5 %, but the report shows what the plan lists. No digit
// is finer than the prediction.
TEST(PlanReport, EndsInASentenceAndCards) {
  Json plan = a_searched_plan();
  plan["request"].update({{"deadline", "4h"}, {"deadline_s", 14400.0}, {"budget_usd", "20.00"}});
  Json cheap = plan["chosen"], brisk = plan["pareto"][0];
  cheap["probability"] = 0.90199;
  brisk["probability"] = 0.99951;
  cheap["time_s"]["interval"] = {9000.0, 12600.0};
  plan["chosen"] = cheap;
  plan["more_money"] = Json::array({brisk});
  plan["cards"] = {{"cheapest", cheap}, {"balanced", brisk}, {"safest", brisk}};
  const std::string sentence =
      "Rent 1 x cheap, 4 GPUs of each (4 x V100, batch 64) at gcp us-central1: 5.00 USD in 3 h (2.5 .. 3.5 h). The "
      "probability to keep to 4 h and 20 USD is 90 %. For 5.00 USD more (+100.0 %), 1 x brisk (4 x V100, batch 32) at "
      "gcp us-central1 takes 60 min instead of 3 h, and the goals are met in > 99 % instead of 90 %.";
  EXPECT_EQ(plan_answer(documents::plan_in(plan)), sentence);
  for (const PlanDetail detail : {PlanDetail::answer, PlanDetail::all})
    EXPECT_THAT(plan_text(plan, kAnyWidth, detail), testing::EndsWith("\n" + sentence + "\n"));
  const auto cards = plan_cards(documents::plan_in(plan));
  ASSERT_EQ(cards.size(), 2U);
  EXPECT_EQ(cards[0].name, "cheapest");
  EXPECT_EQ(cards[1].name, "balanced, safest");
  EXPECT_EQ(cards[1].about, "the best trade between time and money; the most probable, known risks first");
  EXPECT_EQ(cards[0].hourly, "1.00 USD/h of 2026-07-20");
  Json aged = plan;
  aged["request"]["prices_aged_to"] = "2026-07-21";
  EXPECT_EQ(plan_cards(documents::plan_in(aged))[0].hourly, "1.00 USD/h of 2026-07-20, 1 day old");
  EXPECT_EQ(price_age("2026-07-20", "2026-08-20"), "31 d");
  EXPECT_EQ(price_age("2026-07-20", "2026-11-20"), "4 mo");
  EXPECT_EQ(price_age("undated", "2026-11-20"), "undated");
  EXPECT_THAT(report_page(plan),
              AllOf(HasSubstr("<dt>balanced, safest<small>the best trade"), HasSubstr("class=answer>Rent 1 x cheap"),
                    HasSubstr("<small>1.00 USD/h of 2026-07-20</small>"), HasSubstr("Ranges hold about 90 %"),
                    HasSubstr("on machines unlike those that the model was made with fewer hold")));
  for (const std::size_t width : {80U, 140U}) {
    std::istringstream lines(plan_text(plan, width, PlanDetail::answer));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << line;
  }
  plan["more_money"] = Json::array();
  EXPECT_THAT(plan_answer(documents::plan_in(plan)),
              testing::EndsWith(" is 90 %. Up to 5 % more money buys nothing better."));
  plan["request"]["objective"] = "time";
  EXPECT_THAT(plan_answer(documents::plan_in(plan)), testing::EndsWith(" is 90 %."));
  plan["chosen"] = plan["pareto"][0];
  plan["chosen"]["warnings"] = Json::array();
  ASSERT_EQ(plan_cards(documents::plan_in(plan)).size(), 2U);
  EXPECT_EQ(plan_cards(documents::plan_in(plan))[0].name, "fastest, balanced, safest");
  plan["chosen"] = nullptr;
  EXPECT_EQ(plan_answer(documents::plan_in(plan)), "Nothing that was searched meets the goals.");
  plan["searched"]["candidates"] = 0;
  plan["left_out"] = Json::array({"1 instance type, too small: tiny"});
  EXPECT_EQ(plan_answer(documents::plan_in(plan)),
            "Nothing that was searched can run it: 1 instance type, too small: tiny.");
  EXPECT_THAT(plan_text(plan, 200, PlanDetail::answer),
              HasSubstr("\nNothing that was searched can run it:\nleft out: 1 instance type, too small: tiny\n"));
}

// By Wilson's formula, with z = 1.96 and z²/20 = 0.192: around (0.9999 + 0.096) / 1.192 = 0.919 and (0.97 + 0.096)
// / 1.192 = 0.894, 1.96 (p (1 - p) / 20 + 0.192 / 80)^½ / 1.192 = 0.081 and 0.102; around 0.5 in 20,000 runs 0.0069.
TEST(PlanReport, SaysWhatSoFewRunsCanShow) {
  Json plan = a_searched_plan();
  plan["request"].update({{"deadline", "4h"}, {"deadline_s", 14400.0}, {"budget_usd", nullptr}});
  Json& row = plan["chosen"];
  row.update({{"risk", "assumed"}, {"seeds", 20}, {"probability", 0.9999}, {"losses_mean", 0.35}});
  EXPECT_EQ(plan_probability(chosen_of(plan)), "all of 20");
  EXPECT_EQ(plan_probability_of_runs(chosen_of(plan)), "all of 20 runs");
  EXPECT_THAT(plan_answer(documents::plan_in(plan)),
              AllOf(HasSubstr("The probability to keep to 4 h is > 99 % (83 to 100 %, 20 runs)."),
                    HasSubstr("is assumed, not measured: 0.35 a run.")));
  row["probability"] = 0.97;  // 19.4 of 20
  EXPECT_EQ(plan_probability_of_runs(chosen_of(plan)), "97 % of 20 runs");
  EXPECT_THAT(plan_answer(documents::plan_in(plan)),
              HasSubstr("The probability to keep to 4 h is 97 % (79 to 100 %, 20 runs)."));
  row.update({{"probability_runs", 20000}, {"probability", 0.5}});
  EXPECT_THAT(plan_answer(documents::plan_in(plan)),
              HasSubstr("The probability to keep to 4 h is 50 % (49 to 51 %, 20000 runs)."));
  row["losses_mean"] = 152.4;
  EXPECT_EQ(plan_interruptions(chosen_of(plan)), "152 a run");
  row["losses_mean"] = 99.7;
  EXPECT_EQ(plan_interruptions(chosen_of(plan)), "100 a run");
  row.update({{"risk", "none"}, {"probability", 0.9999}});
  EXPECT_EQ(plan_probability(chosen_of(plan)), "> 99 %");
}

// By its median "doubtful" is cheaper than the card, and dearer at the high end of its price.
TEST(PlanReport, SaysWhyTheCheapestIsNotTheLeastMedian) {
  Json plan = a_searched_plan();
  const Json cheap = plan["chosen"];
  plan["cards"] = {{"cheapest", cheap}, {"balanced", cheap}, {"safest", cheap}};
  EXPECT_EQ(plan_cheaper_if(documents::plan_in(plan)), "");
  plan["simulated"][2]["usd"]["median"] = 4.0;
  const std::string why =
      "1 x doubtful (4 x V100, batch 32) at gcp us-central1 is cheaper only if its doubtful price holds: 4.00 USD, but "
      "12.00 USD at the high end of what that price may be, where the cheapest here costs 5.00 USD.";
  EXPECT_EQ(plan_cheaper_if(documents::plan_in(plan)), why);
  EXPECT_THAT(plan_text(plan, kAnyWidth, PlanDetail::answer), HasSubstr(why));
  EXPECT_THAT(report_page(plan), HasSubstr(why));
}

// Nodes on spot beside some on demand are another offer than spot alone.
TEST(PlanReport, APlaceIsNotListedTwice) {
  Json plan = a_searched_plan();
  plan["chosen"].update({{"market", "spot"}, {"nodes", 2}, {"on_demand_nodes", 0}});
  const documents::PlanRow spot = chosen_of(plan);
  documents::PlanRow mixed = spot;
  mixed.on_demand_nodes = 1;
  EXPECT_EQ(plan_place(spot), "gcp us-central1 spot");
  EXPECT_EQ(plan_place(mixed), "gcp us-central1 spot and on demand");
  EXPECT_EQ(plan_rented(mixed, documents::plan_in(plan).request),
            "2 x cheap, 1 on demand, 4 GPUs of each (4 x V100, batch 64)");
}

// On a terminal the answer fits a screen; the rest stands behind --verbose.
TEST(PlanReport, IsShortUnlessAskedForMore) {
  Json plan = a_searched_plan();
  plan["chosen"]["warnings"] = {"step times on V100 are not measured: they are predicted", "unconfirmed: a: b",
                                "unconfirmed: c: d"};
  const std::string text = plan_text(plan, 80, PlanDetail::answer), all = plan_text(plan, 80);
  EXPECT_THAT(text,
              AllOf(HasSubstr("warning: step times on V100 are not measured\n"),
                    HasSubstr("warning: facts of the catalog without a good source: 2\n"), HasSubstr("--verbose"),
                    Not(HasSubstr("Nothing that meets")), Not(HasSubstr("Near misses")), Not(HasSubstr("CHOSEN"))));
  EXPECT_THAT(all, AllOf(HasSubstr("unconfirmed: c: d"), HasSubstr("Nothing that meets"), HasSubstr("Near misses"),
                         HasSubstr("CHOSEN"), Not(HasSubstr("--verbose"))));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 25);
}

// Without a goal a probability is that of an end, and not of goals that nobody has set.
TEST(PlanReport, WithoutGoalsCandidatesFinish) {
  Json plan = a_searched_plan();
  plan["request"].update({{"deadline", nullptr}, {"deadline_s", nullptr}, {"budget_usd", nullptr}});
  EXPECT_THAT(plan_text(plan), AllOf(HasSubstr("finish with a probability of"), Not(HasSubstr("goals met"))));
  EXPECT_THAT(report_page(plan), HasSubstr("finishes"));
  plan["request"]["fid"] = 30.0;
  EXPECT_EQ(plan_outcome(documents::plan_in(plan).request), "goals met");
}

// A search predicts many steps. Those of the candidates in the tables are printed, and how the choice's was found.
TEST(PlanReport, ListsTheStepsOfWhatItShows) {
  Json plan = a_searched_plan();
  plan["steps"] = Json::array();
  for (const int batch : {32, 64, 128})
    plan["steps"].push_back({{"gpu", "V100"},
                             {"batch_per_gpu", batch},
                             {"seconds", batch * 0.001},
                             {"interval_s", {batch * 0.0005, batch * 0.002}},
                             {"inputs", "kernel model"},
                             {"how", "rule of " + std::to_string(batch)}});
  EXPECT_THAT(plan_text(plan), AllOf(HasSubstr("32 ms"), HasSubstr("64 ms"), Not(HasSubstr("256 ms")),
                                     HasSubstr("The choice's: rule of 64\n"), Not(HasSubstr("rule of 32"))));
  for (Json& step : plan["steps"]) step["inputs"] = "measured";
  EXPECT_THAT(plan_text(plan), Not(HasSubstr("Steps of one GPU")));
}

TEST(PlanReport, ByCarbonWhatIsNotKnownIsNotCompared) {
  Json plan = a_searched_plan();
  plan["request"]["objective"] = "carbon";
  plan["simulated"][0]["kg_co2e"] = {{"median", 1.0}, {"interval", {1.0, 1.0}}};
  EXPECT_THAT(pareto_of(candidates_in(plan)), ElementsAre(0));
}

TEST(PlanReport, NamesTheBatchWhereSeveralWereSearched) {
  Json plan = a_searched_plan();
  const std::string named = "1 x cheap, 4 GPUs of each, batch 64";
  EXPECT_THAT(plan_text(plan),
              AllOf(HasSubstr("CHOSEN: gcp us-central1, 1 x cheap, 4 GPUs of each (4 x V100, batch 64), nccl"),
                    HasSubstr("1 x brisk (4 x V100, batch 32)"), HasSubstr("1 x quick (4 x V100, batch 32)")));
  EXPECT_THAT(report_page(plan), AllOf(HasSubstr("gcp us-central1, " + named), HasSubstr("<td>" + named),
                                       HasSubstr("1 x quick (4 x V100, batch 32)")));
  const std::string csv = plan_csv(plan);
  EXPECT_THAT(csv.substr(0, csv.find('\r')), testing::EndsWith("chosen,batch_per_gpu,fid_images,fid_never"));
  EXPECT_THAT(csv, AllOf(HasSubstr("meets,true,64,,\r\n"), HasSubstr("meets,false,32,,\r\n")));
  plan["request"][kBatches] = {64};
  EXPECT_THAT(plan_text(plan), Not(HasSubstr("batch 64)")));
  EXPECT_THAT(report_page(plan), Not(HasSubstr("batch 64)")));
}

TEST(PlanReport, ThePageMarksWhatIsDoubtfulAndSaysWhatTheMarksMean) {
  Json plan = a_searched_plan();
  const std::string page = report_page(plan);
  EXPECT_THAT(table_of(page, "candidates"), AllOf(HasSubstr("6.00 (?)"), HasSubstr("100.0 % (!)")));
  EXPECT_THAT(page,
              AllOf(HasSubstr("(!) " + std::string(kAssumedRisk)), HasSubstr("(?) " + std::string(kDoubtfulPrice))));
  EXPECT_THAT(page, HasSubstr("\"doubtful\":{\"values\":[0,0,1,0]}"));
  plan["simulated"].erase(2);
  EXPECT_THAT(report_page(plan), AllOf(Not(HasSubstr("(!) how often")), Not(HasSubstr("(?) a price"))));
}

// Images over the whole time would hold the wait for nodes: three hours here, and a million images.
TEST(PlanReport, ARateIsThatOfTrainingOrNotKnown) {
  Json plan = a_searched_plan();
  EXPECT_TRUE(std::isnan(candidates_in(plan)[0].images_per_s));
  EXPECT_THAT(report_page(plan), Not(HasSubstr("chart-scaling")));
  plan["simulated"][0].update({{"gpus", 1}, {"images_per_s", 500.0}});
  plan["simulated"][1].update({{"gpus", 2}, {"images_per_s", 900.0}});
  EXPECT_DOUBLE_EQ(candidates_in(plan)[0].images_per_s, 500);
  EXPECT_THAT(report_page(plan), AllOf(HasSubstr("chart-scaling"), HasSubstr("while it trains")));
}

}  // namespace
}  // namespace ganymede::report
