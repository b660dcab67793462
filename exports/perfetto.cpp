#include "exports/perfetto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <tuple>

#include "common/json_value.hpp"
#include "documents/rehearsal.hpp"
#include "exports/exporter.hpp"
#include "report/candidates.hpp"
#include "report/numbers.hpp"

namespace ganymede::exports {
namespace {
constexpr double kMicroseconds = 1e6;  // the format's unit

/// Places spans side by side: each goes to the first lane whose last span has ended.
class Lanes {
 public:
  std::size_t place(const TimelineSpan& span) {
    if (span.start == span.end) return 0;  // instants need no room
    for (std::size_t lane = 0; lane < ends_.size(); ++lane) {
      if (ends_[lane] > span.start) continue;
      ends_[lane] = span.end;
      return lane;
    }
    ends_.push_back(span.end);
    return ends_.size() - 1;
  }

 private:
  std::vector<Seconds> ends_;
};

OrderedJson metadata(const char* what, int process, std::int64_t thread, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string chrome_trace(const std::vector<TimelineSpan>& spans) {
  std::vector<const TimelineSpan*> ordered;
  for (const TimelineSpan& span : spans) ordered.push_back(&span);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) { return a->start < b->start; });

  std::map<std::string, int> processes;
  for (const TimelineSpan& span : spans) processes.try_emplace(span.process, static_cast<int>(processes.size()));
  std::map<std::pair<int, int>, Lanes> tracks;
  std::map<std::tuple<int, int, std::size_t>, std::int64_t> threads;

