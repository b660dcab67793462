#include "calibration/kernels/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

constexpr std::size_t kScalarCount = static_cast<std::size_t>(Scalar::kCount);

/// The groups that a row's published algorithm may belong to; empty: unknown, the fastest is taken.
std::vector<Group> groups_of(const MeasuredKernel& row) {
  if (row.set != "conv3x3") return {};
  if (row.algorithm == "winograd") return {Group::kWinogradFused};
  if (row.algorithm == "winograd_nonfused") return {Group::kWinogradNonfused};
  if (row.algorithm == "fft") return {Group::kFft};
  return {Group::kDirect};
}

constexpr double kPrior = 0.003;  // mean error that a scalar may cost for each unit of its squared logarithm

struct Predictor {
  Parameters parameters;
  RowPredictor rows;

  Predictor(const Parameters& given, const std::vector<MeasuredKernel>& all) : parameters(given), rows(given, all) {}

  /// The candidate of the row's own algorithm, or the fastest one.
  KernelModel::Chosen chosen(const MeasuredKernel& row) const {
    const KernelModel& model = rows.model_of(row);
    const std::vector<Group> groups = groups_of(row);
    if (groups.empty()) return model.chosen(row.kernel, MeasuringMethod::load(row));
    const Candidates candidates = candidates_of(row.kernel, model.chip(), *parameters);
    KernelModel::Chosen best{{}, -1};
    for (const Candidate& c : candidates) {
      if (std::find(groups.begin(), groups.end(), c.group) == groups.end()) continue;
      const double seconds = model.seconds_of(c, MeasuringMethod::load(row));
      if (best.seconds < 0 || seconds < best.seconds) best = {c, seconds};
    }
    return best.seconds < 0 ? model.chosen(row.kernel, MeasuringMethod::load(row)) : best;
  }
};

double loss_of(const KernelParameters& parameters, const std::vector<MeasuredKernel>& rows) {
  const Predictor predictor(std::make_shared<const KernelParameters>(parameters), rows);
  double sum = 0;
  for (const MeasuredKernel& row : rows) {
    const double expected = predictor.rows.method().expected_s(row, predictor.chosen(row).seconds);
    sum += std::min(1.0, std::abs(std::log(expected / row.measured_s)));
  }
  // Parameters on which the rows say little stay near the physical start values.
  double unusual = 0;
  for (std::size_t i = 0; i < kScalarCount; ++i) {
    const double ratio = std::log(parameters.scalars[i] / range_of(static_cast<Scalar>(i)).start);
    unusual += ratio * ratio;
  }
  return sum / static_cast<double>(rows.size()) + kPrior * unusual;
}

/// Every nth row of each set, so that small sets count too.
std::vector<MeasuredKernel> sample_of(const std::vector<MeasuredKernel>& rows, std::size_t most) {
  std::map<std::pair<std::string, std::string>, std::vector<const MeasuredKernel*>> parts;
  for (const MeasuredKernel& row : rows) parts[{row.set, row.gpu}].push_back(&row);
  std::vector<MeasuredKernel> sample;
  for (const auto& [key, part] : parts) {
    const std::size_t step = std::max<std::size_t>(1, part.size() / most);
    for (std::size_t i = 0; i < part.size(); i += step) sample.push_back(*part[i]);
  }
  return sample;
}

/// Host floors of the GPUs of the rows, with the device times of the parameters.
void fit_floors(KernelParameters& parameters, const std::vector<MeasuredKernel>& rows) {
  const Predictor predictor(std::make_shared<const KernelParameters>(parameters), rows);
  std::map<std::pair<std::string, std::string>, std::vector<MeasuringMethod::Pair>> pairs;
  std::map<std::string, double> delays;
  for (const MeasuredKernel& row : rows) {
    const std::string name = MeasuringMethod::operation(row);
    if (name.empty()) continue;
    pairs[{row.gpu, name}].push_back({row.measured_s, predictor.chosen(row).seconds});
    delays[name] = predictor.rows.method().delay_share(row);
  }
  const auto expected = MeasuringMethod::expected_floors(rows);
  for (auto& [key, measured] : pairs)
    parameters.floors[find_gpu_sheet(key.first)->name][key.second] =
        key.second == "conv3x3" ? MeasuringMethod::typical_delay(measured, expected.at(key))
                                : MeasuringMethod::best_floor(measured, delays[key.second], expected.at(key));
}

