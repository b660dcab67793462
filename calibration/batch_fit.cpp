#include "calibration/batch_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "calibration/statistics.hpp"
#include "calibration/workload_model.hpp"
#include "common/errors.hpp"
#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

/// A point with a larger relative residual counts as an outlier, which does not belong to the line of the others.
constexpr double kOutlier = 0.1;

struct Line {
  double fixed = 0, per_image = 0;
  double at(double batch) const { return fixed + per_image * batch; }
};

double residual(const Line& line, const PhaseFit::Point& point) { return line.at(point.batch) / point.seconds - 1; }

/// The line with the least sum of squared relative residuals through the points that `use` selects, with both
/// coefficients at least 0.
Line least_squares(std::span<const PhaseFit::Point> points, const std::vector<bool>& use) {
  double w = 0, wb = 0, wbb = 0, wt = 0, wbt = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!use[i]) continue;
    const auto [b, t] = points[i];
    const double k = 1 / (t * t);
    w += k, wb += k * b, wbb += k * b * b, wt += k * t, wbt += k * b * t;
  }
  const double determinant = w * wbb - wb * wb;
  Line line;
  line.fixed = determinant > 1e-12 * w * wbb ? std::max(0.0, (wt * wbb - wb * wbt) / determinant) : 0;
  line.per_image = std::max(0.0, (wbt - line.fixed * wb) / wbb);
  if (line.per_image == 0) line.fixed = wt / w;
  return line;
}

/// The sum of absolute relative residuals, in which each point counts at most three times kOutlier.
double misfit(const Line& line, std::span<const PhaseFit::Point> points) {
  double sum = 0;
  for (const auto& point : points) sum += std::min(std::abs(residual(line, point)), 3 * kOutlier);
  return sum;
}

/// A robust fit: the line through two of the points that has the least misfit, then least squares over the points that
/// are no outliers of it. There are few points, so all pairs are tried.
Line fit_line(std::span<const PhaseFit::Point> points) {
  Line best = least_squares(points, std::vector<bool>(points.size(), true));
  double least = misfit(best, points);
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      std::vector<bool> pair(points.size(), false);
      pair[i] = pair[j] = true;
      const Line line = least_squares(points, pair);
      if (const double left = misfit(line, points); left < least - 1e-12) least = left, best = line;
    }
  std::vector<bool> belongs;
  for (const auto& point : points) belongs.push_back(std::abs(residual(best, point)) <= kOutlier);
  if (std::count(belongs.begin(), belongs.end(), true) < 2) return best;
  const Line refined = least_squares(points, belongs);
  return misfit(refined, points) <= 1.2 * least + 1e-12 ? refined : best;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

/// True for a phase that most steps leave out (lazy regularisation): one step in 20 or more takes over 100 times the
/// median.
bool is_lazy(const std::vector<double>& seconds) {
  const double limit = 100 * median(seconds);
  const auto had = std::count_if(seconds.begin(), seconds.end(), [&](double s) { return s > limit; });
  return 20 * static_cast<std::size_t>(had) >= seconds.size();
}

/// The value at `batch` of the straight line through (b0, y0) and (b1, y1), at least 0.
double line_through(double batch, double b0, double y0, double b1, double y1) {
  return std::max(0.0, y0 + (y1 - y0) * (batch - b0) / (b1 - b0));
}

}  // namespace

PhaseFit::PhaseFit(std::vector<Point> points) : points_(std::move(points)) {
  assert(points_.size() >= 2);
  double best = INFINITY;
  // Tries every number of sizes that are bound by launching; at least two are left for the line.
  for (std::size_t launched = 0; launched + 2 <= points_.size(); ++launched) {
    const std::span<const Point> all(points_);
    const Line line = fit_line(all.subspan(launched));
    std::vector<double> small;
    for (const Point& point : all.first(launched)) small.push_back(point.seconds);
    const double floor = small.empty() ? 0 : median(small);
    double left = 0;
    for (const Point& point : points_)
      left += std::min(std::abs(std::max(floor, line.at(point.batch)) / point.seconds - 1), 3 * kOutlier);
    if (left >= best - 1e-9) continue;
    best = left;
    floor_s = floor, fixed_s = line.fixed, per_image_s = line.per_image;
  }
  for (const Point& point : points_)
    residuals_.push_back(std::clamp(portable_log(point.seconds / roofline(point.batch)), -kOutlier, kOutlier));
}

double PhaseFit::roofline(double batch) const { return std::max(floor_s, fixed_s + per_image_s * batch); }

double PhaseFit::seconds(double batch) const {
  const auto above = std::lower_bound(points_.begin(), points_.end(), batch,
                                      [](const Point& point, double value) { return point.batch < value; });
  const auto i = static_cast<std::size_t>(above - points_.begin());
  double residual = i == points_.size() ? residuals_.back() : residuals_[i];
  if (i > 0 && i < points_.size()) {
    const double share =
        portable_log(batch / points_[i - 1].batch) / portable_log(points_[i].batch / points_[i - 1].batch);
    residual = residuals_[i - 1] + share * (residuals_[i] - residuals_[i - 1]);
  }
  return roofline(batch) * portable_exp(residual);
}

