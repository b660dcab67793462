// The data that the page's script draws, as columns, with no more digits than a picture can show.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

#include "common/json_value.hpp"
#include "common/usd.hpp"
#include "report/holdings.hpp"
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

Out words_of(const PageInput& page, std::string ReportCandidate::*member) {
  Out out = Out::array();
  for (const ReportCandidate& candidate : page.candidates) out.push_back(candidate.*member);
  return out.empty() ? out : column(out);
}

Out numbers_of(const PageInput& page, auto&& value) {
  Out out = Out::array();
  for (const ReportCandidate& candidate : page.candidates) out.push_back(rounded(value(candidate)));
  return out.empty() ? out : column(out);
}

Out flags_of(const PageInput& page, bool ReportCandidate::*member) {
  return numbers_of(page, [&](const ReportCandidate& candidate) { return candidate.*member ? 1.0 : 0.0; });
}

void add_estimates(Out& out, const PageInput& page, const std::string& name, Estimate ReportCandidate::*member) {
  out[name] = numbers_of(page, [&](const ReportCandidate& candidate) { return (candidate.*member).middle; });
  out[name + "_low"] = numbers_of(page, [&](const ReportCandidate& candidate) { return (candidate.*member).low; });
  out[name + "_high"] = numbers_of(page, [&](const ReportCandidate& candidate) { return (candidate.*member).high; });
}

Out ledgers_of(const PageInput& page) {
  Out out = Out::array();
  for (const ReportCandidate& candidate : page.candidates) {
    Out uses = Out::array();
    if (candidate.has_ledger)
      for (const double seconds : candidate.gpu_seconds) uses.push_back(rounded(seconds));
    out.push_back(std::move(uses));
  }
  return out.empty() ? out : column(out);
}

Out columns_of(const PageInput& page) {
  Out out;
  out["provider"] = words_of(page, &ReportCandidate::provider);
  out["region"] = words_of(page, &ReportCandidate::region);
  out["where"] = words_of(page, &ReportCandidate::infrastructure);
  out["market"] = words_of(page, &ReportCandidate::market);
  out["rented"] = words_of(page, &ReportCandidate::rented);
  out["gpu"] = words_of(page, &ReportCandidate::gpu);
  out["scheme"] = words_of(page, &ReportCandidate::scheme);
  out["policy"] = words_of(page, &ReportCandidate::policy);
  out["gpus"] = numbers_of(page, [](const ReportCandidate& candidate) { return candidate.gpus; });
  if (std::any_of(page.candidates.begin(), page.candidates.end(),
                  [](const ReportCandidate& candidate) { return candidate.fewest_gpus != candidate.gpus; }))
    out["fewest_gpus"] = numbers_of(page, [](const ReportCandidate& candidate) { return candidate.fewest_gpus; });
  out["runs"] = numbers_of(page, [](const ReportCandidate& candidate) { return candidate.runs; });
  add_estimates(out, page, "time", &ReportCandidate::time_s);
  add_estimates(out, page, "usd", &ReportCandidate::usd);
  out["ranked_usd"] = numbers_of(page, [](const ReportCandidate& candidate) { return candidate.ranked_usd; });
  out["doubtful"] = flags_of(page, &ReportCandidate::price_doubtful);
  out["assumed"] = flags_of(page, &ReportCandidate::risk_assumed);
  out["spot_usd"] = numbers_of(page, [](const ReportCandidate& candidate) { return candidate.spot_usd; });
  out["instance_usd"] = numbers_of(page, [](const ReportCandidate& candidate) { return candidate.instance_usd; });
  out["hourly"] = numbers_of(page, [](const ReportCandidate& candidate) { return candidate.usd_per_gpu_hour; });
  out["images"] = numbers_of(page, [](const ReportCandidate& candidate) { return candidate.images; });
  out["rate"] =
      numbers_of(page, [](const ReportCandidate& candidate) { return with_digits(candidate.images_per_s, 4); });
  out["busy"] =
      numbers_of(page, [](const ReportCandidate& candidate) { return std::round(1e3 * candidate.gpu_busy) / 1e3; });
  out["kg"] = numbers_of(page, [](const ReportCandidate& candidate) { return with_digits(candidate.kg_co2e, 3); });
  out["kwh"] = numbers_of(page, [](const ReportCandidate& candidate) { return candidate.kwh; });
  out["met"] = numbers_of(page, [](const ReportCandidate& candidate) { return candidate.met_share; });
  out["met_text"] = words_of(page, &ReportCandidate::met);
  out["losses"] = numbers_of(page, [](const ReportCandidate& candidate) { return with_digits(candidate.losses, 3); });
  out["chosen"] = flags_of(page, &ReportCandidate::chosen);
  out["scales"] = flags_of(page, &ReportCandidate::scales);
  out["ledger"] = ledgers_of(page);
  return out;
}

Out details_of(const PageInput& page) {
  Out out = Out::array();
  for (const std::size_t i : page.detailed) {
    const documents::Result& run = *page.candidates[i].run;
    Out detail = {{"row", i}, {"total_s", run.total.si}, {"seed", run.seed}};
    detail["bill"] = Out::array();
    for (const BillRow& row : bill_tree(run))
      detail["bill"].push_back({row.depth, row.name, row.quantity, row.unit, row.price, row.usd,
                                rounded(std::round(1e4 * row.share) / 1e4), row.share > 0 ? percent(row.share) : ""});
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

Out cells_of(const Json& document) {
  Out out = Out::array();
  for (const Json& study : document.at("studies"))
    for (const Json& cell : study.at("cells")) {
      if (!cell.contains("predicted") || !cell.at("predicted").is_number() || !cell.contains("measured")) continue;
      Out row = {study.at("title"), cell.value("series", "") + ", " + cell.value("what", ""),
                 rounded(amount(cell.at("measured"))), rounded(amount(cell.at("predicted")))};
      for (const std::size_t end : {0U, 1U})
        row.push_back(cell.contains("interval_90") ? rounded(amount(cell.at("interval_90").at(end))) : Out(nullptr));
      row.push_back(cell.value("unit", ""));
      out.push_back(std::move(row));
    }
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
    out["cells"] = page.kind == "validation" ? cells_of(page.document) : Out::array();
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
