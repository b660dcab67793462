#pragma once
// The messages of a folded simulation that one of their ends has entered and that are not yet done.

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "sim/engine/color.hpp"
#include "sim/engine/symmetry.hpp"

namespace ganymede::sim {

/// The progress of the message that a transfer sends in one round.
struct OpenMessage {
  /// The number of ends that have entered the round. With an eager protocol the arrival of the bytes counts instead of
  /// the entry of the source.
  std::uint8_t ready = 0;
  std::uint8_t leaving = 0;   ///< flows that have not left the source
  std::uint8_t arriving = 0;  ///< flows that have not reached the destination
};

class OpenMessages {
 public:
  /// `quotient` must outlive the object.
  explicit OpenMessages(const Quotient& quotient) : quotient_(quotient) {}

  /// Returns a message, which it opens first if it is not open.
  OpenMessage& open(int transfer, std::int64_t round) {
    const auto [at, is_new] = messages_.try_emplace(Key{transfer, round});
    if (is_new)
      at->second.leaving = at->second.arriving =
          static_cast<std::uint8_t>(quotient_.transfers[static_cast<std::size_t>(transfer)].flows.size());
    return at->second;
  }
  void close(int transfer, std::int64_t round) { messages_.erase(Key{transfer, round}); }

  /// Calls `visit(transfer, round, message)` for all open messages, in no particular order.
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [key, message] : messages_) visit(key.transfer, key.round, message);
  }
  /// Adds `rounds` to the rounds of all open messages.
  void advance(std::int64_t rounds) {
    Messages advanced;
    for (const auto& [key, message] : messages_) advanced.emplace(Key{key.transfer, key.round + rounds}, message);
    messages_ = std::move(advanced);
  }

 private:
  struct Key {
    int transfer = 0;
    std::int64_t round = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return mixed(static_cast<Color>(key.transfer) + (static_cast<Color>(key.round) << 32U));
    }
  };
  using Messages = std::unordered_map<Key, OpenMessage, Hash>;

  const Quotient& quotient_;
  Messages messages_;
};

}  // namespace ganymede::sim
