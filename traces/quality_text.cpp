// FIDs in the logs of StyleGAN (metric-*.jsonl) and of PyTorch-StudioGAN.

#include <fmt/format.h>

#include <cctype>
#include <sstream>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "traces/quality_log.hpp"

namespace ganymede::traces {
namespace {

std::string line_place(const std::filesystem::path& file, int line) {
  return fmt::format("{}: line {}", file.string(), line);
}

/// Thousands of images in the name of a snapshot, "network-snapshot-025000.pkl".
double snapshot_images(const JsonNode& node) {
  const std::string name = node.as_string();
  const std::size_t dash = name.rfind('-'), dot = name.rfind('.');
  const std::string digits = dash == std::string::npos ? "" : name.substr(dash + 1, dot - dash - 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos || digits.size() > 9)
    node.expected("a snapshot named with its thousands of images, such as \"network-snapshot-000200.pkl\"");
  return 1e3 * std::stod(digits);
}

/// The text after `key` in `line` up to one of `ends`, without spaces around it.
std::string text_after(const std::string& line, const std::string& key, const char* ends) {
  const std::size_t at = line.find(key);
  if (at == std::string::npos) return "";
  const std::size_t begin = line.find_first_not_of(' ', at + key.size());
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_first_of(ends, begin) - begin);
}

}  // namespace

QualityLog read_stylegan_metrics(const std::filesystem::path& file, const std::string& text) {
  QualityLog log;
  log.run = file.stem().string();
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const JsonNode node = JsonNode::parse(line, line_place(file, number));
    JsonObject in(node);
    const std::string metric = in.required("metric").as_string();
    if (!metric.starts_with("fid"))
      node.fail(fmt::format("found the metric \"{}\", expected one of FID, such as \"fid50k_full\"", metric));
    if (!log.facts.try_emplace("reference", metric).second && log.facts["reference"] != metric)
      node.fail(fmt::format("found \"{}\" after \"{}\": FIDs against different references cannot be compared", metric,
                            log.facts["reference"]));
    const JsonNode value = JsonObject(in.required("results")).required(metric);
    const JsonNode snapshot = in.required("snapshot_pkl");
    if (snapshot.value().is_null()) continue;  // an evaluation of a network from elsewhere
    const double images = snapshot_images(snapshot);
    add_point(log, {images, value.as_number(1e-9, 1e9)});
  }
  if (log.points.empty()) throw ConfigError(fmt::format("{}: found no snapshot after the first step", file.string()));
  return log;
}

QualityLog read_studiogan_log(const std::filesystem::path& file, const std::string& text,
                              const QualityLogOptions& options) {
  QualityLog log;
  log.run = file.stem().string();
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string step = text_after(line, "FID score (Step:", ",");
    if (step.empty()) continue;
    const std::string where = line_place(file, number);
    const std::string reference = text_after(line, "Using ", " )");
    if (!reference.empty() && !log.facts.try_emplace("reference", reference).second &&
        log.facts["reference"] != reference)
      throw ConfigError(
          fmt::format("{}: found the moments \"{}\" after \"{}\": FIDs against different references "
                      "cannot be compared",
                      where, reference, log.facts["reference"]));
    const double fid = positive_number(text_after(line, "):", " \r\t"), where, "an FID of");
    add_point(log, {number_from_zero(step, where, "step") * images_of_step(where, options), fid});
  }
  if (log.points.empty()) throw ConfigError(fmt::format("{}: found no FID after the first step", file.string()));
  return log;
}

}  // namespace ganymede::traces
