#pragma once
// Messages that arrive later than their network brings them, for networks of name spaces whose kernel delays nothing.

#include <memory>
#include <vector>

#include "common/units.hpp"
#include "kernel/parallel/messenger.hpp"

namespace ganymede::rehearsal {

/// Passes messages on, and received ones `latency` after they have come.
class LateMessenger final : public kernel::Messenger {
 public:
  LateMessenger(std::unique_ptr<kernel::Messenger> inner, Seconds latency)
      : inner_(std::move(inner)), latency_(latency) {}

  std::string name() const override;
  int rank() const override { return inner_->rank(); }
  int ranks() const override { return inner_->ranks(); }
  Message send(std::span<const std::byte> bytes, int to, int tag) override;
  Message receive(std::span<std::byte> bytes, int from, int tag) override;
  bool done(Message message) override;
  /// Sleeps, because all ranks are on one machine: MPI looks at messages only in done().
  void wait(double seconds) override;
  void rest(double seconds) override { inner_->rest(seconds); }

 private:
  struct State {
    Message inner;
    bool is_late;
    double passed_on = 0;  ///< when a received message may be seen; 0: it has not come
  };
  Message keep(State state);

  std::unique_ptr<kernel::Messenger> inner_;
  Seconds latency_;
  std::vector<State> states_;
  std::vector<Message> free_;
};

}  // namespace ganymede::rehearsal
