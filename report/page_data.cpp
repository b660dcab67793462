// The data that the page's script draws, as columns, with no more digits than a picture can show.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

#include "common/json_value.hpp"
#include "common/usd.hpp"
#include "report/candidates.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"
#include "report/plan_answer.hpp"

namespace ganymede::report {
namespace {
using Out = OrderedJson;

/// The value with six digits; null if it is not finite.
Out rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  const double six = std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
  if (six == std::floor(six) && std::abs(six) < 1e15) return static_cast<std::int64_t>(six);
  return six;
}

double with_digits(double value, int digits) {
  return std::isfinite(value) ? std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr) : value;
}

/// A column of values. A value that all rows have stands once; if many rows share few values, these are listed and each
/// row has an index.
Out column(const Out& values) {
  constexpr std::size_t kRowsAValue = 8;
  std::map<std::string, std::size_t> index;
  Out words = Out::array(), rows = Out::array();
  for (const Out& value : values) {
    const auto [place, is_new] = index.try_emplace(value.dump_replacing(), index.size());
    if (is_new) words.push_back(value);
    rows.push_back(place->second);
  }
  if (words.size() == 1) return {{"all", words[0]}};
  if (!values[0].is_string() && words.size() * kRowsAValue > values.size()) return {{"values", values}};
  return {{"words", std::move(words)}, {"rows", std::move(rows)}};
}

using Candidate = const ReportCandidate&;

constexpr std::pair<const char*, std::string ReportCandidate::*> kTexts[] = {
    {"provider", &ReportCandidate::provider},    {"region", &ReportCandidate::region},
    {"where", &ReportCandidate::infrastructure}, {"market", &ReportCandidate::market},
    {"rented", &ReportCandidate::rented},        {"gpu", &ReportCandidate::gpu},
    {"scheme", &ReportCandidate::scheme},        {"policy", &ReportCandidate::policy},
    {"met_text", &ReportCandidate::met}};

/// Numbers of a candidate, and flags as 1; not finite where there is none.
const std::pair<const char*, double (*)(Candidate)> kNumbers[] = {
    {"gpus", [](Candidate one) -> double { return one.gpus; }},
    {"fewest_gpus",
     [](Candidate one) -> double { return one.fewest_gpus == one.gpus ? std::nan("") : one.fewest_gpus; }},
    {"runs", [](Candidate one) -> double { return one.runs; }},
    {"time", [](Candidate one) { return one.time_s.middle; }},
    {"time_low", [](Candidate one) { return one.time_s.low; }},
    {"time_high", [](Candidate one) { return one.time_s.high; }},
    {"usd", [](Candidate one) { return one.usd.middle; }},
    {"usd_low", [](Candidate one) { return one.usd.low; }},
    {"usd_high", [](Candidate one) { return one.usd.high; }},
    {"ranked_usd", [](Candidate one) { return one.ranked_usd; }},
    {"doubtful", [](Candidate one) -> double { return one.price_doubtful; }},
    {"assumed", [](Candidate one) -> double { return one.risk_assumed; }},
    {"spot_usd", [](Candidate one) { return one.spot_usd; }},
    {"instance_usd", [](Candidate one) { return one.instance_usd; }},
    {"hourly", [](Candidate one) { return one.usd_per_gpu_hour; }},
    {"images", [](Candidate one) { return one.images; }},
    {"rate", [](Candidate one) { return with_digits(one.images_per_s, 4); }},
    {"busy", [](Candidate one) { return std::round(1e3 * one.gpu_busy) / 1e3; }},
    {"kg", [](Candidate one) { return with_digits(one.kg_co2e, 3); }},
    {"kwh", [](Candidate one) { return one.kwh; }},
    {"met", [](Candidate one) { return one.met_share; }},
    {"losses", [](Candidate one) { return with_digits(one.losses, 3); }},
    {"chosen", [](Candidate one) -> double { return one.chosen; }},
    {"scales", [](Candidate one) -> double { return one.scales; }}};

