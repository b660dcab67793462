#include "serve/job_metrics.hpp"

#include <map>

#include "common/json_value.hpp"
#include "report/prometheus.hpp"
#include "serve/job_store.hpp"

namespace ganymede::serve {

std::string job_metrics(const OrderedJson& jobs) {
  report::Gauges gauges("ganymede_serve_");
  gauges.begin("jobs", "Jobs by state, of the newest 200.");
  std::map<std::string, int> counts;
  for (const auto& job : jobs) ++counts[job.at("state").get<std::string>()];
  for (const std::string& state : state_names()) gauges.sample({{"state", state}}, counts[state]);

  const auto of_running = [&](const char* name, const char* help, auto&& value) {
    gauges.begin(name, help);
    for (const auto& job : jobs) {
      if (job.at("state") != to_string(JobState::running)) continue;
      report::Gauges::Labels labels{{"job", std::to_string(job.at("id").get<int>())},
                                    {"kind", job.at("kind").get<std::string>()},
                                    {"name", job.at("name").get<std::string>()}};
      if (job.contains("progress")) labels.emplace_back("unit", job.at("progress").at("what").get<std::string>());
      if (const OrderedJson found = value(job); found.is_number()) gauges.sample(labels, found.get<double>());
    }
  };
  const auto progress = [](const char* key) {
    return
        [key](const OrderedJson& job) { return job.contains("progress") ? job.at("progress").at(key) : OrderedJson(); };
  };
  of_running("job_seconds", "Time for which a job has run.", [](const auto& job) { return job.at("seconds"); });
  of_running("job_done", "What a running job has done, in its unit.", progress("done"));
  of_running("job_count", "What a running job has to do, in its unit.", progress("count"));
  return gauges.text();
}

}  // namespace ganymede::serve