std::string PhaseFit::bound_by(double batch) const {
  if (floor_s >= fixed_s + per_image_s * batch) return "launch";
  return fmt::format("{:.0f} % per image", 100 * per_image_s * batch / (fixed_s + per_image_s * batch));
}

BatchModel::BatchModel(std::vector<const traces::TraceBatch*> entries) : entries_(std::move(entries)) {
  assert(entries_.size() >= kMinSizes);
  std::sort(entries_.begin(), entries_.end(), [](const auto* a, const auto* b) { return a->batch < b->batch; });
  const traces::TraceBatch& first = *entries_.front();
  for (const traces::TracePhase& phase : first.phases) sequential_.push_back(in_sequence(phase, first));
  std::vector<std::vector<PhaseFit::Point>> points(first.phases.size() + 1);  // by phase; the time between them last
  std::vector<double> walls;
  for (const traces::TraceBatch* entry : entries_) {
    const auto batch = static_cast<double>(entry->batch);
    double sum = 0, lazy = 0;  // lazy: the mean of phases that most steps leave out, of which a median knows nothing
    std::vector<double> plain = entry->wall_s;  // without them
    for (std::size_t p = 0; p < first.phases.size(); ++p) {
      const std::vector<double>& seconds = entry->phases[p].seconds;
      points[p].push_back({batch, median(seconds)});
      if (is_lazy(seconds)) {
        const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
        points[p].back().seconds = total / static_cast<double>(seconds.size());
        lazy += points[p].back().seconds;
        for (std::size_t i = 0; i < plain.size(); ++i) plain[i] -= seconds[i];
      }
      if (sequential_[p]) sum += points[p].back().seconds;
    }
    walls.push_back(median(plain) + lazy);
    points.back().push_back({batch, std::max(0.0, walls.back() - sum)});
  }
  for (std::size_t p = 0; p < first.phases.size(); ++p) {
    for (auto& point : points[p]) point.seconds = std::max(point.seconds, 1e-12);
    phases_.push_back({first.phases[p].name, PhaseFit(points[p])});
  }
  const auto& rest = points.back();
  if (std::all_of(rest.begin(), rest.end(), [](const auto& point) { return point.seconds > 0; }))
    rest_.emplace_back(rest);
  cross_validate(points, walls);
}

void BatchModel::cross_validate(const std::vector<std::vector<PhaseFit::Point>>& points,
                                const std::vector<double>& walls) {
  for (std::size_t out = 0; out < entries_.size(); ++out) {
    const auto without = [&](const std::vector<PhaseFit::Point>& all) {
      std::vector<PhaseFit::Point> kept = all;
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(out));
      return PhaseFit(kept);
    };
    const double batch = points.back()[out].batch;
    double predicted = rest_.empty() ? 0 : without(points.back()).seconds(batch);
    for (std::size_t p = 0; p < phases_.size(); ++p)
      if (sequential_[p]) predicted += without(points[p]).seconds(batch);
    leave_one_out_.push_back({entries_[out]->batch, walls[out], predicted});
  }
}

double BatchModel::step_s(double batch) const {
  double sum = rest_s(batch);
  for (std::size_t p = 0; p < phases_.size(); ++p)
    if (sequential_[p]) sum += phases_[p].fit.seconds(batch);
  return sum;
}

double BatchModel::mean_error() const {
  double sum = 0;
  for (const LeaveOneOut& size : leave_one_out_) sum += std::abs(size.error());
  return sum / static_cast<double>(leave_one_out_.size());
}

double BatchModel::worst_error() const {
  double worst = 0;
  for (const LeaveOneOut& size : leave_one_out_) worst = std::max(worst, std::abs(size.error()));
  return worst;
}

traces::TraceBatch BatchModel::at(int batch) const {
  const auto distance = [&](const traces::TraceBatch* entry) {
    return std::abs(portable_log(static_cast<double>(entry->batch) / batch));
  };
  std::vector<const traces::TraceBatch*> near = entries_;
  std::stable_sort(near.begin(), near.end(), [&](const auto* a, const auto* b) { return distance(a) < distance(b); });
  const traces::TraceBatch &from = *near[0], &other = *near[1];
  const auto straight = [&](double y0, double y1) { return line_through(batch, from.batch, y0, other.batch, y1); };

  traces::TraceBatch out = from;
  out.batch = batch;
  for (auto& [kind, bytes] : out.memory_bytes) {
    const auto there = other.memory_bytes.find(kind);
    if (there != other.memory_bytes.end()) bytes = straight(bytes, there->second);
  }
  for (std::size_t p = 0; p < out.phases.size(); ++p) {
    traces::TracePhase& phase = out.phases[p];
    phase.flops = straight(phase.flops, other.phases[p].flops);
    phase.bytes_read = straight(phase.bytes_read, other.phases[p].bytes_read);
    phase.bytes_written = straight(phase.bytes_written, other.phases[p].bytes_written);
  }
  scale_times(out, from.batch);
  out.carried = describe_prediction(batch);
  return out;
}