  OrderedJson events = OrderedJson::array();
  for (const auto& [name, process] : processes) events.push_back(metadata("process_name", process, 0, name));
  for (const TimelineSpan* span : ordered) {
    const int process = processes.at(span->process);
    const std::size_t lane = tracks[{process, span->track}].place(*span);
    const auto [thread, is_new] =
        threads.try_emplace({process, span->track, lane}, static_cast<std::int64_t>(threads.size()) + 1);
    if (is_new) {
      events.push_back(metadata("thread_name", process, thread->second, span->track_name));
      events.push_back({{"name", "thread_sort_index"},
                        {"ph", "M"},
                        {"pid", process},
                        {"tid", thread->second},
                        {"args", {{"sort_index", span->track}}}});
    }
    OrderedJson details = OrderedJson::object();
    for (const auto& [key, value] : span->details) details[key] = value;
    OrderedJson event = {{"name", span->name}, {"ph", "X"}, {"ts", span->start.si * kMicroseconds}};
    if (span->start == span->end) {
      event["ph"] = "i";
      event["s"] = "t";  // of its track
    } else {
      event["dur"] = (span->end - span->start).si * kMicroseconds;
    }
    event["pid"] = process;
    event["tid"] = thread->second;
    event["args"] = details;
    events.push_back(std::move(event));
  }
  return OrderedJson{{"traceEvents", events}, {"displayTimeUnit", "ns"}}.dump() + "\n";
}

namespace {
/// The track of a worker on which a span of this kind of `step_spans` is shown: an index of kTracks.
int track_of(std::string_view kind) { return kind == "communication" ? 1 : kind == "input" ? 2 : 0; }

void add_steps(const documents::StepSpans& steps, Seconds origin, std::vector<TimelineSpan>& spans) {
  constexpr std::array<const char*, 3> kTracks = {"course", "collectives", "input pipeline"};
  for (const documents::StepSpans::Row& row : steps.rows) {
    const char* kind = documents::StepSpans::kKinds.at(static_cast<std::size_t>(row.kind));
    const int track = track_of(kind);
    const Seconds start = origin + row.start;
    spans.push_back({fmt::format("worker {}", row.worker),
                     track,
                     kTracks[static_cast<std::size_t>(track)],
                     steps.names.at(static_cast<std::size_t>(row.name)),
                     start,
                     start + row.length,
                     {{"kind", kind}}});
  }
}

/// Adds what a run held and what happened to it as tracks of the process `cluster`; returns when training began.
Seconds add_cluster(const documents::Result& run, const char* cluster, std::vector<TimelineSpan>& spans) {
  std::map<std::string, int> tracks;
  for (const report::Holding& holding : report::holdings_of(run)) {
    const int track = tracks.try_emplace(holding.pool, static_cast<int>(tracks.size()) + 1).first->second;
    std::string name = fmt::format("{} held", holding.held);
    if (holding.asked > 0)
      name = holding.held > 0 ? fmt::format("{}, {} asked for", name, holding.asked)
                              : fmt::format("{} asked for", holding.asked);
    spans.push_back({cluster, track, holding.pool, name, Seconds{holding.from_s}, Seconds{holding.to_s}, {}});
  }
  Seconds training{0};
  for (const documents::RunEvent& event : run.events) {
    if (event.what == "ready" && training.si == 0) training = event.at;
    std::vector<std::pair<std::string, std::string>> details;  // sorted by their names
    if (!event.detail.empty()) details.emplace_back("detail", event.detail);
    if (event.nodes > 0) details.emplace_back("nodes", std::to_string(event.nodes));
    if (!event.pool.empty()) details.emplace_back("pool", event.pool);
    if (event.times > 1) details.emplace_back("times", std::to_string(event.times));
    spans.push_back({cluster, 0, "events", event.what, event.at, event.at, std::move(details)});
  }
  return training;
}

}  // namespace

std::string run_trace(const documents::Result& run) {
  std::vector<TimelineSpan> spans;
  const Seconds training = add_cluster(run, "cluster", spans);
  if (run.spans) add_steps(*run.spans, training, spans);
  return chrome_trace(spans);
}

std::string rehearsal_trace(const Json& rehearsal) {
  std::vector<TimelineSpan> spans;
  const documents::Rehearsal lives = documents::rehearsal_in(rehearsal);
  add_cluster(lives.predicted, "predicted", spans);
  add_cluster(lives.measured, "measured", spans);
  return chrome_trace(spans);
}

Exporter perfetto_exporter() {
  return {
      .name = "perfetto",
      .summary =
          "a run's nodes and steps, a rehearsed life or the jobs of a cluster as a Chrome trace, for ui.perfetto.dev",
      .examples =
          "  ganymede simulate scenario.json --format json -o result.json\n"
          "  ganymede export perfetto result.json -o timeline.json\n",
      .about =
          "Shows the nodes of each pool that were asked for and held, what happened to them, and what each\n"
          "worker does in the steps that the result keeps (simulate --show-steps), from where training\n"
          "begins. Of a rehearsed life it shows the predicted one over the measured one, of a cluster which\n"
          "job was on which node when, and the queue.",
      .reads = {report::DocumentKind::result, report::DocumentKind::cluster, report::DocumentKind::rehearsal},
      .refusal = "a trace is of one run, one rehearsed life or one cluster, as --format json writes it",
      .write = [](const report::Document& document, const ExportValues& /*values*/, const ExportConsole& /*console*/) {
        return document.kind == report::DocumentKind::cluster
                   ? cluster_trace(documents::read_cluster_result(document.node))
               : document.kind == report::DocumentKind::rehearsal ? rehearsal_trace(document.json())
                                                                  : run_trace(documents::result_in(document.json()));
      }};
}

namespace {
/// Adds a span on each node of a stay; "on" lists them as "3:0-3 4:1".
void add_stay(const documents::JobLife& job, const documents::JobStay& stay, std::vector<TimelineSpan>& spans) {
  std::istringstream places(stay.on);
  for (std::string place; places >> place;) {
    const std::string node = place.substr(0, place.find(':'));
    spans.push_back({stay.pool,
                     std::stoi(node),
                     "node " + node,
                     job.job,
                     Seconds{stay.from_s},
                     Seconds{stay.to_s},
                     {{"owner", job.owner},
                      {"GPUs here", place.substr(place.find(':') + 1)},
                      {"GPUs in all", std::to_string(stay.gpus)}}});
  }
}

/// Adds the times between a job's arrival, its stays and its end in which it held nothing.
void add_waits(const documents::JobLife& job, int track, std::vector<TimelineSpan>& spans) {
  double free_since_s = job.ready_s;
  for (const documents::JobStay& stay : job.stays) {
    const double from_s = stay.from_s;
    if (from_s > free_since_s)
      spans.push_back({"queue",
                       track,
                       job.owner,
                       job.job,
                       Seconds{free_since_s},
                       Seconds{from_s},
                       {{"GPUs asked for", std::to_string(job.gpus)}}});
    free_since_s = std::max(free_since_s, stay.to_s);
  }
}

}  // namespace

std::string cluster_trace(const documents::ClusterResult& result) {
  std::vector<TimelineSpan> spans;
  std::map<std::string, int> owners;
  for (const documents::JobLife& job : result.jobs) {
    const int track = owners.try_emplace(job.owner, static_cast<int>(owners.size())).first->second;
    for (const documents::JobStay& stay : job.stays) add_stay(job, stay, spans);
    add_waits(job, track, spans);
  }
  return chrome_trace(spans);
}

namespace {

std::string endpoint_name(int endpoint, int ranks) {
  return endpoint < ranks ? fmt::format("rank {}", endpoint) : fmt::format("switch {}", endpoint - ranks);
}

}  // namespace

std::string collectives_trace(const Json& rows, int ranks) {
  std::vector<TimelineSpan> spans;
  for (const auto& row : rows) {
    const std::string process =
        fmt::format("{} {}", row["scheme"].get<std::string>(), to_string(Bytes{row["bytes"].get<double>()}));
    for (const auto& span : row["spans"]) {
      const int source = span[0].get<int>(), destination = span[1].get<int>();
      spans.push_back({process,
                       source,
                       endpoint_name(source, ranks) + " sends",
                       fmt::format("round {} to {}", report::int64_of(span[2]), endpoint_name(destination, ranks)),
                       Seconds{span[4].get<double>()},
                       Seconds{span[5].get<double>()},
                       {{"bytes", span[3].dump()}}});
    }
  }
  return chrome_trace(spans);
}

}  // namespace ganymede::exports
