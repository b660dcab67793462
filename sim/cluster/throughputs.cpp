#include "sim/cluster/throughputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "common/csv.hpp"
#include "common/embedded.hpp"

namespace ganymede::sim {
namespace {

double rate_in(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
  const std::string& text = table.at(row, column);
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0))
    table.fail(row, column, fmt::format("found \"{}\", expected steps per second, at least 0", text));
  return value;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string_view built_in(std::string_view name) {
  for (const EmbeddedText& text : embedded_throughputs())
    if (text.name == name) return text.text;
  return {};
}

}  // namespace

Throughputs::Throughputs()
    : Throughputs(built_in("gavel_solo.csv"), "gavel_solo.csv", built_in("gavel_colocated_pairs.csv"),
                  "gavel_colocated_pairs.csv") {}

Throughputs::Throughputs(std::string_view solo, const std::string& solo_name, std::string_view pairs,
                         const std::string& pairs_name) {
  const CsvTable alone = CsvTable::parse(solo, solo_name);
  for (const CsvTable::Row& row : alone.rows()) {
    const MeasuredModel model{alone.at(row, "model"), alone.at(row, "batch_per_gpu")};
    const bool spread = alone.at(row, "placement") == "spread";
    double rate = rate_in(alone, row, "steps_per_s_summed");
    // The two published tables disagree by up to a factor of 11 on this model, and the second is the plausible one.
    if (model.first == "Recommendation" && alone.has("steps_per_s_summed_physical_cluster") &&
        !alone.at(row, "steps_per_s_summed_physical_cluster").empty())
      rate = rate_in(alone, row, "steps_per_s_summed_physical_cluster");
    if (rate > 0)
      solo_[{lower(alone.at(row, "gpu")), model, spread}][static_cast<int>(rate_in(alone, row, "gpus"))] = rate;
  }
  const CsvTable both = CsvTable::parse(pairs, pairs_name);
  for (const CsvTable::Row& row : both.rows()) {
    const MeasuredModel a{both.at(row, "model_1"), both.at(row, "batch_1")};
    const MeasuredModel b{both.at(row, "model_2"), both.at(row, "batch_2")};
    const double rate_a = rate_in(both, row, "steps_per_s_1"), rate_b = rate_in(both, row, "steps_per_s_2");
    pairs_[{lower(both.at(row, "gpu")), a, b}] = {rate_a, rate_b};
    pairs_[{lower(both.at(row, "gpu")), b, a}] = {rate_b, rate_a};
  }
}

bool Throughputs::has(const MeasuredModel& model) const {
  return std::any_of(solo_.begin(), solo_.end(), [&](const auto& row) { return std::get<1>(row.first) == model; });
}

std::vector<std::string> Throughputs::models() const {
  std::set<std::string> names;
  for (const auto& [key, rates] : solo_) {
    const auto& [model, batch] = std::get<1>(key);
    names.insert(batch.empty() ? model : model + " " + batch);
  }
  return {names.begin(), names.end()};
}

std::optional<double> Throughputs::alone(const std::string& gpu, const MeasuredModel& model, int gpus,
                                         bool spread) const {
  auto found = solo_.find({lower(gpu), model, spread && gpus > 1});
  if (found == solo_.end() || gpus < found->second.begin()->first) found = solo_.find({lower(gpu), model, false});
  if (found == solo_.end()) return std::nullopt;
  const auto above = found->second.upper_bound(gpus);
  if (above == found->second.begin()) return std::nullopt;
  const auto& [measured, rate] = *std::prev(above);
  return rate * gpus / measured;
}

std::optional<std::pair<double, double>> Throughputs::together(const std::string& gpu, const MeasuredModel& a,
                                                               const MeasuredModel& b) const {
  const auto found = pairs_.find({lower(gpu), a, b});
  if (found == pairs_.end() || found->second.first <= 0 || found->second.second <= 0) return std::nullopt;
  const auto alone_a = alone(gpu, a, 1, false), alone_b = alone(gpu, b, 1, false);
  if (!alone_a || !alone_b) return std::nullopt;
  return std::pair{std::min(1.0, found->second.first / *alone_a), std::min(1.0, found->second.second / *alone_b)};
}

}  // namespace ganymede::sim
