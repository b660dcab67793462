#include "report/clusters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/json_value.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
constexpr std::size_t kMostJobsShown = 30;

/// A line on what was simulated at message fidelity; else nothing.
std::string simulated_messages(const Json& provenance) {
  if (provenance.value("fidelity", "") != "message") return "";
  return fmt::format("every step and message on SimGrid: {:.0f} messages\n",
                     provenance.at("messages_simulated").get<double>());
}

std::string summary_lines(const Json& result, std::size_t width) {
  const Json& summary = result.at("summary");
  Table table({"what", ">mean", ">median", ">95th percentile", ">longest"});
  const auto times = [&](const char* name, const char* key) {
    const Json& of = summary.at(key);
    table.add({name, clock(of.at("mean").get<double>()), clock(of.at("median").get<double>()),
               clock(of.at("p95").get<double>()), clock(of.at("max").get<double>())});
  };
  times("completion", "completion_s");
  times("wait", "wait_s");
  const Json& slow = summary.at("slowdown");
  const auto factor = [&](const char* key) { return fmt::format("{:.2f} x", slow.at(key).get<double>()); };
  table.add({"slow-down", factor("mean"), factor("median"), factor("p95"), factor("max")});
  const Json& energy = result.at("energy");
  return fmt::format("{} jobs on {} GPUs in {}, scheduler {}, placement {}\n\n{}\n", summary.at("jobs").dump(),
                     summary.at("gpus").dump(), clock(summary.at("total_s").get<double>()),
                     result.at("scheduler").get<std::string>(), result.at("placement").get<std::string>(),
                     table.text(width)) +
         fmt::format("GPUs held {}, busy {}; Jain's fairness {:.3f}; {} preemptions; {} deadlines missed\n",
                     percent(summary.at("held").get<double>()), percent(summary.at("gpu_busy").get<double>()),
                     summary.at("jain_fairness").get<double>(), summary.at("preemptions").dump(),
                     summary.at("missed_deadlines").dump()) +
         fmt::format("bill {} USD{}\n", usd_cell(result.at("cost").at("total_usd")),
                     energy.is_null() ? ""
                                      : fmt::format("; {:.1f} kWh, {:.1f} kg CO2e", energy.at("kwh").get<double>(),
                                                    energy.at("kg_co2e").get<double>())) +
         simulated_messages(result.at("provenance"));
}

}  // namespace

Table cluster_owners(const Json& result) {
  Table table({"owner", ">jobs", ">GPU hours", ">mean slow-down", ">USD"});
  for (const Json& owner : result.at("owners")) {
    const bool idle = owner.at("owner").is_null();
    table.add({idle ? "(nobody)" : owner.at("owner").get<std::string>(), idle ? "" : owner.at("jobs").dump(),
               idle ? "" : fmt::format("{:.1f}", owner.at("gpu_hours").get<double>()),
               idle ? "" : fmt::format("{:.2f} x", owner.at("slowdown_mean").get<double>()),
               usd_cell(owner.at("usd"))});
  }
  return table;
}

/// Whether a job has shared its GPU with another one, and whether how fast the two were there was measured.
std::string sharing(const Json& job) {
  bool shared = false, estimated = false;
  for (const Json& stay : job.at("stays")) {
    shared = shared || stay.contains("packed");
    estimated = estimated || stay.contains("estimated");
  }
  return estimated ? "at estimated speed" : shared ? "at measured speed" : "no";
}

Table cluster_jobs(const Json& result, std::size_t most) {
  std::vector<const Json*> jobs;
  for (const Json& job : result.at("jobs")) jobs.push_back(&job);
  if (jobs.size() > most) {
    std::stable_sort(jobs.begin(), jobs.end(), [](const Json* a, const Json* b) {
      return a->at("slowdown").get<double>() > b->at("slowdown").get<double>();
    });
    jobs.resize(most);
  }
  std::vector<std::string> columns = {"job",   "owner", "workload",   ">GPUs",     ">arrival",
                                      ">wait", ">run",  ">slow-down", ">preempted"};
  const bool some_share = std::any_of(jobs.begin(), jobs.end(), [](const Json* job) { return sharing(*job) != "no"; });
  if (some_share) columns.push_back("shared a GPU");
  Table table(columns);
  for (const Json* job : jobs) {
    std::vector<std::string> row = {job->at("job").get<std::string>(),
                                    job->at("owner").get<std::string>(),
                                    job->at("workload").get<std::string>(),
                                    job->at("gpus").dump(),
                                    clock(job->at("arrival_s").get<double>()),
                                    clock(job->at("wait_s").get<double>()),
                                    clock(job->at("run_s").get<double>()),
                                    fmt::format("{:.2f} x", job->at("slowdown").get<double>()),
                                    job->at("preemptions").dump()};
    if (some_share) row.push_back(sharing(*job));
    table.add(std::move(row));
  }
  return table;
}

std::string cluster_text(const Json& result, std::size_t width) {
  std::string out = summary_lines(result, width);
  const std::size_t jobs = result.at("jobs").size();
  out += jobs > kMostJobsShown ? fmt::format("\nThe {} jobs that were slowed down most:\n", kMostJobsShown) : "\n";
  out += cluster_jobs(result, kMostJobsShown).text(width) + "\n" + cluster_owners(result).text(width);
  const Json& provenance = result.at("provenance");
  if (const auto groups = int64_of(provenance.at("contending_groups")); groups > 0)
    out += fmt::format("\n{} groups of jobs shared links; the steps of {} of them are approximate{}.\n", groups,
                       provenance.at("approximate_groups").dump(),
                       provenance.contains("approximate_steps_within")
                           ? ", within " + percent(provenance["approximate_steps_within"].get<double>())
                           : "");
  for (const Json& warning : provenance.at("warnings")) out += "warning: " + warning.get<std::string>() + "\n";
  return out;
}

std::string cluster_csv(const Json& result) {
  const std::vector<std::string> columns = {"job",     "owner",    "workload",  "gpus",        "arrival_s",
                                            "ready_s", "start_s",  "end_s",     "wait_s",      "run_s",
                                            "alone_s", "slowdown", "gpu_hours", "preemptions", "restart_s"};
  Table table(columns);
  for (const Json& job : result.at("jobs")) {
    std::vector<std::string> row;
    for (const std::string& column : columns)
      row.push_back(job.at(column).is_string() ? job.at(column).get<std::string>() : job.at(column).dump());
    table.add(std::move(row));
  }
  return table.csv();
}

}  // namespace ganymede::report
