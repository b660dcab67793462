#include "rehearsal/group.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <limits>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/random.hpp"
#include "rehearsal/clock.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr int kControl = 0, kPing = 1;
constexpr int kPings = 20;

volatile std::sig_atomic_t end_asked = 0;

template <class Value>
std::span<std::byte> bytes_of(Value& value) {
  return std::as_writable_bytes(std::span<Value>(&value, 1));
}

}  // namespace

Group::Group(kernel::Messenger& messenger) : messenger_(messenger) {
  end_asked = 0;
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { end_asked = 1; });
  learn_hosts();
  align_clocks();
}

Group::~Group() {
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, SIG_DFL);
}

double Group::now() const { return machine_time() + offset_; }

std::string Group::name_of(int rank) const {
  if (hosts_.empty()) return fmt::format("rank {}", rank);
  return fmt::format("rank {} on {}", rank, host_of(rank));
}

std::string Group::at(const std::function<std::string()>& where) const {
  const std::string inside = where();
  return inside.empty() ? place_ : place_ + ", " + inside;
}

void Group::throw_if_asked_to_end(const std::function<std::string()>& where) const {
  if (end_asked != 0) throw Failure(fmt::format("{}: asked to end while it was in {}", name_of(rank()), at(where)));
}

bool Group::attempt(const std::function<bool()>& step, const std::function<std::string()>& where) const {
  try {
    return step();
  } catch (const Failure& failure) {
    throw Failure(fmt::format("{}, which was in {}: {}", name_of(rank()), at(where), failure.what()));
  }
}

void Group::drive(const std::function<bool()>& step, const std::function<bool()>& over,
                  const std::function<std::string()>& where, double patience, double nap) {
  double last = machine_time();
  while (true) {
    const bool any = attempt(step, where);
    if (over()) return;
    if (any) {
      last = machine_time();
      continue;
    }
    throw_if_asked_to_end(where);
    const double idle = machine_time() - last;
    if (idle > patience)
      throw Failure(fmt::format("{}: nothing has happened for {:.0f} s in {}", name_of(rank()), idle, at(where)));
    attempt([&] { return messenger_.wait(nap), false; }, where);
  }
}

void Group::wait_for(kernel::Messenger::Message message, const char* doing, int peer) {
  bool done = false;
  drive([&] { return done = messenger_.done(message); }, [&] { return done; },
        [&] { return fmt::format("{} {}", doing, name_of(peer)); });
}

void Group::finish(Execution& execution) {
  drive([&] { return execution.progress(); }, [&] { return execution.done(); },
        [&] { return execution.waits_for([this](int rank) { return name_of(rank); }); },
        kPatience + static_cast<double>(execution.bytes()) / kSlowest);
}

void Group::finish(kernel::GpuExchange& exchange, std::int64_t bytes) {
  bool done = false;
  drive([&] { return done = exchange.done(); }, [&] { return done; }, [] { return std::string("messages by NCCL"); },
        kPatience + static_cast<double>(bytes) / kSlowest, 0);
}

void Group::sleep_until(double time, bool exactly) {
  constexpr double kEarly = 200e-6;  // a processor wakes up so much late, at most times
  const bool awake = exactly && !crowded_;
  const double until = time - offset_ - (awake ? kEarly : 0);
  const timespec target = timespec_of(until);
  while (until > machine_time() && ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &target, nullptr) == EINTR)
    throw_if_asked_to_end([] { return std::string("a pause"); });
  while (awake && now() < time) {
  }
}

void Group::gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (!is_first()) return wait_for(messenger_.send(mine, 0, kControl), "sending to", 0);
  std::copy(mine.begin(), mine.end(), all.begin());
  std::vector<kernel::Messenger::Message> messages;
  for (int rank = 1; rank < ranks(); ++rank)
    messages.push_back(
        messenger_.receive(all.subspan(static_cast<std::size_t>(rank) * mine.size(), mine.size()), rank, kControl));
  for (int rank = 1; rank < ranks(); ++rank)
    wait_for(messages[static_cast<std::size_t>(rank - 1)], "waiting for numbers of", rank);
}

void Group::broadcast_bytes(std::span<std::byte> bytes) {
  if (!is_first()) return wait_for(messenger_.receive(bytes, 0, kControl), "waiting for numbers of", 0);
  std::vector<kernel::Messenger::Message> messages;
  for (int rank = 1; rank < ranks(); ++rank) messages.push_back(messenger_.send(bytes, rank, kControl));
  for (int rank = 1; rank < ranks(); ++rank) wait_for(messages[static_cast<std::size_t>(rank - 1)], "sending to", rank);
}

