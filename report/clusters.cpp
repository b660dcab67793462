#include "report/clusters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "common/json_value.hpp"
#include "common/usd.hpp"
#include "documents/forms.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"
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
  const auto add = [&](const char* name, const documents::JobSpread& spread, const auto& shown) {
    table.add({name, shown(spread.mean), shown(spread.median), shown(spread.p95), shown(spread.max)});
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

/// A row for each owner, and one for what nobody held.
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

/// A row for each job; of more than `most`, those that were slowed down most.
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
  const bool some_ranges = std::any_of(jobs.begin(), jobs.end(), [](const auto* job) { return job->run_low_s; });
  if (some_ranges) columns.push_back("run, 90 %");
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
    if (some_ranges)
      row.push_back(range(job->run_low_s.value_or(job->run_s), job->run_high_s.value_or(job->run_s), clock));
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

std::string cluster_text(const documents::ClusterResult& result, std::size_t width) {
  std::string out = summary_lines(result, width);
  out += result.jobs.size() > kMostJobsShown
             ? fmt::format("\nThe {} jobs that were slowed down most:\n", kMostJobsShown)
             : "\n";
  out += cluster_jobs(result, kMostJobsShown).text(width) + "\n" + cluster_owners(result).text(width);
  const documents::ClusterProvenance& provenance = result.provenance;
  if (provenance.contending_groups > 0)
    out += fmt::format(
        "\n{} groups of jobs shared links; how long the steps of {} of them are was not simulated message by "
        "message.\n",
        provenance.contending_groups, provenance.approximate_groups);
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

namespace {
constexpr std::size_t kMostGanttRows = 400;
constexpr double kGanttWidth = 1000, kGanttRow = 8, kQueueHeight = 160;
constexpr std::array kOwnerColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};  // Okabe, Ito

/// From the first arrival to the last end.
class TimeAxis {
 public:
  explicit TimeAxis(const documents::ClusterResult& result)
      : begin_s_(result.summary.begin_s), total_s_(std::max(1e-9, result.summary.total_s)) {}
  double operator()(double seconds) const { return kGanttWidth * (seconds - begin_s_) / total_s_; }

 private:
  double begin_s_, total_s_;
};

/// The times at both ends of a picture's axis, below it.
std::string ends_html(const documents::ClusterResult& result) {
  const double begin_s = result.summary.begin_s;
  return fmt::format("<p class=ends><span>{}</span><span>{}</span></p>\n", begin_s > 0 ? clock(begin_s) : "0",
                     clock(begin_s + result.summary.total_s));
}

std::string gantt_svg(const documents::ClusterResult& result) {
  const TimeAxis x(result);
  const std::size_t rows = std::min(result.jobs.size(), kMostGanttRows);
  std::map<std::string, std::size_t> owners;
  std::string bars;
  for (std::size_t i = 0; i < rows; ++i) {
    const documents::JobLife& job = result.jobs[i];
    const double y = kGanttRow * static_cast<double>(i);
    const std::size_t owner = owners.try_emplace(job.owner, owners.size()).first->second;
    bars += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"1\" fill=\"#888888\"/>\n",
                        x(job.ready_s), y + kGanttRow / 2, x(job.end_s) - x(job.ready_s));
    for (const documents::JobStay& stay : job.stays)
      bars += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}: {} GPUs of {} on "
          "{}, {} to {}</title></rect>\n",
          x(stay.from_s), y + 1, std::max(0.5, x(stay.to_s) - x(stay.from_s)), kGanttRow - 2,
          kOwnerColors[owner % kOwnerColors.size()], escaped(job.job), stay.gpus, escaped(stay.pool), escaped(stay.on),
          clock(stay.from_s), clock(stay.to_s));
  }
  std::vector<std::pair<std::string, std::string>> key(owners.size());
  for (const auto& [owner, index] : owners) key[index] = {owner, kOwnerColors.at(index % kOwnerColors.size())};
  return fmt::format(
             "<div class=scroll><svg class=queue viewBox=\"0 0 {0} {1}\" height={1} preserveAspectRatio=none role=img "
             "aria-label=\"Gantt chart\">\n{2}</svg></div>\n",
             kGanttWidth, kGanttRow * static_cast<double>(rows), bars) +
         ends_html(result) + key_html(key);
}

/// The line of one column of the queue over time, as steps.
std::string queue_line(const documents::ClusterResult& result, int documents::QueuePoint::*column, double most,
                       const char* color) {
  const TimeAxis across(result);
  std::string points;
  double last = 0;
  for (const documents::QueuePoint& row : result.queue) {
    const double x = across(row.at_s);
    const double y = kQueueHeight * (1 - row.*column / most);
    if (!points.empty()) points += fmt::format("{:.1f},{:.1f} ", x, last);
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    last = y;
  }
  // As wide a line in a narrow window, where the picture is made smaller.
  return fmt::format("<polyline points=\"{}\" fill=none stroke=\"{}\" vector-effect=non-scaling-stroke />\n", points,
                     color);
}

std::string queue_svg(const documents::ClusterResult& result, const char* what, int documents::QueuePoint::*first,
                      int documents::QueuePoint::*second) {
  double most = 1;
  for (const documents::QueuePoint& row : result.queue)
    most = std::max({most, static_cast<double>(row.*first), static_cast<double>(row.*second)});
  // Room for half a line beside the highest and the lowest value.
  return fmt::format(
             "<p class=ends>{0}, from 0 to {4:g}</p>\n<svg class=queue viewBox=\"0 -2 {1} {2}\" role=img "
             "aria-label=\"{0} over time, at most {4:g}\">\n{3}</svg>\n",
             what, kGanttWidth, kQueueHeight + 4,
             queue_line(result, first, most, kOwnerColors[1]) + queue_line(result, second, most, kOwnerColors[0]),
             most) +
         ends_html(result);
}

}  // namespace

std::vector<Section> cluster_sections(const documents::ClusterResult& result) {
  std::vector<Section> out;
  out.push_back({"summary", "Summary", "", {}, "<pre>" + escaped(cluster_text(result, 100)) + "</pre>\n"});
  const std::size_t jobs = result.jobs.size();
  out.push_back({"gantt",
                 "What ran when",
                 jobs > kMostGanttRows
                     ? fmt::format("A row for each of the first {} of {} jobs; colours are owners, thin "
                                   "lines are waiting.",
                                   kMostGanttRows, jobs)
                     : "A row for each job; colours are owners, thin lines are waiting.",
                 {},
                 gantt_svg(result)});
  out.push_back(
      {"queue",
       "Queue",
       "Above, jobs that wait and run; below, GPUs that are waited for and held.",
       {},
       queue_svg(result, "jobs", &documents::QueuePoint::waiting, &documents::QueuePoint::running) +
           queue_svg(result, "GPUs", &documents::QueuePoint::waiting_gpus, &documents::QueuePoint::held_gpus) +
           key_html({{"waiting", kOwnerColors[1]}, {"running, held", kOwnerColors[0]}})});
  const Table rows = cluster_jobs(result, 2000);
  out.push_back(
      {"jobs",
       "Jobs",
       rows.size() < jobs ? fmt::format("The {} jobs of {} that were slowed down most.", rows.size(), jobs) : "",
       {},
       html_of(rows, "Jobs")});
  out.push_back({"owners",
                 "Money by owner",
                 "What the GPUs that each held cost; the rest of the bill is nobody's.",
                 {},
                 html_of(cluster_owners(result), "Owners")});
  return out;
}

}  // namespace ganymede::report
