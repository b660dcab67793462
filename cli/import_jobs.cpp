// ganymede import jobs: jobs that ran on a real cluster, as the trace of a simulated one.

#include "sim/cluster/import_jobs.hpp"

#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"

namespace ganymede::cli {
namespace {

struct JobImport {
  std::string file, virtual_cluster;
};

void import_jobs(const JobImport& options, Shared& shared) {
  check_output(shared);
  keep_input(shared, options.file);
  const sim::ImportedJobs jobs = sim::import_jobs(read_file(options.file), options.file, options.virtual_cluster);
  for (const std::string& note : jobs.remarks) remark(shared, note + "\n");
  emit(shared, jobs.csv);
}

void declare_import_jobs(Parser command, Shared& shared) {
  auto options = std::make_shared<JobImport>();
  command.add_option("file", options->file, "what sacct printed, or a trace of a cluster (see above)")
      .check(suggest("@files"))
      .required();
  command.add_option("--virtual-cluster", options->virtual_cluster, "only the jobs of this cluster of the trace")
      .check(not_empty);
  add_output(command, shared);
  command.callback([options, &shared] { import_jobs(*options, shared); });
}

}  // namespace

Command import_jobs_command() {
  return {.name = "jobs",
          .summary = "jobs of Slurm's accounting or of another cluster's trace, as the jobs of a cluster",
          .examples =
              "  sacct -a -P -S 2026-11-01 -o JobID,User,Submit,ElapsedRaw,AllocTRES,Priority,State > sacct.txt\n"
              "  ganymede import jobs sacct.txt -o jobs.csv\n"
              "  ganymede import jobs gavel.csv --virtual-cluster 0e4a51 -o jobs.csv\n",
          .about =
              "Writes the CSV that \"jobs\": { \"trace\": FILE } of a ganymede.cluster/1 file names. It reads sacct "
              "(-P, --json or\n"
              "columns of fixed width), Gavel's own traces, Philly, Helios, ACME (Seren, Kalos), Alibaba's PAI of 2020 "
              "and\n"
              "2023, other CSV with usual names of columns, the standard workload format (SWF), and workloads of "
              "Batsim. Of\n"
              "sacct it needs JobID, Submit, ElapsedRaw or Elapsed, and AllocTRES or ReqTRES (gres/gpu=N). Steps of "
              "jobs, jobs\n"
              "without GPUs, jobs that never ran and those that cannot be read are left out, and counted.",
          .declare = declare_import_jobs};
}

}  // namespace ganymede::cli
