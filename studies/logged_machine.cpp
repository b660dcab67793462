#include "studies/logged_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/printable.hpp"
#include "platforms/catalog.hpp"
#include "platforms/gpu_names.hpp"
#include "platforms/overlay.hpp"
#include "platforms/sky_gpus.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede::studies {
namespace {

using platforms::gpu_likeness;
using platforms::Nic;

constexpr const char* kNeeded =
    "--catalog and --instance name the machine (`ganymede list instances`; `ganymede example platform --like TYPE` "
    "writes "
    "a file to change), or --gpu, --nodes and --nic 8x200Gbit/s describe it";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The network that NCCL says it uses: "efa", "rdma", "gcp" or "".
std::string network_of(const std::string& text) {
  for (const auto& [words, network] :
       std::initializer_list<std::pair<const char*, const char*>>{{"rovider is efa", "efa"},
                                                                  {"NET/AWS", "efa"},
                                                                  {"FasTrak", "gcp"},
                                                                  {"TCPX", "gcp"},
                                                                  {"NET/IB : Using", "rdma"},
                                                                  {"Using network IB", "rdma"}})
    if (has(text, words)) return network;
  return "";
}

/// "8x200Gbit/s" or "200Gbit/s", in place of the NICs of an instance.
void set_nics(platforms::Instance& instance, const std::string& text) {
  const std::size_t sign = text.find('x');
  const std::string count = sign == std::string::npos ? "1" : text.substr(0, sign);
  const bool digits = !count.empty() && count.size() < 4 && count.find_first_not_of("0123456789") == std::string::npos;
  Nic nic;
  try {
    nic.bandwidth = parse_quantity<BytesPerSecond>(text.substr(sign == std::string::npos ? 0 : sign + 1));
  } catch (const std::invalid_argument& error) {
    throw ConfigError(fmt::format("--nic {}: {}", text, error.what()));
  }
  if (!digits || std::stoi(count) < 1 || !(nic.bandwidth.si > 0))
    throw ConfigError(fmt::format("--nic {}: expected NICs of a node such as 8x200Gbit/s", text));
  if (nic.bandwidth.si < 100e6 / 8 || nic.bandwidth.si > 10e12 / 8)
    throw ConfigError(fmt::format("--nic {}: expected NICs of 100Mbit/s to 10Tbit/s each", text));
  nic.count = std::stoi(count);
  nic.latency = Seconds{5e-6};  // as the catalogs state of InfiniBand
  nic.label = "datasheet";
  instance.nic = nic;
}

/// A machine with GPUs that no catalog rents so, joined as those of their generation are. Nothing without a data sheet,
/// nor where --gpu says another memory than the sheet.
std::optional<LoggedMachine> machine_of_sheet(const std::string& gpu, int gpus, const MachineHints& hints) {
  const platforms::SkyGpu found = hints.gpu.empty()
                                      ? platforms::gpu_of({.cloud = "", .name = gpu, .info = "", .count = double(gpus)})
                                      : platforms::gpu_by_sheet(gpu).value_or(platforms::SkyGpu());
  if (found.sheet == nullptr || found.sheet->capability == 0 || gpus < 1) return std::nullopt;
  std::string sources;
  for (const auto& [name, source] : platforms::sky_sources())
    sources += fmt::format("{}\"{}\": {}", sources.empty() ? "" : ", ", name, Json(source).dump());
  const std::string text = fmt::format(
      R"({{"schema": "ganymede.platform/1", "provider": "private", "name": "sheet", "sources": {{{}}},
           "gpus": {{{}: {}}}, "instances": {{"{}x{}": {{"gpu": {}, "gpus": {}, {} "source": "SHEETS",
           "prices": []}}}}}})",
      sources, Json(found.name).dump(), platforms::gpu_text(found), gpus, found.name, Json(found.name).dump(), gpus,
      platforms::links_text(*found.sheet, gpus));
  const platforms::Platform platform = platforms::read_platform(JsonNode::parse(text, "the GPU's data sheet"));
  LoggedMachine machine{platform, platform.instances.front(), "no catalog",
                        fmt::format("by the data sheet of \"{}\", {} a node", gpu, gpus)};
  if (!hints.nic.empty()) set_nics(machine.instance, hints.nic);
  return machine;
}

