// The sections of the page of a cluster: summary, Gantt chart, queue, jobs, owners.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "common/json_value.hpp"
#include "report/clusters.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"

namespace ganymede::report {
namespace {
constexpr std::size_t kMostGanttRows = 400;
constexpr double kGanttWidth = 1000, kGanttRow = 8, kQueueHeight = 160;
constexpr std::array kOwnerColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};  // Okabe, Ito

/// From the first arrival to the last end.
class TimeAxis {
 public:
  explicit TimeAxis(const Json& result)
      : begin_s_(result.at("summary").value("begin_s", 0.0)),
        total_s_(std::max(1e-9, result.at("summary").at("total_s").get<double>())) {}
  double operator()(const Json& seconds) const { return kGanttWidth * (seconds.get<double>() - begin_s_) / total_s_; }

 private:
  double begin_s_, total_s_;
};

/// The times at both ends of a picture's axis, below it.
std::string ends_html(const Json& result) {
  const double begin_s = result.at("summary").value("begin_s", 0.0);
  return fmt::format("<p class=ends><span>{}</span><span>{}</span></p>\n", begin_s > 0 ? clock(begin_s) : "0",
                     clock(begin_s + result.at("summary").at("total_s").get<double>()));
}

std::string gantt_svg(const Json& result) {
  const Json& jobs = result.at("jobs");
  const TimeAxis x(result);
  const std::size_t rows = std::min(jobs.size(), kMostGanttRows);
  std::map<std::string, std::size_t> owners;
  std::string bars;
  for (std::size_t i = 0; i < rows; ++i) {
    const Json& job = jobs[i];
    const double y = kGanttRow * static_cast<double>(i);
    const std::size_t owner = owners.try_emplace(job.at("owner").get<std::string>(), owners.size()).first->second;
    bars += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"1\" fill=\"#888888\"/>\n",
                        x(job.at("ready_s")), y + kGanttRow / 2, x(job.at("end_s")) - x(job.at("ready_s")));
    for (const Json& stay : job.at("stays"))
      bars += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}: {} GPUs of {} on "
          "{}, {} to {}</title></rect>\n",
          x(stay.at("from_s")), y + 1, std::max(0.5, x(stay.at("to_s")) - x(stay.at("from_s"))), kGanttRow - 2,
          kOwnerColors[owner % kOwnerColors.size()], escaped(job.at("job").get<std::string>()), stay.at("gpus").dump(),
          escaped(stay.at("pool").get<std::string>()), escaped(stay.at("on").get<std::string>()),
          clock(stay.at("from_s").get<double>()), clock(stay.at("to_s").get<double>()));
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
std::string queue_line(const Json& result, std::size_t column, double most, const char* color) {
  const TimeAxis across(result);
  std::string points;
  double last = 0;
  for (const Json& row : result.at("queue").at("rows")) {
    const double x = across(row.at(0));
    const double y = kQueueHeight * (1 - row.at(column).get<double>() / most);
    if (!points.empty()) points += fmt::format("{:.1f},{:.1f} ", x, last);
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    last = y;
  }
  // As wide a line in a narrow window, where the picture is made smaller.
  return fmt::format("<polyline points=\"{}\" fill=none stroke=\"{}\" vector-effect=non-scaling-stroke />\n", points,
                     color);
}

std::string queue_svg(const Json& result, const char* what, std::size_t first, std::size_t second) {
  double most = 1;
  for (const Json& row : result.at("queue").at("rows"))
    most = std::max({most, row.at(first).get<double>(), row.at(second).get<double>()});
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

std::vector<Section> cluster_sections(const Json& result) {
  std::vector<Section> out;
  out.push_back({"summary", "Summary", "", {}, "<pre>" + escaped(cluster_text(result, 100)) + "</pre>\n"});
  const std::size_t jobs = result.at("jobs").size();
  out.push_back({"gantt",
                 "What ran when",
                 jobs > kMostGanttRows
                     ? fmt::format("A row for each of the first {} of {} jobs; colours are owners, thin "
                                   "lines are waiting.",
                                   kMostGanttRows, jobs)
                     : "A row for each job; colours are owners, thin lines are waiting.",
                 {},
                 gantt_svg(result)});
  out.push_back({"queue",
                 "Queue",
                 "Above, jobs that wait and run; below, GPUs that are waited for and held.",
                 {},
                 queue_svg(result, "jobs", 1, 2) + queue_svg(result, "GPUs", 3, 4) +
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
