#include "sim/cluster/throughputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "common/csv.hpp"
#include "common/embedded.hpp"
#include "common/plain_text.hpp"
#include "common/random.hpp"

namespace ganymede::sim {
namespace {

double number_in(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
  const std::string& text = table.at(row, column);
  const auto value = parse_number<double>(text);
  if (!value || !(*value > 0)) table.fail(row, column, fmt::format("found \"{}\", expected a number above 0", text));
  return *value;
}

std::string_view built_in(const std::string& name) {
  for (const EmbeddedText& text : embedded_throughputs())
    if (text.name == name) return text.text;
  return "";
}

/// The batch of one GPU; 1 if the model has one batch only.
double batch_of(const MeasuredModel& model) {
  double batch = 1;
  std::from_chars(model.second.data(), model.second.data() + model.second.size(), batch);
  return batch;
}

/// 1 for equal sizes, less the more factors of two lie between them.
double nearness(double a, double b, double scale) {
  const double distance = portable_log(a / b) / portable_log(2) / scale;
  return portable_exp(-distance * distance / 2);
}

// Variances of logarithms, and factors of two over which they are alike, chosen by leaving out one measured row at a
// time (docs/cluster.md says with which error).
constexpr double kBatchScale = 2, kGpuScale = 1.5;

double covariance(const SoloPoint& a, const SoloPoint& b) {
  const bool gpu = a.gpu == b.gpu, model = a.model == b.model, place = gpu && a.spread == b.spread;
  const double batch = model ? nearness(a.batch, b.batch, kBatchScale) : 0;
  const double count = place ? nearness(a.gpus, b.gpus, kGpuScale) : 0;
  double sum = 4;                                      // what all rates have in common
  if (model) sum += 4 + batch;                         // a model's speed, by its batch
  sum += 0.4 * count;                                  // how GPUs scale
  if (gpu) sum += 0.9 * batch;                         // how a GPU suits a model
  sum += 0.15 * batch * count;                         // how a model scales there
  if (a.gpus == b.gpus && place) sum += 0.05 * batch;  // and its steps between numbers of GPUs
  return sum;
}
constexpr double noise_of(const SoloPoint& /*point*/) { return 1.5e-3; }

double covariance(const PairPoint& a, const PairPoint& b) {
  const bool gpu = a.gpu == b.gpu, beside = a.beside == b.beside, model = a.model == b.model;
  const double own = model ? nearness(a.batch, b.batch, kBatchScale) : 0;
  const double other = beside ? nearness(a.batch_beside, b.batch_beside, kBatchScale) : 0;
  double sum = 2 + 0.5 * own + 0.1 * other + 0.05 * own * other;
  if (model && beside) sum += 0.05;
  if (gpu) sum += 0.1 + 0.1 * own + 0.1 * other + 0.05 * own * other;
  return sum;
}
constexpr double noise_of(const PairPoint& /*point*/) { return 2e-3; }

/// Solves matrix x = right by Cholesky's decomposition; the symmetric, positive definite matrix is lost.
std::vector<double> solved(std::vector<std::vector<double>>& matrix, std::vector<double> right) {
  const std::size_t n = right.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= matrix[i][k] * matrix[j][k];
      matrix[i][j] = i == j ? std::sqrt(sum) : sum / matrix[j][j];
    }
    for (std::size_t k = 0; k < i; ++k) right[i] -= matrix[i][k] * right[k];
    right[i] /= matrix[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) right[i] -= matrix[k][i] * right[k];
    right[i] /= matrix[i][i];
  }
  return right;
}

}  // namespace

Throughputs::Throughputs() : Throughputs(built_in("rates.csv"), built_in("shared_gpu.csv")) {}

Throughputs::Throughputs(std::string_view rates_text, std::string_view shared_text) {
  const CsvTable rates = CsvTable::parse(rates_text, "rates.csv");
  for (const CsvTable::Row& row : rates.rows()) {
    const MeasuredModel model{rates.at(row, "model"), rates.at(row, "batch")};
    const bool spread = rates.at(row, "machines") == "several";
    solo_[{lower_case(rates.at(row, "gpu")), model, spread}][static_cast<int>(number_in(rates, row, "gpus"))] =
        number_in(rates, row, "steps_per_s");
  }
  const CsvTable shared = CsvTable::parse(shared_text, "shared_gpu.csv");
  for (const CsvTable::Row& row : shared.rows()) {
    const std::string gpu = lower_case(shared.at(row, "gpu"));
    const MeasuredModel a{shared.at(row, "model"), shared.at(row, "batch")};
    const MeasuredModel b{shared.at(row, "beside"), shared.at(row, "batch_beside")};
    const double speed_a = number_in(shared, row, "speed"), speed_b = number_in(shared, row, "speed_beside");
    pairs_[{gpu, a, b}] = {speed_a, speed_b};
    pairs_[{gpu, b, a}] = {speed_b, speed_a};
  }
}

