// ganymede allreduce: times collectives on a fabric and prints them as nccl-tests does.

#include "sim/collectives/allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/command.hpp"
#include "cli/import.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "exports/perfetto.hpp"
#include "platforms/platform.hpp"
#include "rehearsal/real_allreduce.hpp"
#include "report/collectives.hpp"
#include "report/table.hpp"
#include "sim/engine/collective_benchmark.hpp"
#include "sim/engine/collective_machine.hpp"

namespace ganymede::cli {
namespace {

struct AllReduceOptions {
  sim::MachineChoice machine;
  sim::CallChoice calls;
  std::string timeline;
  bool execute = false;  ///< by `real`, in place of a simulation
  rehearsal::RealAllReduce real;
  std::string fidelity = "folded";
  double tolerance = sim::kFoldingTolerance;
};

/// Fits the links to the times of the first scheme, and keeps these beside --output as a log.
void fit_overlay(LinkImport link, const OrderedJson& result, std::size_t schemes, const Shared& shared) {
  const OrderedJson& rows = result["rows"];
  std::vector<TimedSize> sizes;
  for (std::size_t i = 0; i < rows.size(); i += schemes)
    sizes.push_back({rows[i]["sent_bytes"].get<std::int64_t>(), rows[i]["time_s"].get<double>()});
  std::sort(sizes.begin(), sizes.end(), [](const TimedSize& a, const TimedSize& b) { return a.bytes < b.bytes; });
  link.log = std::filesystem::path(shared.output).replace_extension(".all-reduce.txt").string();
  write_file(link.log,
             log_of_sizes(rows[0]["ranks"].get<int>(), result["messenger"].get<std::string>(), link.instance, sizes));
  import_collective_log(link, shared);
}

void run_real(const AllReduceOptions& options, const Shared& shared) {
  rehearsal::RealAllReduce real = options.real;
  const sim::MachineChoice& choice = options.machine;
  real.gpus_per_node = choice.gpus_per_node;
  real.schemes = sim::chosen_schemes(options.calls);
  real.sizes = sim::chosen_sizes(options.calls);
  real.is_fitted = !shared.output.empty();
  real.show = [&shared](std::size_t calls) { return progress_bar(shared, calls, "collectives"); };
  if (choice.catalog.empty() != choice.instances.empty())
    throw ConfigError("--real: found one of --catalog and --instance, expected both or neither");
  std::optional<sim::CollectiveMachine> machine;
  LinkImport link;
  if (!choice.catalog.empty()) {
    machine.emplace(choice);
    real.fabric = &machine->fabric();
    real.has_links = machine->groups().size() == 1;
    const sim::NodeGroup& group = machine->groups().front();
    link = {{real.schemes[0].name(), group.nodes, group.gpus_per_node, true},
            {},
            choice.catalog,
            choice.overlay,
            choice.instances};
  }
  const OrderedJson result =
      rehearsal::real_allreduce(real, [&shared](const std::string& text) { remark(shared, text); });
  if (result.is_null()) return;
  std::string named = machine ? machine->heading(options.calls.collective) : "";
  if (real.hosts.hosts > 0)
    named = fmt::format("everything takes {:g} times as long as on the machine that is predicted for:\n{}",
                        result["scale"].get<double>(), named);
  else if (machine)
    named = "predicted for " + named;
  Shared to_stdout = shared;
  to_stdout.output.clear();
  emit(to_stdout, shared.format == "json"  ? result["rows"].dump(2) + "\n"
                  : shared.format == "csv" ? report::real_collectives_csv(result["rows"])
                                           : report::real_collectives_text(result, named, result_width(shared)));
  if (real.is_fitted) fit_overlay(link, result, real.schemes.size(), shared);
}

void run_allreduce(const AllReduceOptions& options, const Shared& shared) {
  check_output(shared);
  if (options.execute) {
    begin_memory_budget(/*trains=*/true);  // it loads the libraries of GPUs
    return run_real(options, shared);
  }
  if (options.real.hosts.hosts > 0) throw ConfigError("--hosts: expected --real with it");
  if (options.machine.catalog.empty() || options.machine.instances.empty())
    throw ConfigError(fmt::format("{} is required, unless --real executes the schedules",
                                  options.machine.catalog.empty() ? "--catalog" : "--instance"));
  check_second_output(shared, options.timeline);
  const sim::CollectiveMachine machine(options.machine);
  Json rows = sim::benchmark_rows(
      sim::chosen_benchmarks(machine.fabric(), options.calls),
      {.fidelity = options.fidelity == "message" ? sim::CollectiveFidelity::message : sim::CollectiveFidelity::folded,
       .record = !options.timeline.empty(),
       .jobs = jobs(shared),
       .tolerance = options.tolerance,
       .show = [&shared](std::size_t calls) { return progress_bar(shared, calls, "collectives"); }});
  if (!options.timeline.empty())
    write_file(options.timeline, exports::collectives_trace(rows, machine.fabric().ranks()));
  for (auto& row : rows) row.erase("spans");
  if (shared.format == "json") return emit(shared, rows.dump(2) + "\n");
  if (shared.format == "csv") return emit(shared, report::collectives_csv(rows));
  const std::size_t width = result_width(shared);
  emit(shared, report::wrap_prose(machine.heading(options.calls.collective, options.calls.groups), width) +
                   report::collectives_text(rows, width));
}

/// Declares --real, which sets `execute`, and the options that need it.
Option add_real(Parser command, bool& execute, rehearsal::RealAllReduce& request) {
  Option real = command.add_flag(
      "--real", execute,
      "execute the schedules between the processes that mpirun or --hosts starts, and time them; --output is then an "
      "overlay of the fitted links");
  command
      .add_option("--backend", request.backend,
                  "where the buffers of --real are: cuda (GPUs, by NCCL's sends and receives), cpu (the processes' "
                  "memory), or auto: cuda if each rank has a GPU of its own",
                  one_of({"auto", "cuda", "cpu"}))
      .capture_default_str()
      .needs(real);
  command
      .add_option("--repeats", request.repeats,
                  "calls that --real times for each scheme and size; default: as many as a second holds, from 7 to 101",
                  integer_between(7, 100000))
      .needs(real);
  add_hosts(command, request.hosts);
  return real;
}

void declare_allreduce(Parser command, Shared& shared) {
  auto options = std::make_shared<AllReduceOptions>();
  command.add_option("--catalog", options->machine.catalog, "a provider (ganymede list providers) or a platform file",
                     suggest("@providers @files"));
  command.add_option("--overlay", options->machine.overlay,
                     "a file of measured values that replace the platform's (ganymede import nccl-tests)");
  command.add_option("--instance", options->machine.instances,
                     "instance type; for nodes of unlike GPUs several, with commas", suggest("@instances @list"));
  command.add_option("--nodes", options->machine.nodes, "number of nodes; with several instance types a count for each")
      .capture_default_str();
  command.add_option("--gpus-per-node", options->machine.gpus_per_node, "GPUs used on each node; default: all",
                     integer_between(1, 1024));
  command.add_option("--transport", options->machine.transport,
                     "transport of the NICs in place of the platform's: tcp shows what EFA or RDMA is worth",
                     one_of(platforms::transport_names()));
  command
      .add_option("--scheme", options->calls.schemes, "schemes, with commas; `ganymede list schemes` names them",
                  suggest("@schemes @list"))
      .required();
  command.add_option("--bytes", options->calls.bytes, "sizes with commas: 8, 64KiB, 1GB").required();
  Option real = add_real(command, options->execute, options->real);
  command
      .add_option("--collective", options->calls.collective, "the collective to time", one_of(sim::collective_names()))
      .capture_default_str()
      .excludes(real);
  command
      .add_option("--fidelity", options->fidelity,
                  "folded: simulate one of each class of like ranks and rounds; message: simulate every message",
                  one_of({"folded", "message"}))
      .capture_default_str()
      .excludes(real);
  command
      .add_option("--tolerance", options->tolerance,
                  "with thousands of unlike ranks: merge those that are nearly alike, until telling more of them apart "
                  "changes the time by at most this share of it; 0: exact, however long it takes")
      .check(number_between(0, 1))
      .capture_default_str()
      .excludes(real);
  command
      .add_option(
          "--groups", options->calls.groups,
          "number of communicators that call at once and share the links; with N, communicator i has the ranks i, i+N, "
          "i+2N, ...",
          integer_between(1, sim::kMaxCollectiveRanks))
      .capture_default_str()
      .excludes(real);
  command.add_option("--late", options->calls.late, "RANK=TIME[,RANK=TIME]: ranks that call later than the others")
      .excludes(real);
  command.add_option("--timeline", options->timeline, "file for a Chrome trace of every message (at message fidelity)")
      .excludes(real);
  add_jobs(command, shared);
  add_result(command, shared, {"table", "json", "csv"});
  command.callback([options, &shared] { run_allreduce(*options, shared); });
}

}  // namespace

Command allreduce_command() {
  return {.name = "allreduce",
          .summary = "schemes against each other on one fabric, as nccl-tests prints them",
          .examples =
              "  ganymede allreduce --catalog aws --instance p4d.24xlarge --nodes 2 --scheme ring,tree,nccl \\\n"
              "                     --bytes 8,64KiB,1MiB,64MiB,1GiB [--transport tcp]\n"
              "  ganymede allreduce --catalog lab.json --instance node --nodes 64 --scheme nccl:2.18.3 --bytes 64MiB "
              "--format json\n"
              "  ganymede allreduce --catalog aws --instance p3.16xlarge --scheme multi-ring --bytes 64MiB --timeline "
              "rounds.json\n"
              "  mpirun -n 4 ganymede allreduce --real --scheme ring,two-level --gpus-per-node 2 --bytes 64KiB,1MiB\n",
          .about =
              "Times collectives on a fabric: one warm call, from the first start to the last finish. algbw and busbw\n"
              "are those of nccl-tests, and a GB is 1e9 bytes. With --real the schedules are executed over MPI, or\n"
              "by NCCL's sends and receives between GPUs; a platform "
              "then shows what was predicted beside what was measured.",
          .declare = declare_allreduce};
}

}  // namespace ganymede::cli
