#include "rehearsal/late_messenger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "rehearsal/clock.hpp"

namespace ganymede::rehearsal {

std::string LateMessenger::name() const {
  return fmt::format("{} in network namespaces, {} later", inner_->name(), to_string(latency_));
}

LateMessenger::Message LateMessenger::keep(State state) {
  if (free_.empty()) {
    states_.push_back(state);
    return states_.size() - 1;
  }
  const Message message = free_.back();
  free_.pop_back();
  states_[message] = state;
  return message;
}

LateMessenger::Message LateMessenger::send(std::span<const std::byte> bytes, int to, int tag) {
  return keep({inner_->send(bytes, to, tag), false});
}

LateMessenger::Message LateMessenger::receive(std::span<std::byte> bytes, int from, int tag) {
  return keep({inner_->receive(bytes, from, tag), true});
}

bool LateMessenger::done(Message message) {
  State& state = states_[message];
  if (state.passed_on == 0) {
    if (!inner_->done(state.inner)) return false;
    state.passed_on = machine_time() + (state.is_late ? latency_.si : 0);
  }
  if (machine_time() < state.passed_on) return false;
  free_.push_back(message);
  return true;
}

void LateMessenger::wait(double seconds) {
  constexpr double kNap = 20e-6;
  inner_->wait(0);
  std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, kNap)));
}

}  // namespace ganymede::rehearsal
