#include "rehearsal/gpu_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "common/errors.hpp"
#include "common/random.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::rehearsal {
namespace {

kernel::GpuTransfer gpu_transfer(const sim::Transfer& transfer, int peer) {
  return {static_cast<std::size_t>(transfer.offset) / sizeof(float),
          static_cast<std::size_t>(transfer.length) / sizeof(float), peer, transfer.reduce};
}

/// The fault of the GPUs of the ranks, which are named by machine and address; "": each rank has one of its own.
std::string lack_of_gpus(Group& group, const kernel::Gpus& gpus, int device) {
  // 53 bits of a hash are a number that a double holds.
  const auto name_of_gpu = [&] { return fnv1a(group.host_of(group.rank()) + kernel::bus_id_of_gpu(device)) >> 11U; };
  const double mine = gpus.count == 0 ? -1 : static_cast<double>(name_of_gpu());
  std::vector<double> all(static_cast<std::size_t>(group.ranks()));
  const auto gathered = group.gather({&mine, 1});
  for (std::size_t rank = 0; rank < gathered.size(); ++rank) all[rank] = gathered[rank][0];
  group.broadcast(all);
  const auto with = std::count_if(all.begin(), all.end(), [](double name) { return name >= 0; });
  if (with == 0) return gpus.why_none;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto name_of = [&](std::size_t number) { return group.name_of(static_cast<int>(number)); };
    const auto first = static_cast<std::size_t>(std::find(all.begin(), all.end(), all[rank]) - all.begin());
    if (all[rank] < 0) return fmt::format("{} of {} ranks have a GPU, {} has none", with, all.size(), name_of(rank));
    if (first < rank)
      return fmt::format("{} and {} would share a GPU, and NCCL has one rank on each", name_of(first), name_of(rank));
  }
  return "";
}

}  // namespace

std::vector<kernel::GpuRound> gpu_rounds(const RankPlan& plan) {
  std::map<std::int64_t, kernel::GpuRound> rounds;
  for (const auto& lane : plan.lanes())
    for (const RankPlan::Round& round : lane) {
      kernel::GpuRound& out = rounds[round.number];
      for (const sim::Transfer& send : round.sends) out.sends.push_back(gpu_transfer(send, send.destination));
      for (const sim::Transfer& receive : round.receives) out.receives.push_back(gpu_transfer(receive, receive.source));
    }
  std::vector<kernel::GpuRound> out;
  for (auto& [number, round] : rounds) out.push_back(std::move(round));
  return out;
}

std::unique_ptr<kernel::GpuExchange> join_gpus(Group& group, const std::string& backend, std::string& why_not) {
  if (backend == "cpu") return nullptr;
  group.enter("the joining of the GPUs");
  const kernel::Gpus gpus = kernel::count_gpus();
  kernel::GpuExchangeOptions options{
      .device = kernel::gpu_of_process(gpus.count), .rank = group.rank(), .ranks = group.ranks()};
  why_not = lack_of_gpus(group, gpus, options.device);
  if (!why_not.empty()) {
    if (backend == "cuda") throw ConfigError("--backend: found cuda, expected a GPU for each rank: " + why_not);
    return nullptr;
  }
  std::array<double, sizeof(kernel::GpuExchangeId) / sizeof(double)> packed{};
  if (group.is_first()) {
    const kernel::GpuExchangeId id = kernel::make_gpu_exchange_id();
    std::memcpy(packed.data(), id.data(), sizeof id);
  }
  group.broadcast(packed);
  std::memcpy(options.id.data(), packed.data(), sizeof options.id);
  std::unique_ptr<kernel::GpuExchange> exchange = kernel::open_gpu_exchange(options);
  group.finish(*exchange, 0);
  return exchange;
}

}  // namespace ganymede::rehearsal