/// One value at a time: tries steps up and down, halves them when neither helps.
class CoordinateSearch {
 public:
  CoordinateSearch(KernelParameters& parameters, const std::vector<MeasuredKernel>& rows)
      : parameters_(parameters), rows_(rows), best_(loss_of(parameters, rows)) {
    for (const MeasuredKernel& row : rows)
      if (row.set == "elementwise") streamed_.insert(find_gpu_sheet(row.gpu)->name);
  }

  void run(int passes) {
    for (int pass = 0; pass < passes; ++pass) {
      const double step = pass == 0 ? 0.25 : pass == 1 ? 0.12 : 0.05;
      for (std::size_t i = 0; i < kScalarCount; ++i) {
        const ScalarRange& range = range_of(static_cast<Scalar>(i));
        improve(parameters_.scalars[i], range.low, range.high, step);
      }
      for (auto& [name, shares] : parameters_.gpus) {
        improve(shares.arithmetic, 0.9, 1.15, 0.5 * step);
        if (streamed_.contains(name)) improve(shares.memory, 0.5, 1.0, 0.5 * step);
      }
    }
  }

 private:
  void improve(double& value, double low, double high, double step) {
    for (const double factor : {1 + step, 1 / (1 + step)}) {
      bool better = false;
      for (int i = 0; i < 4; ++i) {
        const double before = value;
        value = std::clamp(value * factor, low, high);
        const double loss = value == before ? best_ : loss_of(parameters_, rows_);
        if (loss >= best_ - 1e-7) {
          value = before;
          break;
        }
        best_ = loss, better = true;
      }
      if (better) return;
    }
  }

  KernelParameters& parameters_;
  const std::vector<MeasuredKernel>& rows_;
  double best_;
  std::set<std::string> streamed_;  // GPUs whose memory rate the rows tell
};

/// Solves a x = b for a symmetric positive definite matrix, by Cholesky.
std::vector<double> solved(std::vector<double> a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return b;
}

struct Sample {
  Features features;
  double target, weight;
  std::string chip;
};

/// Weighted least squares, reweighted so that absolute errors count; small values are preferred, and lines near
/// to constant.
Residual residual_of(const std::vector<Sample>& samples, double prior, double prior_of_constant) {
  const std::size_t n = Residual::size();
  std::vector<double> values(n, 0);
  for (int round = 0; round < 8; ++round) {
    std::vector<double> a(n * n, 0), b(n, 0);
    const Residual now(values);
    double weights = 0;
    for (const Sample& sample : samples) {
      const double weight = sample.weight / (std::abs(sample.target - now.at(sample.features)) + 0.03);
      weights += weight;
      const auto terms = Residual::terms(sample.features);
      for (const auto& [i, x] : terms) {
        b[i] += weight * x * sample.target;
        for (const auto& [j, y] : terms) a[i * n + j] += weight * x * y;
      }
    }
    const auto count = static_cast<double>(samples.size());
    const double ridge = prior * (1 + 1e-4 * count) * weights / count;
    for (std::size_t i = 0; i + 1 < n; ++i) a[i * n + i] += ridge;
    for (const auto& [first, knots] : Residual::features())
      for (std::size_t i = first; i + 1 < first + knots; ++i) {
        const double smooth = 4 * ridge;
        a[i * n + i] += smooth, a[(i + 1) * n + i + 1] += smooth;
        a[i * n + i + 1] -= smooth, a[(i + 1) * n + i] -= smooth;
      }
    a[n * n - 1] += prior_of_constant * weights / count;
    values = solved(std::move(a), std::move(b));
  }
  for (double& value : values) value = std::clamp(std::round(value * 1e4) / 1e4, -3.0, 3.0);
  return Residual(std::move(values));
}