struct Candidate {
  const platforms::Platform* platform;
  const platforms::Instance* instance;
  int points;
};

/// True if busbw / algbw may be that of so many ranks, two or more.
bool has_ranks(const traces::NcclLog& log, int ranks) {
  if (ranks < 2) return false;
  const auto collective = sim::parse_collective(log.collective.empty() ? "all-reduce" : log.collective);
  return !log.bus_factor || std::abs(*log.bus_factor - sim::bus_bandwidth_factor(collective, ranks)) < 0.03;
}

/// An instance type that may be the log's machine.
struct Considered {
  const platforms::Platform& platform;
  const platforms::Instance& instance;
  const traces::NcclLog& log;
  const MachineHints& hints;
  const std::string& network;
  int nodes, per_node;
};

/// How well it fits what is known of the machine; 0 or less: not at all.
int points_of(const Considered& of) {
  const platforms::Instance& instance = of.instance;
  const bool stated_nic = !of.hints.nic.empty();
  int points = !of.hints.instance.empty() ? 1
                                          : gpu_likeness(of.hints.gpu.empty() ? printable(of.log.gpu) : of.hints.gpu,
                                                         of.platform.gpu_of(instance));
  if (points <= 0 || instance.gpus < of.per_node || (of.nodes > 1 && !instance.nic && !stated_nic)) return 0;
  if (of.per_node == 0 && !has_ranks(of.log, of.nodes * instance.gpus)) return 0;
  if (instance.gpus == of.per_node) points += 3;
  if (of.nodes == 1 || stated_nic) return points;
  const Nic::Transport transport = instance.nic->transport;
  const bool named = of.network == "efa"    ? transport == Nic::Transport::efa
                     : of.network == "rdma" ? transport == Nic::Transport::rdma && of.platform.provider == "azure"
                                            : of.network == "gcp" && of.platform.provider == "gcp";
  return points + (named ? 50 : 0);
}

std::string nics_of(const platforms::Instance& instance) {
  if (!instance.nic) return "no network";
  return fmt::format("{} x {:g} Gbit/s {}", instance.nic->count, instance.nic->bandwidth.si * 8e-9,
                     platforms::transport_names()[static_cast<std::size_t>(instance.nic->transport)]);
}

}  // namespace

/// Throws ConfigError for a TPU or a processor, "TPU-v3" or "CPU", whose links these models do not describe.
static void check_is_gpu(const std::string& stated, const platforms::Gpu& gpu) {
  if (gpu.kind == platforms::Gpu::Kind::gpu) return;
  throw ConfigError(fmt::format("{}: {} is no GPU; expected one, since it is NCCL between GPUs that is looked into",
                                stated, gpu.name));
}

/// The instance. Throws ConfigError if it has no GPUs, or if it is stated and --gpu says less well which GPU it has
/// than the family would.
static platforms::Instance checked(const MachineHints& hints, const platforms::Platform& platform,
                                   const platforms::Instance& instance) {
  const platforms::Gpu& gpu = platform.gpu_of(instance);
  check_is_gpu("--instance " + hints.instance, gpu);
  if (!hints.gpu.empty() && !hints.instance.empty() && gpu_likeness(hints.gpu, gpu) < gpu_likeness(gpu.family, gpu))
    throw ConfigError(fmt::format("--gpu {}: --instance {} has {}; one of the two is enough", printable(hints.gpu),
                                  hints.instance, gpu.name));
  return instance;
}

[[noreturn]] static void refuse_machine(const traces::NcclLog& log, const MachineHints& hints, const std::string& gpu,
                                        int nodes, int per_node) {
  for (const std::string& provider : platforms::provider_names())
    for (const platforms::Gpu& known : platforms::catalog(provider).gpus)
      if (hints.instance.empty() &&
          (platforms::is_gpu_name(gpu, known.name) || platforms::is_gpu_name(gpu, known.family)))
        check_is_gpu((hints.gpu.empty() ? log.file + ": " : "--gpu ") + gpu, known);
  throw ConfigError(fmt::format("{}: no catalog has {} with {} of {}; {}{}", log.file,
                                nodes > 1 ? "nodes" : "a machine", per_node > 0 ? std::to_string(per_node) : "several",
                                hints.instance.empty() ? gpu : hints.instance, kNeeded,
                                hints.gpu.empty() ? "" : platforms::did_you_mean_gpu(gpu)));
}

