#include "rehearsal/host_connections.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "common/errors.hpp"

namespace ganymede::rehearsal {
namespace {

volatile std::sig_atomic_t hosts_end_asked = 0;

[[noreturn]] void socket_failure(const char* call) {
  const int error = errno;
  const std::string what = fmt::format("cannot connect two hosts: {}: {}", call, std::strerror(error));
  if (error != EADDRINUSE && error != EADDRNOTAVAIL) throw Failure(what);
  throw ConfigError(what + "; no port is free, and each pair of hosts needs two");
}

int new_socket() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) socket_failure("socket");
  return socket;
}

}  // namespace

HostConnections::HostConnections(const std::vector<int>& hosts, const NameSpaces* spaces)
    : hosts_(hosts), sockets_(hosts.size(), std::vector<int>(hosts.size(), -1)), spaces_(spaces) {
  for (std::size_t a = 0; a < hosts.size(); ++a)
    for (std::size_t b = a + 1; b < hosts.size(); ++b) connect(a, b);
  if (spaces_ != nullptr) spaces_->leave();
}

HostConnections::~HostConnections() {
  for (std::size_t rank = 0; rank < sockets_.size(); ++rank) close_rank(rank);
}

std::vector<int> HostConnections::take(std::size_t rank) {
  const std::vector<int> own = sockets_[rank];
  sockets_[rank].assign(own.size(), -1);
  for (std::size_t other = 0; other < sockets_.size(); ++other) close_rank(other);
  return own;
}

void HostConnections::end(std::size_t rank) {
  for (const int socket : sockets_[rank])
    if (socket >= 0) ::shutdown(socket, SHUT_WR);
}

void HostConnections::close_rank(std::size_t rank) {
  for (int& socket : sockets_[rank])
    if (socket >= 0) ::close(std::exchange(socket, -1));
}

void HostConnections::connect(std::size_t a, std::size_t b) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (spaces_ != nullptr) spaces_->enter(hosts_[a]);
  ::inet_pton(AF_INET, spaces_ != nullptr ? NameSpaces::address_of(hosts_[a]).c_str() : "127.0.0.1", &address.sin_addr);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const int listening = new_socket();
  socklen_t size = sizeof address;
  if (::bind(listening, generic, size) != 0) socket_failure("bind");
  if (::listen(listening, 1) != 0) socket_failure("listen");
  if (::getsockname(listening, generic, &size) != 0) socket_failure("getsockname");
  if (spaces_ != nullptr) spaces_->enter(hosts_[b]);
  int& from_b = sockets_[b][a] = new_socket();
  if (::connect(from_b, generic, size) != 0) socket_failure("connect");
  int& from_a = sockets_[a][b];
  from_a = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  if (from_a < 0) socket_failure("accept");
  ::close(listening);
}

BeforeOthers::BeforeOthers() : policy_(::sched_getscheduler(0)) {
  ::sched_getparam(0, &priority_);
  sched_param first{};
  first.sched_priority = 1;
  ::sched_setscheduler(0, SCHED_RR, &first);
}

BeforeOthers::~BeforeOthers() { ::sched_setscheduler(0, policy_, &priority_); }

AmongOthers::AmongOthers() : policy_(::sched_getscheduler(0)) {
  ::sched_getparam(0, &priority_);
  const sched_param usual{};
  ::sched_setscheduler(0, SCHED_OTHER, &usual);
}

AmongOthers::~AmongOthers() { ::sched_setscheduler(0, policy_, &priority_); }

EndSignals::EndSignals() {
  hosts_end_asked = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, [](int) { hosts_end_asked = 1; }) == SIG_IGN && signal == SIGHUP)
      std::signal(signal, SIG_IGN);
}

EndSignals::~EndSignals() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  if (std::signal(SIGHUP, SIG_DFL) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

bool EndSignals::asked() { return hosts_end_asked != 0; }

}  // namespace ganymede::rehearsal
