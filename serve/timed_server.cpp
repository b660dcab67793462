#include "serve/timed_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "common/errors.hpp"

namespace ganymede::serve {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration duration_of(Seconds seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds.si));
}

class TimedStream final : public httplib::Stream {
 public:
  /// `received` is what has been read from the socket already.
  TimedStream(socket_t socket, const std::string& received, Clock::time_point end, Seconds answer)
      : socket_(socket), received_(received), end_(end), answer_(answer) {}

  bool is_readable() const override { return next_ < received_.size() || wait(POLLIN); }
  bool is_writable() const override { return wait(POLLOUT); }

  ssize_t read(char* data, std::size_t size) override {
    if (next_ == received_.size()) {
      received_.resize(kPiece);
      next_ = 0;
      const ssize_t got = transfer(POLLIN, [&] { return ::recv(socket_, received_.data(), kPiece, MSG_DONTWAIT); });
      received_.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (got <= 0) return got;
    }
    const std::size_t count = std::min(size, received_.size() - next_);
    std::memcpy(data, received_.data() + next_, count);
    next_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* data, std::size_t size) override {
    if (!answering_) end_ = Clock::now() + duration_of(answer_);
    answering_ = true;
    return transfer(POLLOUT, [&] { return ::send(socket_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL); });
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override { address(::getpeername, ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { address(::getsockname, ip, port); }
  socket_t socket() const override { return socket_; }

 private:
  static constexpr std::size_t kPiece = 4096;

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
  std::string received_;
  Clock::time_point end_;
  Seconds answer_;
  bool answering_ = false;
  std::size_t next_ = 0;
};

}  // namespace

TimedServer::TimedServer(const Patience& patience, const Bounds& bounds)
    : patience_(patience), bounds_(bounds), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw Failure("cannot make an event");
}
TimedServer::~TimedServer() { ::close(wake_); }

int TimedServer::bind(const std::string& host, int port, Welcome welcome) {
  // The library's default, SO_REUSEPORT, would let a second server share the port.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  host_ = host;
  port_ = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  set_pre_routing_handler([this, welcome](const httplib::Request& request, httplib::Response& response) {
    return admit(request, response, welcome);
  });
  return port_;
}

void TimedServer::listen_at(const std::string& address, Welcome welcome) {
  const auto colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? address : address.substr(colon + 1);
  std::string host = colon == std::string::npos || colon == 0 ? "127.0.0.1" : address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  int number = 0;
  const auto read = std::from_chars(port.data(), port.data() + port.size(), number);
  if (read.ec != std::errc() || read.ptr != port.data() + port.size() || number < 0 || number > 65535)
    throw ConfigError(fmt::format("--listen: found \"{}\", expected an address such as 127.0.0.1:9464", address));
  if (bind(host, number, welcome) < 0)
    throw ConfigError(fmt::format(
        "--listen: {}: cannot listen there: is the port in use, or the address none of this machine's?", address));
}

std::string TimedServer::address() const {
  const bool bare = host_.find(':') == std::string::npos;  // else an address of IPv6
  return fmt::format("http://{}:{}", bare ? host_ : "[" + host_ + "]", port_);
}

TimedServer::HandlerResponse TimedServer::admit(const httplib::Request& request, httplib::Response& response,
                                                Welcome welcome) const {
  const bool ours = welcome.any_name || (request.get_header_value_count("Host") == 1 &&
                                         is_our_name(request.get_header_value("Host"), host_, port_));
  const bool whole =
      !request.has_header("Range") || (welcome.one_range && request.get_header_value_count("Range") == 1 &&
                                       request.get_header_value("Range").find(',') == std::string::npos);
  if (ours && whole) return further_ ? further_(request, response) : HandlerResponse::Unhandled;
  // The library would cut the refusal, too, into the ranges that were asked for.
  const_cast<httplib::Request&>(request).ranges.clear();
  response.status = ours ? 416 : 403;
  response.set_content(!ours               ? R"({"error": "this is not the address that the program has printed"})"
                       : welcome.one_range ? R"({"error": "expected one range"})"
                                           : R"({"error": "expected no range"})",
                       "application/json");
  return HandlerResponse::Handled;
}

bool TimedServer::listen_after_bind() {
  const socket_t listener = svr_sock_;
  if (listener == INVALID_SOCKET) return false;
  const std::unique_ptr<httplib::TaskQueue> pool(new_task_queue());
  running_ = true;
  bool good = true;
  {
    Doorkeeper keeper(listener, wake_, bounds_, duration_of(patience_.request));
    while (good && !stopping_)
      good = keeper.turn(answering_, [&](Arrival arrival) {
        ++answering_;
        auto shared = std::make_shared<Arrival>(std::move(arrival));  // std::function needs a copyable task
        pool->enqueue([this, shared] { answer(*shared); });
      });
  }
  ::shutdown(listener, SHUT_RDWR);
  ::close(svr_sock_.exchange(INVALID_SOCKET));
  pool->shutdown();
  running_ = false;
  return good;
}

void TimedServer::stop() {
  stopping_ = true;
  wake();
}

void TimedServer::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
}

void TimedServer::answer(const Arrival& arrival) {
  try {
    TimedStream stream(arrival.socket, arrival.received, arrival.end, patience_.answer);
    bool closed = false;
    process_request(stream, true, closed, nullptr);
  } catch (const std::exception&) {  // out of memory, for example: only this answer fails
  }
  ::shutdown(arrival.socket, SHUT_RDWR);
  ::close(arrival.socket);
  --answering_;
  wake();
}

struct MetricsServer::Server {
  TimedServer http;
  std::mutex mutex;
  std::string text, address;
  std::jthread thread;  // declared last, because the thread uses the other members
};

MetricsServer::MetricsServer(const std::string& address, const std::string& content_type)
    : server_(std::make_unique<Server>()) {
  Server& server = *server_;
  server.http.Get("/metrics", [&server, content_type](const httplib::Request&, httplib::Response& response) {
    const std::lock_guard lock(server.mutex);
    response.set_content(server.text, content_type);
  });
  server.http.listen_at(address);
  server.address = server.http.address() + "/metrics";
  server.thread = std::jthread([&server] { server.http.listen_after_bind(); });
}

MetricsServer::~MetricsServer() { server_->http.stop(); }

const std::string& MetricsServer::address() const { return server_->address; }

void MetricsServer::show(const std::string& text) {
  const std::lock_guard lock(server_->mutex);
  server_->text = text;
}

}  // namespace ganymede::serve
