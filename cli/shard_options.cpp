#include "cli/shard_options.hpp"

#include <fmt/format.h>

#include <csignal>

#include "common/errors.hpp"

namespace ganymede::cli {
namespace {

volatile std::sig_atomic_t shard_stop_asked = 0;
void note_shard_stop(int /*signal*/) { shard_stop_asked = 1; }

}  // namespace

void add_shard(Parser command, std::string& shard) {
  command
      .add_option("--shard", shard,
                  "do only shard I of N, and keep its rows in the folder that -o names; auto: as Slurm, mpirun or "
                  "Kubernetes says (auto/N: the count is N); `ganymede merge` puts them together")
      .check(not_empty)
      .type_name("auto|I/N");
}

studies::ShardOptions shard_options(const Shared& shared, const std::string& what) {
  std::signal(SIGTERM, note_shard_stop);
  return {.jobs = jobs(shared),
          .use = ChildUse::reused,
          .stopped = [] { return shard_stop_asked != 0; },
          .remark = [&shared](const std::string& text) { remark(shared, text); },
          .show = [&shared, what](std::size_t count) { return progress_bar(shared, count, what); }};
}

void report_shard(Shared& shared, const studies::Shard& shard, const studies::ShardOutcome& outcome) {
  const std::string failures = outcome.failed == 0 ? "" : fmt::format(", {} failed", outcome.failed);
  remark(shared, fmt::format("shard {} of {}: {} runs, of which {} were there already and {} were done now{}",
                             shard.index, shard.count, outcome.runs, outcome.earlier, outcome.done, failures));
  if (!outcome.complete()) {
    say("ganymede: stopped early; the same command goes on from there\n");
    shared.exit_code = ExitCode::interrupted;
  } else if (outcome.failed > 0) {
    throw Failure(fmt::format("{} of {} runs of this shard failed; the first: {}", outcome.failed, outcome.runs,
                              outcome.first_reason));
  }
}

void require_folder(const Shared& shared) {
  if (shared.output.empty())
    throw ConfigError("--shard needs -o: a folder, the same for all shards, in which their rows are kept");
}

}  // namespace ganymede::cli
