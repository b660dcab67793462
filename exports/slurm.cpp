// A batch script for Slurm: an array of jobs, each a shard of a study; and what it has in common with other schedulers.

#include <fmt/format.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "exports/launch.hpp"

namespace ganymede::exports {
namespace {

/// Slurm's default MaxArraySize is 1001, which is one above the largest index.
constexpr int kDefaultMaxArray = 1001;

/// A line of a comment: line breaks in a name must not begin a line of the script.
std::string comment_word(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

/// Throws ConfigError for an option's value that could be read as more than one directive of Slurm.
void check_directive(const ExportValues& values, const char* option, std::string_view allowed, const char* example) {
  const std::string& text = values.text(option);
  if (text.find_first_not_of(allowed) != std::string::npos)
    throw ConfigError(fmt::format("--{}: found \"{}\", expected for example {}", option, text, example));
}

void check_slurm(const ExportValues& values) {
  check_directive(values, "time", "0123456789:-", "2:00:00 or 1-12:00:00");
  check_directive(values, "partition", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,-",
                  "short or cpu,long");
}

std::string slurm_script(const SweepJob& job, const ExportValues& values) {
  const auto directive = [](const std::string& text) { return fmt::format("#SBATCH --{}\n", text); };
  const std::string folder = shell_word(job.folder.empty() ? job.name + "-shards" : job.folder);
  std::string out = "#!/bin/bash\n";
  out += fmt::format(
      "# The study \"{}\" in {} shards. The same command again does what is missing; sbatch --array=3,17 does only\n"
      "# those two. On any node, at any time:\n"
      "#   ganymede merge {} --status\n"
      "#   ganymede merge {} -o result.json\n",
      comment_word(job.title), job.shards, comment_word(folder), comment_word(folder));
  out += directive("job-name=" + job.name) + directive(fmt::format("array=0-{}", job.shards - 1)) +
         directive("ntasks=1") + directive(fmt::format("cpus-per-task={}", job.cpus));
  if (!values.text("time").empty()) out += directive("time=" + values.text("time"));
  if (!values.text("partition").empty()) out += directive("partition=" + values.text("partition"));
  out += directive("output=%x-%A_%a.log") + directive("requeue");
  out += "# A minute before the time is up, the shard writes what it has and ends; exec lets the signal reach it.\n" +
         directive("signal=B:TERM@60");
  out += "set -euo pipefail\n";
  return out + fmt::format("exec \"${{GANYMEDE:-ganymede}}\" sweep {} --shard auto/{} --jobs {} -o {}\n",
                           shell_word(job.study), job.shards, job.cpus, folder);
}

}  // namespace

Exporter slurm_exporter() {
  std::vector<ExportOption> options = sweep_job_options();
  options.insert(options.begin(), {.name = "name", .summary = "name of the job; default: the study's"});
  options.push_back({.name = "time", .summary = "time limit of each shard, as Slurm writes it: 2:00:00"});
  options.push_back({.name = "partition", .summary = "Slurm's partition"});
  return {.name = "slurm",
          .summary = "a batch script for Slurm: an array of jobs, each a shard of the study",
          .examples =
              "  ganymede export slurm study.json --shards 64 --cpus 4 --time 2:00:00 -o sweep.sbatch\n"
              "  sbatch sweep.sbatch\n"
              "  ganymede merge STUDY-NAME-shards -o result.json\n",
          .about =
              "Each job of the array does one shard (docs/shards.md). Paths start where sbatch is called; the\n"
              "variable GANYMEDE names the program if it is not in PATH.",
          .reads = {report::DocumentKind::study},
          .options = options,
          .check = check_slurm,
          .write = [](const report::Document& document, const ExportValues& values, const ExportConsole& console) {
            const SweepJob job = read_sweep_job(document, values);
            if (job.shards >= kDefaultMaxArray && console.remark)
              console.remark(
                  fmt::format("an array of {} needs a MaxArraySize above that in slurm.conf, where {} is the "
                              "default",
                              job.shards, kDefaultMaxArray));
            return slurm_script(job, values);
          }};
}

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
