#include "report/prometheus.hpp"

#include <fmt/format.h>

namespace ganymede::report {
namespace {

std::string label_value(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

void Gauges::begin(const std::string& name, const std::string& help) {
  name_ = prefix_ + name;
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name_, help);
}

void Gauges::sample(const Labels& labels, double value) {
  std::string shown;
  for (const auto& [name, of] : labels)
    shown += fmt::format("{}{}=\"{}\"", shown.empty() ? "" : ",", name, label_value(of));
  text_ += fmt::format("{}{} {}\n", name_, shown.empty() ? "" : "{" + shown + "}", value);
}

}  // namespace ganymede::report
