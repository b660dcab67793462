#pragma once
// A network inside one thread, which delivers messages as late and in as odd an order as the rules allow.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include "kernel/parallel/communicator.hpp"

namespace ganymede::rehearsal {

class FakeNetwork {
 public:
  explicit FakeNetwork(unsigned seed) : random_(seed) {}

  /// Bytes on their way, by source, destination and tag.
  std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> under_way;
  bool chance() { return random_() % 3 == 0; }

 private:
  std::mt19937 random_;
};

class FakeMessenger : public kernel::Messenger {
 public:
  FakeMessenger(FakeNetwork& network, int rank, int ranks) : network_(network), rank_(rank), ranks_(ranks) {}

  std::string name() const override { return "fake"; }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  Message send(std::span<const std::byte> bytes, int to, int tag) override {
    started_.push_back({{rank_, to, tag}, bytes, {}, false});
    return started_.size() - 1;
  }
  Message receive(std::span<std::byte> bytes, int from, int tag) override {
    started_.push_back({{from, rank_, tag}, {}, bytes, false});
    return started_.size() - 1;
  }
  /// Bytes are read when the send is done, at the last moment at which they must not have changed. Messages of one pair
  /// and tag keep their order.
  bool done(Message message) override {
    Started& mine = started_[message];
    for (Message before = 0; before < message; ++before)
      if (!started_[before].over && started_[before].way == mine.way) return false;
    if (!network_.chance()) return false;
    auto& queue = network_.under_way[mine.way];
    if (mine.into.empty()) {
      queue.emplace_back(mine.from.begin(), mine.from.end());
    } else {
      if (queue.empty()) return false;
      std::copy(queue.front().begin(), queue.front().end(), mine.into.begin());
      queue.pop_front();
    }
    return mine.over = true;
  }
  void wait(double) override {}
  void rest(double) override {}

 private:
  struct Started {
    std::tuple<int, int, int> way;
    std::span<const std::byte> from;
    std::span<std::byte> into;
    bool over;
  };
  FakeNetwork& network_;
  int rank_, ranks_;
  std::vector<Started> started_;
};

}  // namespace ganymede::rehearsal
