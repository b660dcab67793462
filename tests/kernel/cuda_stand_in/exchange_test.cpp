// Messages between GPUs in rounds (kernel/parallel/gpu_exchange.hpp).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "common/errors.hpp"
#include "kernel/parallel/gpu_exchange.hpp"
#include "opened.hpp"

extern "C" ganymede::kernel::GpuExchange* ganymede_make_gpu_exchange(const ganymede::kernel::GpuExchangeOptions&);
extern "C" void ganymede_make_gpu_exchange_id(ganymede::kernel::GpuExchangeId&);

namespace ganymede::kernel::stand_in {
namespace {

using Floats = std::vector<float>;

void finish(GpuExchange& exchange) {
  while (!exchange.done()) std::this_thread::yield();
}

/// Calls work(rank, exchange) in a thread for each rank, once all have joined.
template <class Work>
void on_gpus(int ranks, const Work& work) {
  GpuExchangeId id;
  ganymede_make_gpu_exchange_id(id);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const std::unique_ptr<GpuExchange> exchange(ganymede_make_gpu_exchange({rank, rank, ranks, id}));
      finish(*exchange);
      work(rank, *exchange);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Exchange, AddsReplacesAndSwapsInRoundsHoweverOftenItRuns) {
  for (const Order order : {Order::late, Order::at_once, Order::others_first}) {
    const Session session({.order = order, .devices = 2});
    std::vector<Floats> sums(2);
    on_gpus(2, [&](int rank, GpuExchange& exchange) {
      EXPECT_EQ(exchange.name(), "NCCL 2.26.2, stand-in");
      const int peer = 1 - rank;
      // Floats 0 and 1 are summed at rank 0 and sent back; 2 and 3 are swapped in the same rounds.
      const GpuTransfer first{0, 2, peer, false}, added{0, 2, peer, true}, rest{2, 2, peer, false};
      std::vector<GpuRound> rounds(2);
      rounds[0] = rank == 0 ? GpuRound{{rest}, {added, rest}} : GpuRound{{first, rest}, {rest}};
      rounds[1] = rank == 0 ? GpuRound{{first}, {}} : GpuRound{{}, {first}};
      exchange.plan(4, rounds);
      for (int call = 0; call < 4; ++call) {
        const auto base = static_cast<float>(10 * rank + call);
        exchange.write(Floats{base, base + 1, base + 2, base + 3});
        exchange.start();
        finish(exchange);
        Floats found(4);
        exchange.read(found);
        sums[static_cast<std::size_t>(rank)].insert(sums[static_cast<std::size_t>(rank)].end(), found.begin(),
                                                    found.end());
      }
      EXPECT_GT(exchange.seconds_of_adding(1000), 0);
    });
    EXPECT_EQ(sums[0], (Floats{10, 12, 12, 13, 12, 14, 13, 14, 14, 16, 14, 15, 16, 18, 15, 16}));
    EXPECT_EQ(sums[1], (Floats{10, 12, 2, 3, 12, 14, 3, 4, 14, 16, 4, 5, 16, 18, 5, 6}));
  }
}

TEST(Exchange, TakesAnotherPlanOfAnotherLength) {
  const Session session({.devices = 3});
  on_gpus(3, [&](int rank, GpuExchange& exchange) {
    for (const std::size_t floats : {std::size_t{3}, std::size_t{1000}, std::size_t{10}}) {
      // A ring in which each rank gets what the one before it has.
      const GpuRound round{{{0, floats, (rank + 1) % 3, false}}, {{0, floats, (rank + 2) % 3, false}}};
      exchange.plan(floats, {round});
      for (int call = 0; call < 3; ++call) {
        exchange.write(Floats(floats, static_cast<float>(rank)));
        exchange.start();
        finish(exchange);
        Floats found(floats);
        exchange.read(found);
        EXPECT_THAT(found, testing::Each(static_cast<float>((rank + 2) % 3)));
      }
    }
  });
}

TEST(Exchange, OfARankThatFailsLetsTheOthersLeave) {
  const Session session({.devices = 2});
  on_gpus(2, [&](int rank, GpuExchange& exchange) {
    exchange.plan(1, {rank == 0 ? GpuRound{{}, {{0, 1, 1, false}}} : GpuRound{{{0, 1, 0, false}}, {}}});
    if (rank == 1) return;  // never sends
    exchange.start();
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(exchange.done());
    // The destructor must not wait for what never comes; it aborts.
  });
}

TEST(Exchange, ReportsABrokenNetwork) {
  const Session session({.devices = 2});
  std::barrier all_are_here(2);
  on_gpus(2, [&](int rank, GpuExchange& exchange) {
    exchange.plan(1, {rank == 0 ? GpuRound{{}, {{0, 1, 1, false}}} : GpuRound{{{0, 1, 0, false}}, {}}});
    exchange.start();
    all_are_here.arrive_and_wait();
    break_network();
    EXPECT_THROW(finish(exchange), Failure);
  });
}

}  // namespace
}  // namespace ganymede::kernel::stand_in
