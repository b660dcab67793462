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

double number_in(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
  const std::string& text = table.at(row, column);
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0))
    table.fail(row, column, fmt::format("found \"{}\", expected a number above 0", text));
  return value;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

CsvTable built_in(const std::string& name) {
  for (const EmbeddedText& text : embedded_throughputs())
    if (text.name == name) return CsvTable::parse(text.text, name);
  return CsvTable::parse("", name);
}

}  // namespace

Throughputs::Throughputs() {
  const CsvTable rates = built_in("rates.csv");
  for (const CsvTable::Row& row : rates.rows()) {
    const MeasuredModel model{rates.at(row, "model"), rates.at(row, "batch")};
    const bool spread = rates.at(row, "machines") == "several";
    solo_[{lower(rates.at(row, "gpu")), model, spread}][static_cast<int>(number_in(rates, row, "gpus"))] =
        number_in(rates, row, "steps_per_s");
  }
  const CsvTable shared = built_in("shared_gpu.csv");
  for (const CsvTable::Row& row : shared.rows()) {
    const std::string gpu = lower(shared.at(row, "gpu"));
    const MeasuredModel a{shared.at(row, "model"), shared.at(row, "batch")};
    const MeasuredModel b{shared.at(row, "beside"), shared.at(row, "batch_beside")};
    const double speed_a = number_in(shared, row, "speed"), speed_b = number_in(shared, row, "speed_beside");
    pairs_[{gpu, a, b}] = {speed_a, speed_b};
    pairs_[{gpu, b, a}] = {speed_b, speed_a};
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
  return found == pairs_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace ganymede::sim
