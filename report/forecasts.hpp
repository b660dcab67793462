#pragma once
// Text and metrics of a `ganymede.forecast/1`: how a training under way compares with its plan.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "documents/forecast.hpp"
#include "report/table.hpp"

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

// The picture of a training's FID: its median and the band of 90 %, over images or dollars.

struct QualityPicture {
  /// The lowest FID so far: of the median training, and the ends of the interval of 90 %.
  struct Band {
    std::vector<double> x, median, low, high;
    void add(double at, double middle, double least, double most) {
      x.push_back(at), median.push_back(middle), low.push_back(least), high.push_back(most);
    }
  };
  std::string title;
  bool by_usd = false;  ///< the axis is dollars, else images
  double fid = 0;       ///< the target, drawn as a line; 0: none
  Band band = {};
  std::vector<std::pair<double, double>> points = {};  ///< measured: x and FID
};

std::string quality_band_svg(const QualityPicture& picture);

/// Some lines for a terminal, at most `width` columns wide.
std::string forecast_text(const documents::Forecast& forecast, std::size_t width = kAnyWidth);
/// The same as metrics of Prometheus in its text format, version 0.0.4.
std::string forecast_metrics(const documents::Forecast& forecast);

// A paid bill beside a plan, as a table.

std::string paid_bill_text(const documents::PaidBill& paid, std::size_t width = kAnyWidth);

}  // namespace ganymede::report
