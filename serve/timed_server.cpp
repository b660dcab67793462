#include "serve/timed_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace ganymede::serve {
namespace {

using Clock = std::chrono::steady_clock;

class TimedStream final : public httplib::Stream {
 public:
  TimedStream(socket_t socket, const Patience& patience) : socket_(socket), patience_(patience) {
    until(patience.request);
  }

  bool is_readable() const override { return next_ < held_ || wait(POLLIN); }
  bool is_writable() const override { return wait(POLLOUT); }

  ssize_t read(char* data, std::size_t size) override {
    if (next_ == held_) {
      const ssize_t got =
          transfer(POLLIN, [&] { return ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT); });
      if (got <= 0) return got;
      next_ = 0;
      held_ = static_cast<std::size_t>(got);
    }
    const std::size_t count = std::min(size, held_ - next_);
    std::memcpy(data, buffer_.data() + next_, count);
    next_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* data, std::size_t size) override {
    if (!answering_) until(patience_.answer);
    answering_ = true;
    return transfer(POLLOUT, [&] { return ::send(socket_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL); });
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override { address(::getpeername, ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { address(::getsockname, ip, port); }
  socket_t socket() const override { return socket_; }

 private:
  void until(Seconds patience) {
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience.si));
  }

  bool wait(short events) const {
    pollfd descriptor{socket_, events, 0};
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
      if (left <= 0) return false;
      const int ready = ::poll(&descriptor, 1, static_cast<int>(left));
      if (ready >= 0 || errno != EINTR) return ready > 0;
    }
  }

  ssize_t transfer(short events, auto&& call) const {
    while (wait(events)) {
      const ssize_t count = call();
      if (count >= 0 || (errno != EAGAIN && errno != EINTR)) return count;
    }
    return -1;
  }

  void address(auto&& get, std::string& ip, int& port) const {
    sockaddr_in at{};  // the server listens on IPv4 alone
    socklen_t length = sizeof at;
    std::array<char, INET_ADDRSTRLEN> text{};
    if (get(socket_, reinterpret_cast<sockaddr*>(&at), &length) != 0 || at.sin_family != AF_INET ||
        ::inet_ntop(AF_INET, &at.sin_addr, text.data(), text.size()) == nullptr)
      return;
    ip = text.data();
    port = ntohs(at.sin_port);
  }

  socket_t socket_;
  Patience patience_;
  Clock::time_point end_;
  bool answering_ = false;
  std::array<char, 4096> buffer_{};
  std::size_t next_ = 0, held_ = 0;
};

}  // namespace

bool TimedServer::process_and_close_socket(socket_t socket) {
  TimedStream stream(socket, patience_);
  bool closed = false;
  const bool answered = process_request(stream, true, closed, nullptr);
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return answered;
}

}  // namespace ganymede::serve
