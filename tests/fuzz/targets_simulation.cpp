// Readers of scenarios and clusters, and of what a user's policies and schedulers answer.

#include <fmt/format.h>
#include <unistd.h>

#include <stdexcept>

#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "exports/perfetto.hpp"
#include "report/documents.hpp"
#include "report/page.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/external_scheduler.hpp"
#include "sim/cluster/import_jobs.hpp"
#include "sim/cluster/job_trace.hpp"
#include "sim/cluster/throughputs.hpp"
#include "sim/run/controller.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/series.hpp"
#include "target.hpp"

namespace ganymede::fuzz {

const std::filesystem::path& folder_of_scenarios() {
  struct Folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / fmt::format("ganymede-fuzz-scenario-{}", ::getpid());
    Folder() {
      std::filesystem::create_directories(path);
      write_file(path / "capacity.csv", "time_s,nodes\n0,3\n200,1\n500,4\n");
      write_file(path / "prices.csv", "time_s,usd_per_hour\n0,1.5\n3600,0.9\n");
      write_file(path / "table.json", R"({"schema": "ganymede.q-table/1", "values": {"0/1": [0, 1, 2]}})");
      write_file(path / "jobs.csv", "virtual_cluster,arrival_s,gpus,duration_s\nvc,0,1,60\nother,5,2,90\n");
      write_file(path / "scenario.json", R"({
        "schema": "ganymede.scenario/1",
        "workload": { "trace": "recorded:dcgan-28-cpu", "batch_per_gpu": 64, "steps": 100 },
        "platform": { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 1, "market": "on-demand" },
        "synchronization": { "scheme": "ring" }, "seed": 1 })");
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder kFolder;
  return kFolder.path;
}

namespace {

JsonNode in_folder_of_scenarios(std::string_view bytes, const char* name) {
  return JsonNode::wrap(JsonNode::parse(bytes, name).value(), name, folder_of_scenarios());
}

void read_scenario(std::string_view bytes) {
  // Traces that come with the program are parsed once; a cache would otherwise grow with names that are tried.
  static sim::ScenarioInputCache cache;
  static int uses = 0;
  if (++uses % 1000 == 0) cache = {};
  const sim::Scenario scenario = sim::read_scenario(in_folder_of_scenarios(bytes, "scenario.json"), cache);
  expect(scenario.steps > 0 && scenario.workers() > 0, "a scenario with steps and workers");
}

void read_jobs(std::string_view bytes, const std::string& virtual_cluster) {
  sim::Cluster cluster;
  static const auto kThroughputs = std::make_shared<sim::Throughputs>();
  cluster.throughputs = kThroughputs;
  cluster.workloads.push_back({"gan", nullptr, "", "", 0});
  const std::string file = file_of(bytes).string();
  sim::read_job_trace(JsonNode::wrap(file, "cluster.json", "/"), virtual_cluster, cluster);
}

/// Reads the jobs of all virtual clusters, and then of one; an input that the first reading refuses is not read again.
void of_all_or_one(std::string_view bytes, void (*read)(std::string_view, const std::string&)) {
  read(bytes, "");
  read(bytes, "vc");
}

void read_imported_jobs(std::string_view bytes, const std::string& virtual_cluster) {
  const sim::ImportedJobs imported = sim::import_jobs(bytes, "jobs", virtual_cluster);
  read_jobs(imported.csv, "");
}

const sim::Scenario& one_pool() {
  static const sim::Scenario kScenario = sim::read_scenario(JsonNode::parse(R"({
    "schema": "ganymede.scenario/1",
    "workload": { "trace": "recorded:dcgan-28-cpu", "batch_per_gpu": 64, "steps": 100 },
    "platform": { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 1, "market": "spot", "name": "spot" },
    "synchronization": { "scheme": "ring" }, "seed": 1 })",
                                                                            "scenario.json"));
  return kScenario;
}

void read_decision(std::string_view bytes) { (void)sim::parse_decision(std::string(bytes), one_pool()); }

void read_schedule(std::string_view bytes) {
  const std::vector<policies::PoolState> pools = {{"a", 4, 8}, {"b", 2, 1}};
  policies::JobView first, second;
  first.name = "first";
  second.job = 1;
  second.name = "second";
  second.gpus = second.most = 8;
  const std::vector<const policies::JobView*> running = {&first, &second};
  policies::ClusterView view;
  view.pools = pools;
  view.running = running;
  const policies::WaitingJobs nobody;
  view.waiting = &nobody;
  (void)sim::parse_schedule(std::string(bytes), view);
}

/// Reads a rehearsed life as `report` and `export perfetto` do.
void read_rehearsal(std::string_view bytes) {
  const report::Document document = report::load_document(file_of(bytes), {report::DocumentKind::rehearsal});
  try {
    (void)report::report_page(document.json(), {});
    (void)exports::rehearsal_trace(document.json());
  } catch (const JsonError&) {  // cli/export_document.cpp answers both
  } catch (const std::logic_error&) {
  }
}

}  // namespace

std::vector<Target> simulation_targets() {
  return {
      {"scenario",
       "sim/scenario/scenario.cpp sim/scenario/workload.cpp sim/scenario/pools.cpp sim/scenario/spot.cpp "
       "sim/scenario/synchronization.cpp sim/scenario/storage.cpp sim/scenario/policy.cpp "
       "sim/scenario/small_sections.cpp",
       read_scenario, "scenario"},
      {"cluster", "sim/cluster/read_cluster.cpp",
       [](std::string_view bytes) { (void)sim::read_cluster(in_folder_of_scenarios(bytes, "cluster.json")); },
       "cluster"},
      {"job-trace", "sim/cluster/job_trace.cpp", [](std::string_view bytes) { of_all_or_one(bytes, read_jobs); }},
      {"import-jobs", "sim/cluster/import_jobs.cpp sim/cluster/import_job_texts.cpp sim/cluster/recorded_jobs.cpp",
       [](std::string_view bytes) { of_all_or_one(bytes, read_imported_jobs); }},
      {"series", "sim/scenario/series.cpp",
       [](std::string_view bytes) {
         (void)sim::integral(sim::read_series(file_of(bytes)), Seconds{1}, Seconds{1000});
       }},
      {"rehearsal", "report/documents.cpp report/rehearsals.cpp", read_rehearsal, "rehearsal"},
      {"policy-answer", "sim/run/controller.cpp", read_decision},
      {"scheduler-answer", "sim/cluster/external_scheduler.cpp", read_schedule},
  };
}

}  // namespace ganymede::fuzz
