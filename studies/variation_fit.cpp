#include "studies/variation_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/worker_variation.hpp"
#include "common/random.hpp"

namespace ganymede::studies {
namespace {
/// Cells with this tag are not fitted to; the study's README says why.
constexpr const char* kNotFitted = "not fitted";
/// No row counts more than this in the fit, so that rows with another bottleneck, such as a loader, do not decide it.
constexpr double kMaxError = 0.1;

bool belongs(const documents::ValidatedCell& cell) {
  if (!cell.parts || cell.alternative) return false;
  if (cell.evidence.find("one machine") == std::string::npos ||
      cell.evidence.find("measured batch") == std::string::npos)
    return false;
  return std::find(cell.tags.begin(), cell.tags.end(), kNotFitted) == cell.tags.end();
}

double predicted_s(const VariationRow& row, double deviation, double per_gigabyte) {
  const calibration::WorkerVariation variation{deviation, deviation, per_gigabyte / 1e9};
  return row.alone_s * calibration::synchronization_slowdown(variation, static_cast<std::size_t>(row.gpus), 0, 1,
                                                             row.bytes, row.alone_s) +
         row.collectives_s;
}

std::vector<VariationRow> select(const std::vector<VariationRow>& rows, bool eager) {
  std::vector<VariationRow> out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out), [&](const auto& row) { return row.eager == eager; });
  return out;
}

/// The part of a log in bench/nccl_logs that an error is of; tests/reference/recorded_errors.py measures it again.
struct LogPart {
  const char* name = nullptr;
  std::int64_t from = 0, to = 0;  ///< sizes in bytes; 0: to the largest
  bool fitted = true;             ///< latency and bandwidth are fitted to two sizes
};

/// Errors of a constant that was fitted to data of which the studies hold only a part, as its comment states them.
struct RecordedError {
  const char* constant;
  const char* left_out;
  double left_out_error;  ///< of the fit without them
  double without;         ///< of what was assumed before
  const char* by;         ///< what measures it
  LogPart log = {};
};
constexpr std::int64_t kMiB = 1 << 20;
constexpr const char *kSteps = "bench/step_fits.py", *kLogs = "bench/nccl_logs.py";
constexpr RecordedError kRecorded[] = {
    // calibration/batch_step.hpp; before: the square root of the ratio of the batches.
    {"a step's fixed time (batch)", "tensorflow_2017_single_machine", 0.016, 0.28, kSteps},
    {"a step's fixed time (batch)", "Gavel, ResNet-50", 0.066, 0.40, kSteps},
    {"a step's fixed time (batch)", "Gavel, ResNet-18", 0.28, 0.27, kSteps},
    {"a step's fixed time (batch)", "stylegan3_v100, stylegan3_a100", 0.036, 0.34, kSteps},
    {"a step's fixed time (batch)", "stylegan2_ada_v100", 0.36, 0.15, kSteps},
    // sim/collectives/nccl_cost.cpp, from 1 MiB on with two sizes fitted; before: latencies that no bytes hide.
    {"PCIe: what bytes hide of a hop", "log v100_4_pcie_283", 0.077, 0.108, kLogs, {"v100_4_pcie_283", kMiB}},
    {"PCIe: what bytes hide of a hop", "log v100_4_pcie", 0.011, 0.029, kLogs, {"v100_4_pcie", kMiB}},
    {"PCIe: what bytes hide of a hop", "log gtx1080_2_pcie", 0.025, 0.022, kLogs, {"gtx1080_2_pcie", kMiB}},
    {"PCIe: what bytes hide of a hop", "log rtx2080ti_2_pcie", 0.002, 0.005, kLogs, {"rtx2080ti_2_pcie", kMiB}},
    // The same file, nothing fitted; before: no such cost.
    {"NVSwitch: full slices, last copy", "log a100_8", 0.025, 0.095, kLogs, {"a100_8", 32 * kMiB, 0, false}},
    {"NVSwitch: full slices, last copy", "log a100_8_mpi", 0.039, 0.063, kLogs, {"a100_8_mpi", 32 * kMiB, 0, false}},
    // sim/collectives/nccl_pipeline.cpp, nothing of it fitted; before: no copies.
    {"trees: staged chunks", "log g4dn_2_efa", 0.030, 0.261, kLogs, {"g4dn_2_efa", kMiB / 16, kMiB}},
    // sim/collectives/nccl_tuner.cpp, the latency of EFA from a log of another instance type; before: paid twice.
    {"EFA: what Simple adds to a hop", "log p4d_16_efa", 0.196, 0.987, kLogs, {"p4d_16_efa", 0, kMiB / 16, false}},
    {"EFA: what Simple adds to a hop",
     "log p4d_16_efa_283",
     0.274,
     0.967,
     kLogs,
     {"p4d_16_efa_283", 0, kMiB / 16, false}},
    // sim/collectives/host_paths.cpp, VMs with 8 sockets; before: the rate of one socket.
    {"TCP: growth with sockets", "NVIDIA/nccl issue 209, V100 VMs", 0.01, 0.45, "bench/README.md"},
};

}  // namespace