/// DeepBench's rows are few but hold what the others lack (aligned layers, gradients, time without the host).
double set_weight(const MeasuredKernel& row) { return row.set.starts_with("deepbench") ? 15 : 1; }

/// In rows that a knot needs before it differs from its neighbours and from 0: of all chips, and of one chip, which
/// must not follow single rows. Chosen on the shapes that are left out (0.1 to 2, and 3 to 10).
constexpr double kSharedPrior = 0.5, kOwnPrior = 3;
constexpr double kLittle = 0.01;  // the constant of all chips is free

/// The rest of a group's residual on each chip.
void fit_chips(KernelParameters& parameters, std::size_t group, const std::vector<Sample>& samples) {
  std::map<std::string, std::vector<Sample>> by_chip;
  for (Sample sample : samples) {
    sample.target -= parameters.residuals[group].at(sample.features);
    by_chip[sample.chip].push_back(sample);
  }
  for (const auto& [chip, own] : by_chip)
    parameters.chips[chip].residuals[group] = residual_of(own, kOwnPrior, kOwnPrior);
}

void fit_residuals(KernelParameters& parameters, const std::vector<MeasuredKernel>& rows) {
  for (Residual& residual : parameters.residuals) residual = Residual();
  parameters.chips.clear();
  const Predictor predictor(std::make_shared<const KernelParameters>(parameters), rows);
  std::array<std::vector<Sample>, kGroups> samples;
  for (const MeasuredKernel& row : rows) {
    const auto [candidate, seconds] = predictor.chosen(row);
    const double device = predictor.rows.method().device_s(row);
    if (!predictor.rows.method().tells_device(row, seconds) || device <= 0) continue;
    const double launch = candidate.launch_s, work = std::max(device - launch, 0.2 * device);
    const double target = std::clamp(std::log(work / (seconds - launch)), -1.5, 1.5);
    samples[static_cast<std::size_t>(candidate.group)].push_back(
        {candidate.features, target, set_weight(row) * device / row.measured_s, chip_key(*find_gpu_sheet(row.gpu))});
  }
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (samples[i].size() < 20) continue;
    parameters.residuals[i] = residual_of(samples[i], kSharedPrior, kLittle);
    fit_chips(parameters, i, samples[i]);
  }
}

}  // namespace

KernelParameters fitted(const std::vector<MeasuredKernel>& rows) {
  KernelParameters parameters;
  std::set<std::string> gpus;
  for (const MeasuredKernel& row : rows) gpus.insert(find_gpu_sheet(row.gpu)->name);
  for (const std::string& gpu : gpus) parameters.gpus[gpu] = {1, assumed_memory_share(*find_gpu_sheet(gpu), {})};
  const std::vector<MeasuredKernel> sample = sample_of(rows, 160);
  for (int round = 0; round < 2; ++round) {
    fit_floors(parameters, sample_of(rows, 600));
    CoordinateSearch(parameters, sample).run(3);
    // Where no rows tell the memory's share, it follows from those that do.
    for (auto& [gpu, shares] : parameters.gpus)
      if (!parameters.floors.contains(gpu)) shares.memory = assumed_memory_share(*find_gpu_sheet(gpu), parameters);
  }
  for (int round = 0; round < 2; ++round) {
    fit_residuals(parameters, rows);
    fit_floors(parameters, sample_of(rows, 600));
  }
  return parameters;
}

std::uint64_t shape_hash(const Kernel& k) {
  return fnv1a(fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", k.batch, k.in_channels, k.in_h, k.in_w,
                           k.out_channels, k.kernel_h, k.m, k.n, k.k, k.rows, k.cols, k.op));
}

}  // namespace ganymede::calibration
