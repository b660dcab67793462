#include "cli/allreduce_real.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "kernel/parallel/communicator.hpp"
#include "rehearsal/prediction.hpp"
#include "rehearsal/rank_plan.hpp"
#include "rehearsal/timed_call.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {

constexpr std::int64_t kMaxRealBytes = std::int64_t{1} << 30;  // a message has at most 2^31 - 1 bytes

struct RealRow {
  const sim::Scheme* scheme;
  std::int64_t asked, bytes;  ///< as the user wrote it, and padded to whole floats in each transfer
  std::int64_t messages;
  rehearsal::TimedCall measured;
  std::optional<Seconds> predicted;
};

void check_request(const RealAllReduce& request, const Shared& shared) {
  const int processes = kernel::launched_processes();
  if (processes == 1)
    throw ConfigError("--real: found one process, expected several: mpirun -n 4 ganymede allreduce --real ...");
  if (request.fabric != nullptr && request.fabric->ranks() != processes)
    throw ConfigError(
        fmt::format("--real: started as {} processes, expected {}, one for each GPU of --nodes and "
                    "--gpus-per-node",
                    processes, request.fabric->ranks()));
  if (!shared.output.empty() && request.link.instance.empty())
    throw ConfigError(
        "--output: found --real without a machine, expected --catalog and one --instance whose links are "
        "to be fitted");
  for (const std::int64_t bytes : request.sizes)
    if (bytes < 1 || bytes > kMaxRealBytes)
      throw ConfigError(fmt::format("--bytes: found {}, expected 1B to 1GiB with --real", bytes));
}

std::vector<RealRow> execute(const RealAllReduce& request, rehearsal::Group& group, const Shared& shared) {
  const sim::Topology topology = request.fabric != nullptr
                                     ? request.fabric->topology()
                                     : sim::clustered(group.ranks(), std::max(1, request.gpus_per_node));
  std::vector<RealRow> rows;
  std::function<void(std::size_t)> progress;
  if (group.is_first()) progress = progress_bar(shared, request.schemes.size() * request.sizes.size(), "collectives");
  for (const std::int64_t bytes : request.sizes)
    for (const sim::Scheme& scheme : request.schemes) {
      const sim::Schedule schedule = rehearsal::plan_for_processes(scheme, topology, bytes);
      const std::string what = fmt::format("{} of {}", scheme.name(), to_string(Bytes{static_cast<double>(bytes)}));
      rows.push_back({&scheme, bytes, schedule.bytes(), schedule.messages(), time_call(group, schedule, what), {}});
      if (progress) progress(rows.size());
    }
  return rows;
}

/// Done when nobody waits for rank 0 any more.
void predict(const RealAllReduce& request, std::vector<RealRow>& rows) {
  if (request.fabric == nullptr) return;
  for (RealRow& row : rows)
    row.predicted = rehearsal::predicted_time(
        *request.fabric, rehearsal::plan_for_processes(*row.scheme, request.fabric->topology(), row.asked));
}

std::string json_of(const std::vector<RealRow>& rows, const rehearsal::Group& group) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const RealRow& row : rows) {
    const double rate = static_cast<double>(row.asked) / row.measured.median_s / 1e9;
    nlohmann::ordered_json predicted;
    if (row.predicted) predicted = row.predicted->si;
    out.push_back({{"scheme", row.scheme->name()},
                   {"collective", "all-reduce"},
                   {"ranks", group.ranks()},
                   {"bytes", row.asked},
                   {"sent_bytes", row.bytes},
                   {"time_s", row.measured.median_s},
                   {"interval_s", {row.measured.low_s, row.measured.high_s}},
                   {"predicted_s", predicted},
                   {"algbw_GBps", rate},
                   {"busbw_GBps", rate * sim::bus_bandwidth_factor(sim::Collective::all_reduce, group.ranks())},
                   {"messages", row.messages},
                   {"fidelity", "real"},
                   {"repeats", row.measured.repeats},
                   {"start_spread_s", row.measured.spread_s},
                   {"processor_s", row.measured.processor_s},
                   {"clock_error_s", group.clock().error_s}});
  }
  return out.dump(2) + "\n";
}