std::vector<std::vector<double>> Group::gather(std::span<const double> mine) {
  std::vector<double> numbers(is_first() ? mine.size() * static_cast<std::size_t>(ranks()) : 0);
  gather_bytes(std::as_bytes(mine), std::as_writable_bytes(std::span(numbers)));
  std::vector<std::vector<double>> all;
  for (auto from = numbers.begin(); from != numbers.end(); from += static_cast<std::ptrdiff_t>(mine.size()))
    all.emplace_back(from, from + static_cast<std::ptrdiff_t>(mine.size()));
  return all;
}

void Group::broadcast(std::span<double> values) { broadcast_bytes(std::as_writable_bytes(values)); }

void Group::send(std::span<const std::byte> bytes, int to, int tag) {
  wait_for(messenger_.send(bytes, to, tag), "sending to", to);
}

void Group::receive(std::span<std::byte> bytes, int from, int tag) {
  wait_for(messenger_.receive(bytes, from, tag), "waiting for a message of", from);
}

void Group::barrier() {
  double nothing = 0;
  gather({&nothing, 1});
  broadcast({&nothing, 1});
}

std::string Group::first_of(const std::string& text) {
  using Text = std::array<char, 512>;  // ends with a 0; longer texts are cut
  Text mine{}, found{};
  text.copy(mine.data(), mine.size() - 1);
  std::vector<Text> all(static_cast<std::size_t>(ranks()));
  gather_bytes(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  const auto first = std::find_if(all.begin(), all.end(), [](const Text& theirs) { return theirs[0] != 0; });
  if (first != all.end())  // only at rank 0
    fmt::format("rank {}: {}", first - all.begin(), first->data()).copy(found.data(), found.size() - 1);
  broadcast_bytes(std::as_writable_bytes(std::span(found)));
  return found.data();
}

/// Pings a rank from rank 0 and returns what must be added to that rank's clock; keeps the error.
double Group::offset_of(int rank) {
  double best = std::numeric_limits<double>::infinity(), offset = 0;
  for (int i = 0; i < kPings; ++i) {
    double before = machine_time(), theirs = 0;
    send(bytes_of(before), rank, kPing);
    receive(bytes_of(theirs), rank, kPing);
    const double after = machine_time();
    if (after - before >= best) continue;
    best = after - before;
    offset = (before + after) / 2 - theirs;
  }
  clock_.error_s = std::max(clock_.error_s, best / 2);
  return offset;
}

/// Every rank learns the names of all machines.
void Group::learn_hosts() {
  using Name = std::array<char, 64>;  // ends with a 0; longer names are cut
  Name mine{};
  ::gethostname(mine.data(), mine.size() - 1);
  std::vector<Name> all(static_cast<std::size_t>(ranks()));
  gather_bytes(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  broadcast_bytes(std::as_writable_bytes(std::span(all)));
  for (const Name& name : all) hosts_.emplace_back(name.data());
}

void Group::align_clocks() {
  // Processes read the same clock if this boot of the machine is theirs too.
  std::uint64_t mine = fnv1a(read_file("/proc/sys/kernel/random/boot_id"));
  std::vector<std::uint64_t> boots(static_cast<std::size_t>(ranks()));
  std::vector<double> offsets(boots.size());
  gather_bytes(bytes_of(mine), std::as_writable_bytes(std::span(boots)));
  broadcast_bytes(std::as_writable_bytes(std::span(boots)));
  const auto here = std::count(boots.begin(), boots.end(), mine);
  clock_.same_machine = here == ranks();
  crowded_ = here > ::sysconf(_SC_NPROCESSORS_ONLN);
  if (clock_.same_machine) return;
  for (int rank = 1; is_first() && rank < ranks(); ++rank) offsets[static_cast<std::size_t>(rank)] = offset_of(rank);
  for (int i = 0; !is_first() && i < kPings; ++i) {
    double time = 0;
    receive(bytes_of(time), 0, kPing);
    time = machine_time();
    send(bytes_of(time), 0, kPing);
  }
  broadcast(offsets);
  offset_ = offsets[static_cast<std::size_t>(rank())];
  broadcast({&clock_.error_s, 1});
}

}  // namespace ganymede::rehearsal