bool Throughputs::is_measured(const MeasuredModel& model) const {
  return std::any_of(solo_.begin(), solo_.end(), [&](const auto& row) { return std::get<1>(row.first) == model; });
}

bool Throughputs::has(const MeasuredModel& model) const {
  if (is_measured(model)) return true;
  double least = 0, most = 0;
  for (const auto& [key, rates] : solo_) {
    const MeasuredModel& other = std::get<1>(key);
    if (other.first != model.first || other.second.empty()) continue;
    least = least == 0 ? batch_of(other) : std::min(least, batch_of(other));
    most = std::max(most, batch_of(other));
  }
  return !model.second.empty() && batch_of(model) >= least / 2 && batch_of(model) <= most;
}

/// The measured batch of the model on that GPU that is the next larger one, or itself; none if no such batch ran there.
std::optional<MeasuredModel> Throughputs::at_least(const std::string& gpu, const MeasuredModel& model) const {
  std::optional<MeasuredModel> next;
  for (const auto& [key, rates] : solo_) {
    const auto& [where, other, spread] = key;
    if (where != gpu || other.first != model.first || batch_of(other) < batch_of(model)) continue;
    if (!next || batch_of(other) < batch_of(*next)) next = other;
  }
  return next;
}

std::vector<std::string> Throughputs::models() const {
  std::set<std::string> names;
  for (const auto& [key, rates] : solo_) {
    const auto& [model, batch] = std::get<1>(key);
    names.insert(batch.empty() ? model : model + " " + batch);
  }
  return {names.begin(), names.end()};
}

double Throughputs::likely_alone(const SoloPoint& point) const {
  if (!likely_solo_) {
    std::vector<SoloPoint> points;
    std::vector<double> rates;
    for (const auto& [key, by_gpus] : solo_)
      for (const auto& [gpus, rate] : by_gpus) {
        const auto& [gpu, model, spread] = key;
        points.push_back({gpu, model.first, batch_of(model), spread, static_cast<double>(gpus)});
        rates.push_back(rate);
      }
    likely_solo_.emplace(std::move(points), rates);
  }
  return likely_solo_->at(point);
}

double Throughputs::likely_beside(const PairPoint& point) const {
  auto known = likely_pairs_.find(point.model);
  if (known == likely_pairs_.end()) {
    std::vector<PairPoint> points;
    std::vector<double> speeds;
    for (const auto& [key, both] : pairs_) {
      const auto& [gpu, a, b] = key;
      if (a.first != point.model) continue;
      points.push_back({gpu, a.first, b.first, batch_of(a), batch_of(b)});
      speeds.push_back(both.first);
    }
    known = likely_pairs_.emplace(point.model, LikelyValues<PairPoint>(std::move(points), speeds)).first;
  }
  return std::min(1.0, known->second.at(point));
}

std::optional<double> Throughputs::alone(const std::string& gpu, const MeasuredModel& model, int gpus,
                                         bool spread) const {
  const std::string where = lower_case(gpu);
  const bool apart = spread && gpus > 1;
  if (const auto found = solo_.find({where, model, apart}); found != solo_.end())
    if (const auto exact = found->second.find(gpus); exact != found->second.end()) return exact->second;
  if (!at_least(where, model)) return std::nullopt;
  int most = 1;  // GPUs of a job of this model that were measured
  for (const auto& [key, rates] : solo_)
    if (std::get<1>(key).first == model.first) most = std::max(most, rates.rbegin()->first);
  const int like = std::min(gpus, most);
  if (like < gpus) return *alone(gpu, model, like, spread) * gpus / like;
  return likely_alone({where, model.first, batch_of(model), apart, static_cast<double>(gpus)});
}

bool Throughputs::is_measured_beside(const std::string& gpu, const std::string& model) const {
  const std::string where = lower_case(gpu);
  const auto row = pairs_.lower_bound({where, {model, ""}, {"", ""}});
  return row != pairs_.end() && std::get<0>(row->first) == where && std::get<1>(row->first).first == model;
}