Out ledger_of(Candidate candidate) {
  Out uses = Out::array();
  if (candidate.has_ledger)
    for (const double seconds : candidate.gpu_seconds) uses.push_back(rounded(seconds));
  return uses;
}

/// The columns that data.js makes rows one.
Out columns_of(const PageInput& page) {
  Out out;
  const auto add = [&](const char* name, auto&& value) {
    Out cells = Out::array();
    for (const ReportCandidate& candidate : page.candidates) cells.push_back(value(candidate));
    if (!cells.empty()) out[name] = column(cells);
  };
  for (const auto& [name, member] : kTexts) add(name, [member = member](Candidate one) { return one.*member; });
  for (const auto& [name, value] : kNumbers) add(name, [value = value](Candidate one) { return rounded(value(one)); });
  add("ledger", ledger_of);
  return out;
}

Out details_of(const PageInput& page) {
  Out out = Out::array();
  for (const std::size_t i : page.detailed) {
    const documents::Result& run = *page.candidates[i].run;
    Out detail = {{"row", i}, {"total_s", run.total.si}, {"seed", run.seed}};
    detail["tables"] = {{"bill", bill_rows(run)}, {"events", events_of(run).html_body()}};
    detail["events"] = Out::array();
    for (const documents::RunEvent& event : run.events)
      detail["events"].push_back(
          {rounded(event.at.si), event.what, event.pool, event.nodes, event.detail, event.times});
    detail["holdings"] = Out::array();
    for (const Holding& holding : holdings_of(run))
      detail["holdings"].push_back(
          {holding.pool, rounded(holding.from_s), rounded(holding.to_s), holding.held, holding.asked});
    out.push_back(std::move(detail));
  }
  return out;
}

/// The distribution of a result that counts several seeds: low end, 5th percentile, median, 95th percentile, high end.
Out seeds_of_result(const documents::SeedRuns& seeds) {
  const auto spread = [&](const SeedQuantiles& quantiles) {
    Out out = Out::array();
    for (const double value : {quantiles.low, quantiles.p5, quantiles.median, quantiles.p95, quantiles.high})
      out.push_back(rounded(value));
    return out;
  };
  return Out::array({Out{{"row", 0}, {"spread", {{"time", spread(seeds.time_s)}, {"usd", spread(seeds.usd)}}}}});
}

/// For candidates with several runs: the time of each run, its cost with both ends of the interval, and the instances'
/// part of it.
Out seeds_of(const PageInput& page) {
  Out out = Out::array();
  for (std::size_t i = 0; i < page.candidates.size(); ++i) {
    const ReportCandidate& candidate = page.candidates[i];
    if (candidate.of_runs.size() < 2) continue;
    Out group = {{"row", i}};
    for (const documents::Result* run : candidate.of_runs) {
      group["time"].push_back(rounded(run->total.si));
      group["usd"].push_back(rounded(usd_of(run->usd)));
      group["low"].push_back(rounded(run->cost_usd.low));
      group["high"].push_back(rounded(run->cost_usd.high));
      group["spot"].push_back(rounded(instance_usd(*run, true)));
      group["instances"].push_back(rounded(instance_usd(*run, false)));
    }
    out.push_back(std::move(group));
  }
  return out;
}

Out cells_of(const documents::ValidationResult& result) {
  Out out = Out::array();
  for (const documents::ValidatedStudy& study : result.studies)
    for (const documents::ValidatedCell& cell : study.cells)
      if (cell.predicted && cell.measured)
        out.push_back({study.title, cell.series + ", " + cell.what, rounded(*cell.measured), rounded(*cell.predicted),
                       rounded(cell.interval_90.low), rounded(cell.interval_90.high), cell.unit});
  return out;
}

/// Indices of the kinds that have tracks of their own, beside the track of the worker's computation.
constexpr int kCommunication = 2;
constexpr int kInput = 5;

