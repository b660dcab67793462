#pragma once
// Metrics in Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/), version 0.0.4.

#include <string>
#include <utility>
#include <vector>

namespace ganymede::report {

inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

/// Gauges, one family after the other.
class Gauges {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// `prefix` begins every name, for example "ganymede_run_".
  explicit Gauges(std::string prefix) : prefix_(std::move(prefix)) {}
  /// Begins a family; samples belong to the last one. `help` is one line without a backslash.
  void begin(const std::string& name, const std::string& help);
  /// Values of labels may be any text.
  void sample(const Labels& labels, double value);
  const std::string& text() const { return text_; }

 private:
  std::string prefix_, name_, text_;
};

}  // namespace ganymede::report