/// The speeds of a job that nobody measured beside another, first, and of one of whose pairs are known. The first is
/// taken to keep a GPU of its own busy all the time. A job that keeps it busy for a share u of its time, and computes
/// elsewhere between, goes 1 / (1 + u v) times as fast beside one that does so for v if the GPU serves the two in turns
/// (machine repairmen with processor sharing; Kleinrock, "Queueing Systems", volume 2, 1976, chapter 4), so that a copy
/// of itself beside it tells u. Which of the two gets more follows from how the known one does beside other models.
std::optional<SharedSpeeds> Throughputs::likely_sharing(const std::string& gpu, const MeasuredModel& known) const {
  const auto [entry, is_new] = likely_sharing_.try_emplace({gpu, known});
  if (!is_new) return entry->second;
  const std::optional<MeasuredModel> like = at_least(gpu, known);
  const auto twins = like ? pairs_.find({gpu, *like, *like}) : pairs_.end();
  if (twins == pairs_.end()) return std::nullopt;
  const double busy = std::sqrt(std::clamp(1 / twins->second.first - 1, 0.0, 1.0));
  double logs = 0;
  int others = 0;
  for (auto row = pairs_.lower_bound({gpu, *like, {"", ""}}); row != pairs_.end(); ++row) {
    const auto& [where, model, beside] = row->first;
    if (where != gpu || model != *like) break;
    if (beside.first == known.first) continue;
    logs += portable_log(row->second.second / row->second.first);
    ++others;
  }
  const double ratio = others > 0 ? portable_exp(logs / others) : 1, both = 2 / (1 + busy);
  entry->second = {std::min(1.0, both * ratio / (1 + ratio)), std::min(1.0, both / (1 + ratio)), true};
  return entry->second;
}

std::optional<SharedSpeeds> Throughputs::together(const std::string& gpu, const MeasuredModel& a,
                                                  const MeasuredModel& b) const {
  const std::string where = lower_case(gpu);
  if (const auto found = pairs_.find({where, a, b}); found != pairs_.end()) return found->second;
  const bool knows_a = is_measured_beside(where, a.first), knows_b = is_measured_beside(where, b.first);
  if (!knows_a && !knows_b) return std::nullopt;
  if (!knows_a) return likely_sharing(where, b);
  if (!knows_b) {
    std::optional<SharedSpeeds> speeds = likely_sharing(where, a);
    if (speeds) std::swap(speeds->first, speeds->second);
    return speeds;
  }
  // A job that ran with larger batches fits.
  bool fits = false;
  for (auto row = pairs_.lower_bound({where, {a.first, ""}, {"", ""}}); row != pairs_.end() && !fits; ++row) {
    const auto& [there, larger_a, larger_b] = row->first;
    if (there != where || larger_a.first != a.first) break;
    fits = larger_b.first == b.first && batch_of(larger_a) >= batch_of(a) && batch_of(larger_b) >= batch_of(b);
  }
  if (!fits) return std::nullopt;
  const double batch_a = batch_of(a), batch_b = batch_of(b);
  return SharedSpeeds{likely_beside({where, a.first, b.first, batch_a, batch_b}),
                      likely_beside({where, b.first, a.first, batch_b, batch_a})};
}

template <class Point>
LikelyValues<Point>::LikelyValues(std::vector<Point> points, const std::vector<double>& values)
    : points_(std::move(points)) {
  std::vector<double> logs;
  for (const double value : values) logs.push_back(portable_log(value));
  mean_ = logs.empty() ? 0 : std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
  std::vector<std::vector<double>> matrix;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    logs[i] -= mean_;
    matrix.emplace_back();
    for (std::size_t j = 0; j <= i; ++j) matrix[i].push_back(covariance(points_[i], points_[j]));
    matrix[i][i] += noise_of(points_[i]);
  }
  weights_ = solved(matrix, std::move(logs));
}

template <class Point>
double LikelyValues<Point>::at(const Point& point) const {
  double sum = mean_;
  for (std::size_t i = 0; i < points_.size(); ++i) sum += weights_[i] * covariance(point, points_[i]);
  return portable_exp(sum);
}

template class LikelyValues<SoloPoint>;
template class LikelyValues<PairPoint>;

}  // namespace ganymede::sim