/// Scales the times of an entry, which was recorded at `from_batch` images, to its batch.
void BatchModel::scale_times(traces::TraceBatch& entry, int from_batch) const {
  const int batch = entry.batch;
  const double rest = rest_.empty() ? 1 : rest_s(batch) / rest_s(from_batch);
  // For each step, when the previous phase ended: as recorded, and as scaled.
  std::vector<double> end(entry.wall_s.size(), 0), new_end(entry.wall_s.size(), 0);
  for (std::size_t p = 0; p < entry.phases.size(); ++p) {
    traces::TracePhase& phase = entry.phases[p];
    const double factor = phases_[p].fit.seconds(batch) / phases_[p].fit.seconds(from_batch);
    for (std::size_t i = 0; i < end.size(); ++i) {
      const double length = phase.seconds[i];
      phase.seconds[i] *= factor;
      phase.host_s[i] *= factor;
      if (!sequential_[p]) continue;
      const double gap = std::max(0.0, phase.start_s[i] - end[i]);
      end[i] = std::max(end[i], phase.start_s[i] + length);
      phase.start_s[i] = new_end[i] + gap * rest;
      new_end[i] = phase.start_s[i] + phase.seconds[i];
    }
  }
  for (std::size_t i = 0; i < end.size(); ++i) {
    const double before = entry.wall_s[i];
    entry.wall_s[i] = new_end[i] + std::max(0.0, before - end[i]) * rest;
    for (std::size_t p = 0; p < entry.phases.size(); ++p)
      if (!sequential_[p]) entry.phases[p].start_s[i] *= entry.wall_s[i] / before;
  }
}

/// The rule, the error and the warnings of a prediction at `batch`.
traces::CarriedBatch BatchModel::describe_prediction(int batch) const {
  double squares = 0;
  for (const LeaveOneOut& size : leave_one_out_) squares += size.error() * size.error();
  // Beyond the recorded sizes the error grows with every doubling.
  const double smallest = entries_.front()->batch, largest = entries_.back()->batch;
  const double beyond = std::max({1.0, smallest / batch, batch / largest});
  traces::CarriedBatch carried;
  carried.relative_error = 1.96 * std::sqrt(squares / static_cast<double>(leave_one_out_.size())) *
                           (1 + portable_log(beyond) / portable_log(2));
  carried.rule = fmt::format(
      "at batch {} by a fit over {} batch sizes from {} to {} (left out one by one: {:.1f} % mean, "
      "{:.1f} % at worst)",
      batch, entries_.size(), smallest, largest, 100 * mean_error(), 100 * worst_error());
  if (beyond > 1)
    carried.warnings.push_back(
        fmt::format("batch {} lies beyond the calibrated range of {} to {}", batch, smallest, largest));
  if (entries_.size() < kMinSizesForError)
    carried.warnings.push_back(
        fmt::format("the error of the fit over batch sizes is known from {} of them only; record {} or more",
                    entries_.size(), kMinSizesForError));
  return carried;
}

std::size_t entry_for(traces::StepTrace& trace, const std::string& stage, int batch) {
  std::vector<const traces::TraceBatch*> entries;
  std::string recorded;
  for (std::size_t i = 0; i < trace.batches.size(); ++i) {
    const traces::TraceBatch& entry = trace.batches[i];
    if (entry.stage != stage) continue;
    if (entry.batch == batch) return i;
    entries.push_back(&entry);
    recorded += (recorded.empty() ? "" : ", ") + std::to_string(entry.batch);
  }
  if (entries.size() < BatchModel::kMinSizes)
    throw ConfigError(
        fmt::format("expected a batch size that the trace has recorded ({}); others take a fit over at "
                    "least {} sizes: `ganymede calibrate --model {} --batch 8,16,32,64,128,256`",
                    recorded, BatchModel::kMinSizes, trace.model));
  for (const traces::TraceBatch* entry : entries)
    for (std::size_t p = 0; p < entry->phases.size(); ++p)
      if (entry->phases.size() != entries.front()->phases.size() ||
          entry->phases[p].name != entries.front()->phases[p].name)
        throw ConfigError(
            fmt::format("the trace's batches {} and {} have different phases: no batch size between them "
                        "can be worked out",
                        entries.front()->batch, entry->batch));
  trace.batches.push_back(BatchModel(entries).at(batch));
  return trace.batches.size() - 1;
}

}  // namespace ganymede::calibration
