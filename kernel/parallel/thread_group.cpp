#include "kernel/parallel/thread_group.hpp"

#include <algorithm>
#include <exception>
#include <thread>

#include "common/errors.hpp"

namespace ganymede::kernel {

class ThreadGroup::Member final : public Communicator {
 public:
  Member(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}

  std::string name() const override { return "threads"; }
  bool shares_process() const override { return true; }
  Shard shard() const override { return {rank_, group_.ranks_}; }
  bool abandoned() override {
    const std::lock_guard lock(group_.values_.mutex);
    return group_.values_.abandoned;
  }
  void sum(std::span<double> values) override { group_.sum(group_.values_, group_.values_.doubles, rank_, values); }
  void sum_gradients(std::span<float> values) override {
    group_.sum(group_.gradients_, group_.gradients_.floats, rank_, values);
  }
  void gather_gradients(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    Exchange& exchange = group_.gradients_;
    exchange.bytes[static_cast<std::size_t>(rank_)] = mine;
    group_.wait_for_all(exchange);
    auto to = all.begin();
    for (const auto& part : exchange.bytes) to = std::copy(part.begin(), part.end(), to);
    group_.wait_for_all(exchange);
  }

 private:
  ThreadGroup& group_;
  int rank_;
};

ThreadGroup::ThreadGroup(int ranks) : ranks_(ranks) {
  for (Exchange* exchange : {&values_, &gradients_}) {
    exchange->doubles.resize(static_cast<std::size_t>(ranks));
    exchange->floats.resize(static_cast<std::size_t>(ranks));
    exchange->bytes.resize(static_cast<std::size_t>(ranks));
  }
}

std::unique_ptr<Communicator> ThreadGroup::member(int rank) { return std::make_unique<Member>(*this, rank); }

void ThreadGroup::abandon() {
  for (Exchange* exchange : {&values_, &gradients_}) {
    const std::lock_guard lock(exchange->mutex);
    exchange->abandoned = true;
    exchange->complete.notify_all();
  }
}

void ThreadGroup::run(int ranks, const std::function<void(Communicator&)>& work) {
  ThreadGroup group(ranks);
  std::mutex mutex;
  std::exception_ptr first;
  const auto as = [&](int rank) {
    try {
      const auto communicator = group.member(rank);
      work(*communicator);
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      group.abandon();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) threads.emplace_back(as, rank);
  as(0);
  for (auto& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

void ThreadGroup::wait_for_all(Exchange& exchange) const {
  std::unique_lock lock(exchange.mutex);
  const std::uint64_t round = exchange.round;
  if (++exchange.arrived == ranks_) {
    exchange.arrived = 0;
    ++exchange.round;
    exchange.complete.notify_all();
  }
  exchange.complete.wait(lock, [&] { return exchange.round != round || exchange.abandoned; });
  if (exchange.round == round) throw Failure("another replica has failed");
}

template <class Value>
void ThreadGroup::sum(Exchange& exchange, std::vector<std::span<Value>>& given, int rank,
                      std::span<Value> values) const {
  given[static_cast<std::size_t>(rank)] = values;
  wait_for_all(exchange);
  std::vector<Value> sums(values.size());
  for (const auto& part : given)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
  wait_for_all(exchange);  // no rank may change its values before all ranks have read them
  std::copy(sums.begin(), sums.end(), values.begin());
}

}  // namespace ganymede::kernel
