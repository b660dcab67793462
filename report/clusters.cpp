#include "report/clusters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/json_value.hpp"
#include "common/usd.hpp"
#include "documents/forms.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
constexpr std::size_t kMostJobsShown = 30;

std::string factor(double times) { return fmt::format("{:.2f} x", times); }

/// A line on what was simulated at message fidelity; else nothing.
std::string simulated_messages(const documents::ClusterProvenance& provenance) {
  if (provenance.fidelity != "message") return "";
  return fmt::format("every step and message on SimGrid: {:.0f} messages\n", provenance.messages_simulated);
}

std::string summary_lines(const documents::ClusterResult& result, std::size_t width) {
  const documents::ClusterSummary& summary = result.summary;
  Table table({"what", ">mean", ">median", ">95th percentile", ">longest"});
  const auto add = [&](const char* name, const documents::JobSpread& of, const auto& shown) {
    table.add({name, shown(of.mean), shown(of.median), shown(of.p95), shown(of.max)});
  };
  add("completion", summary.completion_s, clock);
  add("wait", summary.wait_s, clock);
  add("slow-down", summary.slowdown, factor);
  const auto& energy = result.energy;
  return fmt::format("{} jobs on {} GPUs in {}, scheduler {}, placement {}\n\n{}\n", summary.jobs, summary.gpus,
                     clock(summary.total_s), result.scheduler, result.placement, table.text(width)) +
         fmt::format("GPUs held {}, busy {}; Jain's fairness {:.3f}; {} preemptions; {} deadlines missed\n",
                     percent(summary.held), percent(summary.gpu_busy), summary.jain_fairness, summary.preemptions,
                     summary.missed_deadlines) +
         fmt::format("bill {} USD{}\n", usd_cell(decimal(result.usd)),
                     energy ? fmt::format("; {:.1f} kWh, {:.1f} kg CO2e", energy->kwh, energy->kg_co2e) : "") +
         simulated_messages(result.provenance);
}

}  // namespace

Table cluster_owners(const documents::ClusterResult& result) {
  Table table({"owner", ">jobs", ">GPU hours", ">mean slow-down", ">USD"});
  for (const documents::OwnerShare& owner : result.owners) {
    const bool idle = !owner.owner;
    table.add({owner.owner.value_or("(nobody)"), idle ? "" : std::to_string(owner.jobs),
               owner.gpu_hours ? fmt::format("{:.1f}", *owner.gpu_hours) : "",
               owner.slowdown_mean ? factor(*owner.slowdown_mean) : "", usd_cell(decimal(owner.usd))});
  }
  return table;
}

/// Whether a job has shared its GPU with another one, and whether how fast the two were there was measured.
std::string sharing(const documents::JobLife& job) {
  bool shared = false, estimated = false;
  for (const documents::JobStay& stay : job.stays) {
    shared = shared || stay.packed;
    estimated = estimated || stay.estimated;
  }
  return estimated ? "at estimated speed" : shared ? "at measured speed" : "no";
}

Table cluster_jobs(const documents::ClusterResult& result, std::size_t most) {
  std::vector<const documents::JobLife*> jobs;
  for (const documents::JobLife& job : result.jobs) jobs.push_back(&job);
  if (jobs.size() > most) {
    std::stable_sort(jobs.begin(), jobs.end(), [](const auto* a, const auto* b) { return a->slowdown > b->slowdown; });
    jobs.resize(most);
  }
  std::vector<std::string> columns = {"job",   "owner", "workload",   ">GPUs",     ">arrival",
                                      ">wait", ">run",  ">slow-down", ">preempted"};
  const bool some_share = std::any_of(jobs.begin(), jobs.end(), [](const auto* job) { return sharing(*job) != "no"; });
  if (some_share) columns.push_back("shared a GPU");
  Table table(columns);
  for (const documents::JobLife* job : jobs) {
    std::vector<std::string> row = {job->job,
                                    job->owner,
                                    job->workload,
                                    std::to_string(job->gpus),
                                    clock(job->arrival_s),
                                    clock(job->wait_s),
                                    clock(job->run_s),
                                    factor(job->slowdown),
                                    std::to_string(job->preemptions)};
    if (some_share) row.push_back(sharing(*job));
    table.add(std::move(row));
  }
  return table;
}

std::string cluster_text(const documents::ClusterResult& result, std::size_t width) {
  std::string out = summary_lines(result, width);
  out += result.jobs.size() > kMostJobsShown
             ? fmt::format("\nThe {} jobs that were slowed down most:\n", kMostJobsShown)
             : "\n";
  out += cluster_jobs(result, kMostJobsShown).text(width) + "\n" + cluster_owners(result).text(width);
  const documents::ClusterProvenance& provenance = result.provenance;
  if (provenance.contending_groups > 0)
    out += fmt::format(
        "\n{} groups of jobs shared links; the steps of {} of them are approximate{}.\n", provenance.contending_groups,
        provenance.approximate_groups,
        provenance.approximate_steps_within ? ", within " + percent(*provenance.approximate_steps_within) : "");
  for (const std::string& warning : provenance.warnings) out += "warning: " + warning + "\n";
  return out;
}

std::string cluster_csv(const documents::ClusterResult& result) {
  const std::vector<std::string> columns = {"job",     "owner",    "workload",  "gpus",        "arrival_s",
                                            "ready_s", "start_s",  "end_s",     "wait_s",      "run_s",
                                            "alone_s", "slowdown", "gpu_hours", "preemptions", "restart_s"};
  Table table(columns);
  for (const documents::JobLife& job : result.jobs) {
    const OrderedJson members = documents::written(documents::described(job));
    std::vector<std::string> row;
    for (const std::string& column : columns) {
      const OrderedJson& value = members.at(column);
      row.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    table.add(std::move(row));
  }
  return table.csv();
}

}  // namespace ganymede::report
