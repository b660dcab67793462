#include "report/validations.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/table.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::ordered_json;

std::string number(double value) { return fmt::format("{:.4g}", value); }
std::string exact(double value) { return fmt::format("{:.6g}", value); }
std::string percent(const Json& share) { return fmt::format("{:+.1f} %", 100 * share.get<double>()); }
std::string plain_percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string cells_text(const Json& cells, std::size_t width) {
  Table table(
      {"series", "", "unit", "", ">measured", ">predicted", ">90 % interval", "", ">error", ">ideal", "best other"});
  std::string series;
  for (const Json& cell : cells) {
    const std::string name = cell["series"];
    if (!series.empty() && name != series) table.rule();
    const bool predicted = cell.contains("predicted");
    std::string ideal, best;
    double least = INFINITY;
    if (predicted)
      for (const Json& baseline : cell["baselines"]) {
        if (baseline["name"] == "no communication")
          ideal = percent(baseline["error"]);
        else if (std::abs(baseline["error"].get<double>()) < least) {
          least = std::abs(baseline["error"].get<double>());
          best = fmt::format("{}: {}", baseline["name"].get<std::string>(), percent(baseline["error"]));
        }
      }
    table.add({name == series ? "" : name, cell["what"], cell["unit"],
               cell.contains("alternative") ? "other reading"
               : predicted                  ? "predicted"
                                            : "fitted",
               number(cell["measured"]), predicted ? number(cell["predicted"]) : "",
               predicted ? fmt::format("{} .. {}", number(cell["interval_90"][0]), number(cell["interval_90"][1])) : "",
               predicted && !cell["interval_holds"].get<bool>() ? "missed" : "",
               predicted ? percent(cell["error"]) : "", ideal, best});
    series = name;
  }
  return table.text(width);
}

std::string summary_text(const Json& summary) {
  if (summary["cells"] == 0) return "nothing is predicted";
  std::string text = fmt::format("{} predicted: mean error {}, worst {}; the 90 % interval holds {}",
                                 summary["cells"].get<int>(), plain_percent(summary["mean_error"]),
                                 plain_percent(summary["worst_error"]), plain_percent(summary["held_by_interval"]));
  for (const Json& baseline : summary["baselines"])
    text += fmt::format("; {}: {} (skill {:.2f})", baseline["name"].get<std::string>(),
                        plain_percent(baseline["mean_error"]), baseline["skill"].get<double>());
  for (const Json& baseline : summary["baselines"])
    if (!baseline["beaten"].get<bool>())
      text += fmt::format("; NOT BETTER than \"{}\"", baseline["name"].get<std::string>());
  return text;
}

std::string study_text(const Json& study, bool details, std::size_t width) {
  std::string out = fmt::format("{}: {}\n  source: {}\n", study["name"].get<std::string>(),
                                study["title"].get<std::string>(), study["source"].get<std::string>());
  if (details)
    for (const Json& assumption : study["assumptions"])
      out += fmt::format("  assumed: {} ({})\n", assumption["what"].get<std::string>(),
                         assumption["source"].get<std::string>());
  for (const Json& fitted : study["fitted"]) out += fmt::format("  fitted: {}\n", fitted.get<std::string>());
  out += "\n" + cells_text(study["cells"], width);
  for (const Json& claim : study["claims"]) {
    std::string values;
    for (const Json& value : claim["values"])
      values +=
          fmt::format("{}{} {}", values.empty() ? "" : " > ", value["run"].get<std::string>(), exact(value["value"]));
    out += fmt::format("\n{}: {} ({})", claim["holds"].get<bool>() ? "holds" : "DOES NOT HOLD",
                       claim["text"].get<std::string>(), values);
  }
  if (!study["claims"].empty()) out += "\n";
  for (const Json& table : study["compute_fractions"]) {
    Table fractions({">bytes", ">GPUs", ">compute fraction"});
    for (const Json& row : table["rows"])
      fractions.add(
          {number(row["bytes"]), std::to_string(row["gpus"].get<int>()), plain_percent(row["compute_fraction"])});
    out += fmt::format("\n{} ({})\n{}", table["title"].get<std::string>(), table["series"].get<std::string>(),
                       fractions.text(width));
  }
  out += fmt::format("\n{}\n", summary_text(study["summary"]));
  for (const Json& promise : study["promises"])
    out += fmt::format("promise {}: {} cells within {} on average{}; {}\n",
                       promise["kept"].get<bool>() ? "kept" : "BROKEN", promise["cells"].get<std::string>(),
                       plain_percent(promise["mean_error_at_most"]),
                       promise["beats_baselines"].get<bool>() ? " and better than every baseline" : "",
                       summary_text(promise["measured"]));
  return out;
}

}  // namespace

std::string validation_text(const Json& result, bool details, std::size_t width) {
  std::string out;
  for (const Json& study : result["studies"]) out += wrap_prose(study_text(study, details, width), width) + "\n";
  if (result["studies"].size() == 1) return out;
  Table table({"study", ">predicted", ">mean error", ">worst", ">no communication", ">skill", ">in the 90 % interval"});
  const auto add = [&](const std::string& name, const Json& summary) {
    if (summary["cells"] == 0) return table.add({name, "0", "", "", "", "", ""});
    std::string ideal, skill;
    for (const Json& baseline : summary["baselines"])
      if (baseline["name"] == "no communication") {
        ideal = plain_percent(baseline["mean_error"]);
        skill = fmt::format("{:.2f}", baseline["skill"].get<double>());
      }
    table.add({name, std::to_string(summary["cells"].get<int>()), plain_percent(summary["mean_error"]),
               plain_percent(summary["worst_error"]), ideal, skill, plain_percent(summary["held_by_interval"])});
  };
  for (const Json& study : result["studies"]) add(study["name"], study["summary"]);
  table.rule();
  add("all", result["summary"]);
  return out + table.text(width);
}

std::string validation_csv(const Json& result) {
  Table table({"study", "series", "cell", "unit", "role", "measured", "predicted", "low_90", "high_90", "error",
               "error_without_communication"});
  for (const Json& study : result["studies"])
    for (const Json& cell : study["cells"]) {
      const bool predicted = cell.contains("predicted");
      std::string ideal;
      if (predicted)
        for (const Json& baseline : cell["baselines"])
          if (baseline["name"] == "no communication") ideal = baseline["error"].dump();
      table.add({study["name"], cell["series"], cell["what"], cell["unit"], cell["role"], cell["measured"].dump(),
                 predicted ? cell["predicted"].dump() : "", predicted ? cell["interval_90"][0].dump() : "",
                 predicted ? cell["interval_90"][1].dump() : "", predicted ? cell["error"].dump() : "", ideal});
    }
  return table.csv();
}

}  // namespace ganymede