const std::vector<std::string>& variation_studies() {
  static const std::vector<std::string> names = {"dgx1_weak_scaling", "dlperf_v100", "lambda_pytorch",
                                                 "resnet50_nvidia", "resnet50_p3_placement"};
  return names;
}

std::vector<VariationRow> variation_rows(const std::vector<documents::ValidatedStudy>& studies) {
  std::vector<VariationRow> rows;
  for (const documents::ValidatedStudy& study : studies) {
    const auto& names = variation_studies();
    if (std::find(names.begin(), names.end(), study.name) == names.end()) continue;
    for (const documents::ValidatedCell& cell : study.cells)
      if (belongs(cell))
        rows.push_back({study.name, cell.executor == "eager", cell.gpus.value_or(1), cell.parts->alone_s,
                        cell.parts->collectives_s, cell.parts->bytes, cell.parts->measured_s});
  }
  return rows;
}

double variation_error(const std::vector<VariationRow>& rows, double deviation, double per_gigabyte, double largest) {
  std::map<std::string, std::pair<double, int>> by_study;
  for (const VariationRow& row : rows) {
    auto& [sum, count] = by_study[row.study];
    sum += std::min(largest, std::abs(portable_log(predicted_s(row, deviation, per_gigabyte) / row.measured_s)));
    ++count;
  }
  double sum = 0;
  for (const auto& [study, errors] : by_study) sum += errors.first / errors.second;
  return sum / static_cast<double>(by_study.size());
}

VariationFit fit_variation(const std::vector<VariationRow>& rows) {
  constexpr double kDeviationStep = 5e-4, kGigabyteStep = 2e-3;  // the fit is not known more closely than this
  VariationFit best{0, 0, INFINITY};
  for (int deviation = 0; deviation <= 80; ++deviation)
    for (int work = 0; work <= 100; ++work) {
      const double error = variation_error(rows, deviation * kDeviationStep, work * kGigabyteStep, kMaxError);
      if (error < best.error) best = {deviation * kDeviationStep, work * kGigabyteStep, error};
    }
  return best;
}

std::vector<LeftOut> leave_one_out(const std::vector<documents::ValidatedStudy>& studies) {
  std::vector<LeftOut> out;
  const std::vector<VariationRow> all = variation_rows(studies);
  for (const std::string& name : variation_studies())
    if (std::none_of(all.begin(), all.end(), [&](const auto& row) { return row.study == name; })) return out;
  for (const bool eager : {true, false}) {
    const auto rows = select(all, eager);
    const VariationFit full = fit_variation(rows);
    for (const std::string& name : variation_studies()) {
      std::vector<VariationRow> others, mine;
      for (const VariationRow& row : rows) (row.study == name ? mine : others).push_back(row);
      if (mine.empty() || others.empty()) continue;
      const VariationFit fit = fit_variation(others);
      LeftOut& row = out.emplace_back();
      row.constant = eager ? "workers of eager executors" : "workers of graph executors";
      row.study = name;
      row.rows = static_cast<std::int64_t>(mine.size());
      row.error = variation_error(mine, full.deviation, full.per_gigabyte);
      row.left_out_error = variation_error(mine, fit.deviation, fit.per_gigabyte);
      row.without_it = variation_error(mine, 0, 0);
      row.deviation = fit.deviation;
      row.per_gigabyte_s = fit.per_gigabyte;
    }
  }
  for (const RecordedError& recorded : kRecorded) {
    LeftOut& row = out.emplace_back();
    row.constant = recorded.constant;
    row.study = recorded.left_out;
    row.left_out_error = recorded.left_out_error;
    row.without_it = recorded.without;
    row.by = recorded.by;
    if (const LogPart& log = recorded.log; log.name != nullptr) row.log = {log.name, log.from, log.to, log.fitted};
  }
  return out;
}

}  // namespace ganymede::studies