report::Table table_of(const std::vector<RealRow>& rows, int ranks) {
  report::Table table({">size", "scheme", ">measured", ">95 % interval", ">predicted", ">off by", ">busbw",
                       ">processor", ">starts apart"});
  for (const RealRow& row : rows) {
    const rehearsal::TimedCall& measured = row.measured;
    if (&row != rows.data() && row.asked != (&row)[-1].asked) table.rule();
    const double rate = static_cast<double>(row.asked) / measured.median_s / 1e9;
    table.add({to_string(Bytes{static_cast<double>(row.asked)}), row.scheme->name(),
               to_string(Seconds{measured.median_s}),
               fmt::format("{} to {}", to_string(Seconds{measured.low_s}), to_string(Seconds{measured.high_s})),
               row.predicted ? to_string(*row.predicted) : "",
               row.predicted ? fmt::format("{:+.1f} %", 100 * (row.predicted->si / measured.median_s - 1)) : "",
               fmt::format("{:.2f} GB/s", rate * sim::bus_bandwidth_factor(sim::Collective::all_reduce, ranks)),
               to_string(Seconds{measured.processor_s}), to_string(Seconds{measured.spread_s})});
  }
  return table;
}

std::string csv_of(const std::vector<RealRow>& rows, int ranks) {
  report::Table table({"bytes", "sent_bytes", "scheme", "ranks", "time_s", "low_s", "high_s", "predicted_s", "messages",
                       "repeats", "start_spread_s", "processor_s"});
  for (const RealRow& row : rows)
    table.add({std::to_string(row.asked), std::to_string(row.bytes), row.scheme->name(), std::to_string(ranks),
               fmt::format("{}", row.measured.median_s), fmt::format("{}", row.measured.low_s),
               fmt::format("{}", row.measured.high_s), row.predicted ? fmt::format("{}", row.predicted->si) : "",
               std::to_string(row.messages), std::to_string(row.measured.repeats),
               fmt::format("{}", row.measured.spread_s), fmt::format("{}", row.measured.processor_s)});
  return table.csv();
}

std::string heading_of(const RealAllReduce& request, rehearsal::Group& group) {
  std::string out =
      fmt::format("{} processes, {}; every sum was right on every rank; ", group.ranks(), group.messenger().name());
  out += group.clock().same_machine ? "one machine and one clock"
                                    : "clocks agree within " + to_string(Seconds{group.clock().error_s});
  if (group.is_crowded()) out += "; more ranks than processors, which then wait for each other";
  return out + "\n" + (request.machine.empty() ? "\n" : "predicted for " + request.machine);
}

void fit_overlay(const RealAllReduce& request, const std::vector<RealRow>& rows, const std::string& messenger,
                 int ranks, const Shared& shared) {
  std::vector<TimedSize> sizes;
  for (const RealRow& row : rows)
    if (row.scheme == request.schemes.data()) sizes.push_back({row.bytes, row.measured.median_s});
  LinkImport link = request.link;
  link.log = std::filesystem::path(shared.output).replace_extension(".all-reduce.txt").string();
  write_file(link.log, log_of_sizes(ranks, messenger, link.instance, sizes));
  import_collective_log(link, shared);
}

}  // namespace

void run_real_allreduce(const RealAllReduce& request, const Shared& shared) {
  check_request(request, shared);
  const auto messenger = kernel::open_messenger();
  rehearsal::Group group(*messenger);
  std::vector<RealRow> rows = execute(request, group, shared);
  if (!group.is_first()) return;
  predict(request, rows);
  Shared to_stdout = shared;
  to_stdout.output.clear();
  const int ranks = group.ranks();
  emit(to_stdout, shared.format == "json" ? json_of(rows, group)
                  : shared.format == "csv"
                      ? csv_of(rows, ranks)
                      : heading_of(request, group) + table_of(rows, ranks).text(result_width(shared)));
  if (!shared.output.empty()) fit_overlay(request, rows, messenger->name(), ranks, shared);
}

}  // namespace ganymede::cli