LoggedMachine logged_machine(const traces::NcclLog& log, const std::string& text, const MachineHints& hints,
                             const LogOptions& options) {
  if (!hints.instance.empty() && !hints.catalog.empty()) {
    platforms::Platform platform = platforms::load_platform_choice(hints.catalog, hints.overlay);
    platforms::Instance instance = checked(hints, platform, platform.instance(hints.instance));
    if (!hints.nic.empty()) set_nics(instance, hints.nic);
    return {std::move(platform), std::move(instance), hints.catalog, "as named"};
  }
  if (!hints.overlay.empty()) throw ConfigError("--overlay: expected --catalog and --instance beside it");
  const std::string gpu = printable(hints.gpu.empty() ? log.gpu : hints.gpu);
  if (gpu.empty() && hints.instance.empty())
    throw ConfigError(fmt::format("{}: no GPU is named; {}", log.file, kNeeded));
  const int nodes = options.nodes > 0 ? options.nodes : std::max(1, log.nodes);
  if (options.gpus_per_node == 0 && log.ranks > 0 && log.ranks % nodes != 0)
    throw ConfigError(fmt::format("{}: its {} ranks cannot be spread evenly over {} nodes; --nodes says how many",
                                  log.file, log.ranks, nodes));
  const int per_node = options.gpus_per_node > 0 ? options.gpus_per_node : log.ranks > 0 ? log.ranks / nodes : 0;
  const std::string network = network_of(text);
  std::vector<platforms::Platform> named;
  std::vector<const platforms::Platform*> all;
  if (!hints.catalog.empty())
    all.push_back(&named.emplace_back(platforms::load_platform_choice(hints.catalog, "")));
  else
    for (const std::string& provider : platforms::provider_names()) all.push_back(&platforms::catalog(provider));
  std::vector<Candidate> candidates;
  for (const platforms::Platform* platform : all)
    for (const platforms::Instance& instance : platform->instances) {
      if (!hints.instance.empty() && instance.name != hints.instance) continue;
      const int points = points_of({*platform, instance, log, hints, network, nodes, per_node});
      if (points > 0) candidates.push_back({platform, &instance, points});
    }
  if (candidates.empty() && hints.catalog.empty() && hints.instance.empty() && (nodes == 1 || !hints.nic.empty()))
    if (auto sheet = machine_of_sheet(gpu, per_node, hints)) return *std::move(sheet);
  if (candidates.empty()) refuse_machine(log, hints, gpu, nodes, per_node);
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.points > b.points || (a.points == b.points && a.instance->gpus < b.instance->gpus);
  });
  const Candidate best = candidates.front();
  std::vector<std::string> others;
  if (nodes > 1 && hints.nic.empty())
    for (const Candidate& other : candidates)
      if (other.points == best.points && nics_of(*other.instance) != nics_of(*best.instance) && others.size() < 4)
        others.push_back(
            fmt::format("{} {} ({})", other.platform->name, other.instance->name, nics_of(*other.instance)));
  if (!others.empty())
    throw ConfigError(fmt::format("{}: {} nodes of {} may be {} {} ({}) or {}; {}", log.file, nodes, gpu,
                                  best.platform->name, best.instance->name, nics_of(*best.instance),
                                  fmt::join(others, " or "), kNeeded));
  LoggedMachine machine{*best.platform, checked(hints, *best.platform, *best.instance),
                        hints.catalog.empty() ? best.platform->name : hints.catalog, ""};
  if (!hints.nic.empty()) set_nics(machine.instance, hints.nic);
  machine.how = hints.instance.empty()
                    ? fmt::format("by \"{}\"{}{}", gpu, per_node > 0 ? fmt::format(", {} a node", per_node) : "",
                                  network.empty() || nodes == 1 ? "" : " and the network that NCCL names")
                    : "as named";
  if (!hints.gpu.empty() && !log.gpu.empty() && gpu_likeness(log.gpu, machine.platform.gpu_of(machine.instance)) == 0)
    machine.how += fmt::format(", though the log names \"{}\"", printable(log.gpu));
  return machine;
}

}  // namespace ganymede::studies
