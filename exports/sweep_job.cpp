#include "exports/sweep_job.hpp"

#include "common/errors.hpp"
#include "common/json.hpp"
#include "exports/launch.hpp"

namespace ganymede::exports {
namespace {

/// Characters of a name, which Kubernetes extends for pods, whose names have at most 63.
constexpr std::size_t kMaxSweepName = 40;

}  // namespace

std::vector<ExportOption> sweep_job_options() {
  using Kind = ExportOption::Kind;
  return {{.name = "shards",
           .summary = "of a study: shards, each a job of its own",
           .kind = Kind::integer,
           .default_value = "16",
           .min = 1,
           .max = 100000},
          {.name = "cpus",
           .summary = "of a study: processors of each shard, and simulations at once",
           .kind = Kind::integer,
           .default_value = "1",
           .min = 1,
           .max = 4096},
          {.name = "folder", .summary = "of a study: the folder of the shards, on a file system that all jobs share"}};
}

SweepJob read_sweep_job(const report::Document& document, const ExportValues& values) {
  JsonObject in(document.node);
  SweepJob job;
  job.title = in.required("name").as_string();
  job.name = values.text("name").empty() ? label_of(job.title, kMaxSweepName) : values.text("name");
  check_label("--name", job.name, kMaxSweepName);
  job.study = document.node.file();
  job.folder = values.text("folder");
  job.shards = values.integer("shards");
  job.cpus = values.integer("cpus");
  return job;
}

}  // namespace ganymede::exports
