#include "rehearsal/local_hosts.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "rehearsal/name_spaces.hpp"

namespace ganymede::rehearsal {
namespace {

volatile std::sig_atomic_t hosts_end_asked = 0;

[[noreturn]] void socket_failure(const char* call) {
  throw Failure(fmt::format("cannot connect two hosts: {}: {}", call, std::strerror(errno)));
}

int new_socket() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) socket_failure("socket");
  return socket;
}

/// The sockets between all pairs of hosts, by host. Ports are those that the kernel finds free.
class Connections {
 public:
  Connections(int hosts, const NameSpaces* spaces)
      : sockets_(static_cast<std::size_t>(hosts), std::vector<int>(static_cast<std::size_t>(hosts), -1)),
        spaces_(spaces) {
    for (int a = 0; a < hosts; ++a)
      for (int b = a + 1; b < hosts; ++b) connect(a, b);
    if (spaces_ != nullptr) spaces_->leave();
  }
  ~Connections() {
    for (std::size_t host = 0; host < sockets_.size(); ++host) close_host(host);
  }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// The sockets of a host, for its process, which closes all others: a connection ends when its two processes do.
  std::vector<int> take(std::size_t host) {
    const std::vector<int> own = sockets_[host];
    sockets_[host].assign(own.size(), -1);
    for (std::size_t other = 0; other < sockets_.size(); ++other) close_host(other);
    return own;
  }
  /// Tells the other hosts that this one has ended.
  void end(std::size_t host) {
    for (const int socket : sockets_[host])
      if (socket >= 0) ::shutdown(socket, SHUT_WR);
  }

 private:
  void close_host(std::size_t host) {
    for (int& socket : sockets_[host])
      if (socket >= 0) ::close(std::exchange(socket, -1));
  }
  void connect(int a, int b) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (spaces_ != nullptr) spaces_->enter(a);
    ::inet_pton(AF_INET, spaces_ != nullptr ? NameSpaces::address_of(a).c_str() : "127.0.0.1", &address.sin_addr);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    const int listening = new_socket();
    socklen_t size = sizeof address;
    if (::bind(listening, generic, size) != 0) socket_failure("bind");
    if (::listen(listening, 1) != 0) socket_failure("listen");
    if (::getsockname(listening, generic, &size) != 0) socket_failure("getsockname");
    if (spaces_ != nullptr) spaces_->enter(b);
    int& from_b = sockets_[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = new_socket();
    if (::connect(from_b, generic, size) != 0) socket_failure("connect");
    int& from_a = sockets_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
    from_a = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (from_a < 0) socket_failure("accept");
    ::close(listening);
  }

  std::vector<std::vector<int>> sockets_;
  const NameSpaces* spaces_;
};

/// Lets a host run as soon as it wakes up, where that is allowed (root): other programs of this machine would delay the
/// network that it plays. It sleeps at most times, so that others are hardly delayed.
void run_before_others() {
  sched_param priority{};
  priority.sched_priority = 1;
  ::sched_setscheduler(0, SCHED_RR, &priority);
}

/// Notes SIGINT and SIGTERM while it lives.
class EndSignals {
 public:
  EndSignals() {
    hosts_end_asked = 0;
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { hosts_end_asked = 1; });
  }
  ~EndSignals() {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
};

}  // namespace

std::string run_on_hosts(int hosts, Shaping shaping, bool name_spaces,
                         const std::function<std::string(kernel::Messenger&)>& work) {
  assert(hosts >= 2 && hosts <= kMaxLocalHosts);
  const EndSignals signals;
  std::optional<NameSpaces> spaces;
  if (name_spaces) spaces.emplace(hosts, shaping.rate);
  shaping.is_paced = !name_spaces;
  Connections connections(hosts, spaces ? &*spaces : nullptr);
  std::optional<std::size_t> failed;  // the first host that did; a death comes before what it causes
  bool died = false;
  const auto landed = [&](std::size_t host, ChildOutcome& outcome) {
    connections.end(host);
    const bool is_death = outcome.kind == ChildOutcome::Kind::failure && outcome.text.starts_with("the simulation ");
    if (outcome.kind == ChildOutcome::Kind::ok || (failed && (died || !is_death))) return;
    if (is_death)
      outcome.text = fmt::format("rank {} has died: {}", host, outcome.text.substr(std::strlen("the simulation ")));
    died = is_death;
    failed = host;
  };
  const auto stopped = [&] {
    if (hosts_end_asked == 0) return false;
    for (std::size_t host = 0; host < static_cast<std::size_t>(hosts); ++host) connections.end(host);
    return true;
  };
  const auto outcomes = run_children(
      static_cast<std::size_t>(hosts), hosts,
      [&](std::size_t host) {
        run_before_others();
        if (spaces) spaces->enter(static_cast<int>(host));
        SocketMessenger messenger(static_cast<int>(host), connections.take(host), shaping);
        return work(messenger);
      },
      {}, ChildUse::once, landed, stopped);
  if (hosts_end_asked != 0) throw Failure("interrupted; all hosts have ended");
  if (failed) rethrow(outcomes[*failed]);
  return outcomes[0].text;
}

}  // namespace ganymede::rehearsal