int track_of(int kind) { return kind == kCommunication ? 1 : kind == kInput ? 2 : 0; }

}  // namespace

OrderedJson capped_spans(const documents::StepSpans& spans, std::vector<std::string>& names, std::size_t max_rows) {
  using Row = documents::StepSpans::Row;
  OrderedJson out = OrderedJson::array();
  if (spans.rows.size() <= max_rows) {
    for (const Row& row : spans.rows) out.push_back({row.worker, row.kind, row.name, row.start.si, row.length.si});
    return out;
  }
  struct Bin {
    std::array<double, documents::StepSpans::kKinds.size()> seconds{};
    std::size_t spans = 0;
  };
  double end = 0;
  std::map<std::pair<int, int>, std::map<std::size_t, Bin>> tracks;
  for (const Row& row : spans.rows) {
    end = std::max(end, (row.start + row.length).si);
    tracks[{row.worker, track_of(row.kind)}];
  }
  const std::size_t bins = std::max<std::size_t>(1, max_rows / tracks.size());
  const double width = end / static_cast<double>(bins);
  for (const Row& row : spans.rows) {
    const double start = row.start.si, stop = (row.start + row.length).si;
    auto& track = tracks[{row.worker, track_of(row.kind)}];
    for (auto bin = static_cast<std::size_t>(start / width); bin < bins; ++bin) {
      const double left = static_cast<double>(bin) * width;
      const double inside = std::min(stop, left + width) - std::max(start, left);
      if (inside <= 0) break;
      track[bin].seconds.at(static_cast<std::size_t>(row.kind)) += inside;
      ++track[bin].spans;
    }
  }
  const std::size_t name = names.size();
  names.emplace_back("several, drawn together");
  for (const auto& [where, content] : tracks)
    for (const auto& [bin, candidate] : content) {
      const auto largest = std::max_element(candidate.seconds.begin(), candidate.seconds.end());
      double filled = 0;
      for (const double seconds : candidate.seconds) filled += seconds;
      out.push_back({where.first, largest - candidate.seconds.begin(), name, static_cast<double>(bin) * width,
                     std::min(width, filled)});
    }
  return out;
}

OrderedJson page_data(const PageInput& page) {
  Out out = {{"kind", page.kind}};
  if (page.kind == "validation" || page.kind == "cluster" || page.kind == "rehearsal") {
    // The script draws nothing on the pages of clusters and rehearsals, whose charts are pictures.
    out["cells"] = page.validation ? cells_of(*page.validation) : Out::array();
    return out;
  }
  out["uses"] = kGpuUseNames;
  out["outcome"] = page.plan != nullptr ? plan_outcome(page.plan->request) : "goals met";
  out["count"] = page.candidates.size();
  out["columns"] = columns_of(page);
  const Goals goals = goals_of(page);
  out["goals"] = {{"deadline_s", goals.deadline_s ? Out(*goals.deadline_s) : Out(nullptr)},
                  {"budget_usd", goals.budget ? rounded(usd_of(*goals.budget)) : Out(nullptr)}};
  out["scaling_by"] = scaling_by(page.candidates);
  out["details"] = details_of(page);
  const documents::Result* one = page.kind == "result" ? &page.runs.front() : nullptr;
  out["seeds"] = one && one->seeds ? seeds_of_result(*one->seeds) : seeds_of(page);
  if (one && one->spans) {
    std::vector<std::string> names = one->spans->names;
    Out rows = capped_spans(*one->spans, names, kMaxSpans);
    for (auto& row : rows)
      for (const std::size_t time : {3U, 4U})
        row[time] = std::strtod(fmt::format("{:.9f}", row.at(time).get<double>()).c_str(), nullptr);
    out["spans"] = {{"kinds", documents::StepSpans::kKinds}, {"names", names}, {"rows", std::move(rows)}};
  }
  return out;
}

}  // namespace ganymede::report
