// All that `ganymede serve` reads: requests, forms, the losses and records of its jobs.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <thread>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "serve/command_run.hpp"
#include "serve/forms.hpp"
#include "serve/jobs.hpp"
#include "serve/server.hpp"
#include "target.hpp"

namespace ganymede::fuzz {
namespace {

/// A server whose queue has no place, so that no request starts a program.
class Target127 {
 public:
  Target127() : jobs_(options()), server_(jobs_, {.port = 0}) {
    const std::string address = server_.address();
    const std::size_t colon = address.rfind(':');
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port_);
    token_ = address.substr(address.find("token=") + 6);
    thread_ = std::thread([this] { server_.run(); });
    // The first answer makes what workers read; what is made later is destroyed earlier.
    (void)answer("GET /api/choices HTTP/1.1\r\nHost: 127.0.0.1:@P\r\nAuthorization: Bearer @T\r\n\r\n");
  }

  /// Waits for the workers, which may be busy with a request that has had its time.
  void stop() {
    server_.stop();
    thread_.join();
  }

  /// Sends the request with the token and port of this server in place of @T and @P, and reads the answer to its end.
  std::string answer(std::string request) const {
    for (const auto& [mark, value] : {std::pair{std::string("@T"), token_}, {"@P", std::to_string(port_)}})
      for (std::size_t at = request.find(mark); at != std::string::npos; at = request.find(mark, at + value.size()))
        request.replace(at, mark.size(), value);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const linger none{1, 0};  // no connection stays behind in TIME_WAIT
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    std::string answer;
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
      (void)::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
      ::shutdown(socket, SHUT_WR);
      char piece[4096];
      for (ssize_t got = 0; (got = ::recv(socket, piece, sizeof piece, 0)) > 0;)
        answer.append(piece, static_cast<std::size_t>(got));
    }
    ::close(socket);
    return answer;
  }

 private:
  static serve::JobOptions options() {
    serve::JobOptions options;
    options.data = std::filesystem::temp_directory_path() / fmt::format("ganymede-fuzz-{}", ::getpid());
    options.queue = options.at_once = 0;
    return options;
  }

  serve::Jobs jobs_;
  serve::Server server_;
  std::thread thread_;
  int port_ = 0;
  std::string token_;
};

void ask(std::string_view bytes) {
  // Never destroyed, but stopped: a worker that goes on while the program ends reads what is being destroyed.
  static Target127* const kServer = new Target127;
  static const int kStopped = std::atexit([] { kServer->stop(); });
  expect(kStopped == 0, "a server that is stopped at the end");
  const std::string answer = kServer->answer(std::string(bytes));
  expect(answer.empty() || answer.starts_with("HTTP/1."), "an answer of HTTP");
  expect(!answer.starts_with("HTTP/1.1 500"), "no error of the server itself");
}

void read_losses(std::string_view bytes) { (void)serve::Losses::read(file_of(bytes)).csv(); }

}  // namespace

std::vector<Target> serve_targets() {
  return {
      {"form", "serve/forms.cpp serve/form_workload.cpp",
       [](std::string_view bytes) { (void)serve::read_form(JsonNode::parse(bytes, "form"), {}); }},
      {"http", "serve/server.cpp serve/access.cpp serve/doorkeeper.cpp serve/timed_server.cpp", ask},
      {"losses", "serve/losses.cpp", read_losses},
  };
}

}  // namespace ganymede::fuzz
