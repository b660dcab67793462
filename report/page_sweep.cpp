// The answer of a sweep's page: what was compared, which to take, and why that is cheaper or faster than the next.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "common/json_value.hpp"
#include "common/knee.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"

namespace ganymede::report {
namespace {
using Member = std::string ReportCandidate::*;

/// A property that tells candidates from each other, with its name for one and for several.
struct Axis {
  Member member;
  const char *one, *many;
};
constexpr std::array kAxes = {Axis{&ReportCandidate::infrastructure, "place", "places"},
                              Axis{&ReportCandidate::rented, "set of nodes", "sets of nodes"},
                              Axis{&ReportCandidate::gpu, "kind of GPU", "kinds of GPU"},
                              Axis{&ReportCandidate::scheme, "all-reduce scheme", "all-reduce schemes"},
                              Axis{&ReportCandidate::policy, "policy", "policies"}};

/// The number of different values that a member has among the candidates.
std::size_t different(const PageInput& page, Member member) {
  std::set<std::string> values;
  for (const ReportCandidate& candidate : page.candidates) values.insert(candidate.*member);
  values.erase("none");
  return values.size();
}

/// The properties that tell a candidate from the others, for example "aws us-east-1, 2 x p3.2xlarge, ring".
std::string difference_name(const PageInput& page, const ReportCandidate& candidate) {
  std::string out;
  for (const Axis& axis : kAxes)
    if (axis.member != &ReportCandidate::gpu && different(page, axis.member) > 1 && !(candidate.*axis.member).empty() &&
        candidate.*axis.member != "none")
      out += (out.empty() ? "" : ", ") + candidate.*axis.member;
  return out.empty() ? candidate.infrastructure + ", " + candidate.rented : out;
}

/// "progressive-gan (fp32), 150,000,000 images, batch 16 a GPU. Compared: 12 configurations, of 12 policies; 20 seeds
/// of each."
std::string compared_in(const PageInput& page) {
  std::string out = trained_in(page.runs.front());
  std::string parts;
  std::size_t combinations = 1;
  for (const Axis& axis : kAxes) {
    const std::size_t number = different(page, axis.member);
    if (number < 2) continue;
    // A set of nodes has its kind of GPU.
    if (axis.member != &ReportCandidate::gpu) combinations *= number;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", number, axis.many);
  }
  const std::size_t all = page.candidates.size();
  if (all > 1) {
    out += fmt::format("Compared: {} configurations", all);
    if (!parts.empty())
      out += fmt::format(" of {}{}", parts, combinations == all ? "" : ", not all of which go together");
    const int runs = page.candidates.front().runs;
    out += runs > 1 ? fmt::format("; {} seeds of each.", runs) : ".";
  }
  // The names in the answer leave this out.
  const ReportCandidate& first = page.candidates.front();
  const bool one_place = different(page, &ReportCandidate::infrastructure) == 1;
  const bool one_shape = different(page, &ReportCandidate::rented) == 1;
  if (one_place || one_shape)
    out += fmt::format(" All{}{}.", one_shape ? " on " + escaped(first.rented) : "",
                       one_place ? " at " + escaped(first.infrastructure) : "");
  return out;
}

/// The candidates with a finite value, the least first.
std::vector<const ReportCandidate*> in_order(const PageInput& page, Estimate ReportCandidate::*member) {
  std::vector<const ReportCandidate*> order;
  for (const ReportCandidate& candidate : page.candidates)
    if (std::isfinite((candidate.*member).middle)) order.push_back(&candidate);
  std::stable_sort(order.begin(), order.end(), [&](const ReportCandidate* a, const ReportCandidate* b) {
    return (a->*member).middle < (b->*member).middle;
  });
  return order;
}

/// Why one candidate costs less than another: fewer GPU-hours and of what, or cheaper ones. Empty if neither is known.
std::string because(const ReportCandidate& one, const ReportCandidate& other) {
  const auto hours = [](const ReportCandidate& candidate) {
    return std::accumulate(candidate.gpu_seconds.begin(), candidate.gpu_seconds.end(), 0.0) / 3600;
  };
  const double here = hours(one), there = hours(other);
  if (!one.has_ledger || !other.has_ledger || here <= 0 || there <= 0 || one.usd.middle <= 0) return "";
  const double ratio = other.usd.middle / one.usd.middle;
  if (there / here < std::sqrt(ratio))
    return fmt::format(": a GPU-hour costs {} USD there instead of {}", spoken_usd(one.usd.middle / here),
                       spoken_usd(other.usd.middle / there));
  std::size_t largest = 0;
  for (std::size_t use = 1; use < kGpuUseNames.size(); ++use)
    if (other.gpu_seconds.at(use) - one.gpu_seconds.at(use) >
        other.gpu_seconds.at(largest) - one.gpu_seconds.at(largest))
      largest = use;
  std::string name(kGpuUseNames.at(largest));
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format(": it takes {:.2g} GPU-hours instead of {:.2g}, most of the difference being {}{}", here, there,
                     name, name == "lost" ? " work" : "");
}

/// The candidate with the least value and the next one, how far they are apart, and why. The candidate to take is not
/// named again.
std::string winner(const PageInput& page, const ReportCandidate* pick, Estimate ReportCandidate::*member) {
  const std::vector<const ReportCandidate*> order = in_order(page, member);
  const bool again = !order.empty() && order[0] == pick, money = member == &ReportCandidate::usd;
  if (order.empty() || (again && order.size() == 1)) return "";
  const ReportCandidate& first = *order[0];
  const Estimate& best = first.*member;
  std::string out = again ? (money ? "It costs " : "It takes ")
                          : fmt::format("{}: <strong>{}</strong>, {}", money ? "Cheapest" : "Fastest",
                                        escaped(difference_name(page, first)),
                                        money ? with_range(best, spoken_usd, " USD") : with_range(best, spoken_time));
  if (order.size() == 1) return out + ".";
  out += again ? "" : "; ";
  const ReportCandidate& second = *order[1];
  const Estimate& next = second.*member;
  if (next.middle > best.middle)
    out += fmt::format("{:.2g} % less {}than the next, {}{}", 100 * (1 - best.middle / next.middle),
                       again ? "" : (money ? "money " : "time "), escaped(difference_name(page, second)),
                       money ? because(first, second) : "");
  else
    out += fmt::format("as much as {}", escaped(difference_name(page, second)));
  return out + (best.high < next.low ? ". Their ranges are apart." : ". Their ranges overlap: the order is not sure.");
}

/// Says that ranges of configurations whose interruptions were drawn only once lack their luck.
std::string one_draw(const PageInput& page, const documents::Result& run) {
  const bool once = std::all_of(page.candidates.begin(), page.candidates.end(),
                                [](const ReportCandidate& candidate) { return candidate.runs == 1; });
  if (!once || run.risk == "none") return "";
  return " Each configuration is one run: the luck of its interruptions is not in them. More seeds show it.";
}

/// The share of runs that must meet the goals for a candidate to be taken, as of a plan.
constexpr double kCertainty = 0.9;

/// Which candidate to take: the cheapest of those that keep to the goals, or without goals the balance of time and
/// cost. Null if there is none.
const ReportCandidate* pick_of(const PageInput& page, bool goals) {
  if (goals) {
    for (const ReportCandidate* candidate : in_order(page, &ReportCandidate::usd))
      if (candidate->met_share >= kCertainty) return candidate;
    return nullptr;
  }
  std::vector<std::pair<double, double>> front;
  for (const std::size_t i : page.pareto)
    front.emplace_back(page.candidates[i].time_s.middle, page.candidates[i].ranked_usd);
  return front.empty() ? nullptr : &page.candidates[page.pareto[knee_of(front)]];
}

std::string pick_html(const PageInput& page, const ReportCandidate* pick, bool goals) {
  if (pick == nullptr)
    return goals ? fmt::format("Take none: nothing meets the goals in {:.0f} % of its runs.", 100 * kCertainty) : "";
  const bool cheapest = pick == in_order(page, &ReportCandidate::usd).front(),
             fastest = pick == in_order(page, &ReportCandidate::time_s).front();
  const char* why = goals                 ? "the cheapest that keeps to the goals"
                    : cheapest && fastest ? "the cheapest and the fastest"
                    : cheapest            ? "the cheapest"
                    : fastest             ? "the fastest and the best trade between time and money"
                                          : "the best trade between time and money";
  return fmt::format("Take <strong>{}</strong>: {} in {}, {}.", escaped(difference_name(page, *pick)),
                     with_range(pick->usd, spoken_usd, " USD"), with_range(pick->time_s, spoken_time), why);
}

}  // namespace

std::string with_range(const Estimate& estimate, std::string (*shown)(double), const char* unit) {
  if (!std::isfinite(estimate.middle)) return "no price";
  std::string out = shown(estimate.middle) + unit;
  if (std::isfinite(estimate.low) && std::isfinite(estimate.high))
    out += spoken_range(estimate.low, estimate.high, shown);
  return out;
}

std::string answer_of_sweep(const PageInput& page) {
  if (page.candidates.empty()) return "";
  const bool goals = goals_of(page).any();
  const ReportCandidate* pick = pick_of(page, goals);
  std::string out = "<p class=about>" + compared_in(page) + "</p>\n<p class=answer>";
  for (const std::string& line : {pick_html(page, pick, goals), winner(page, pick, &ReportCandidate::usd),
                                  winner(page, pick, &ReportCandidate::time_s)})
    if (!line.empty()) out += line + "<br>";
  out += "</p>\n<ul class=badges>\n";
  const ReportCandidate& shown = pick == nullptr ? page.candidates.front() : *pick;
  if (goals) out += share_badge(shown.met_share, "goals met in " + shown.met + " of its runs");
  return out + badges_of_run(*shown.run) + "</ul>\n<p class=about>" + range_level(*shown.run) +
         one_draw(page, *shown.run) + "</p>\n";
}

}  // namespace ganymede::report
