#include "serve/metrics_server.hpp"

#include <fmt/format.h>

#include <charconv>
#include <mutex>
#include <thread>

#include "common/errors.hpp"
#include "serve/access.hpp"
#include "serve/listen_address.hpp"
#include "serve/timed_server.hpp"

namespace ganymede::serve {

ListenAddress read_listen_address(const std::string& text) {
  const auto colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  ListenAddress out{colon == std::string::npos || colon == 0 ? "127.0.0.1" : text.substr(0, colon), 0};
  if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']')
    out.host = out.host.substr(1, out.host.size() - 2);
  const auto read = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (read.ec != std::errc() || read.ptr != port.data() + port.size() || out.port < 0 || out.port > 65535)
    throw ConfigError(fmt::format("--listen: found \"{}\", expected an address such as 127.0.0.1:9464", text));
  return out;
}

struct MetricsServer::Server {
  TimedServer http;
  std::mutex mutex;
  std::string text, address;
  std::jthread thread;  // declared last, because the thread uses the other members
};

MetricsServer::MetricsServer(const std::string& address, const std::string& content_type)
    : server_(std::make_unique<Server>()) {
  const ListenAddress at = read_listen_address(address);
  Server& server = *server_;
  server.http.Get("/metrics", [&server, content_type](const httplib::Request&, httplib::Response& response) {
    const std::lock_guard lock(server.mutex);
    response.set_content(server.text, content_type);
  });
  const int port = server.http.bind(at.host, at.port);
  if (port < 0) throw ConfigError(fmt::format("--listen: {}: cannot listen there: is the port in use?", address));
  // Nothing secret is shown, but a page of another site must not read it by a name that leads here, nor get a large
  // answer of many ranges for a small request.
  server.http.set_pre_routing_handler(
      [host = at.host, port](const httplib::Request& request, httplib::Response& response) {
        const bool ours =
            request.get_header_value_count("Host") == 1 && is_our_name(request.get_header_value("Host"), host, port);
        if (ours && !request.has_header("Range")) return httplib::Server::HandlerResponse::Unhandled;
        response.status = ours ? 416 : 403;
        response.set_content(ours ? "expected no range\n" : "this is not the address that the program has printed\n",
                             "text/plain");
        return httplib::Server::HandlerResponse::Handled;
      });
  server.address = fmt::format("http://{}:{}/metrics", at.host, port);
  server.thread = std::jthread([&server] { server.http.listen_after_bind(); });
}

MetricsServer::~MetricsServer() { server_->http.stop(); }

const std::string& MetricsServer::address() const { return server_->address; }

void MetricsServer::show(const std::string& text) {
  const std::lock_guard lock(server_->mutex);
  server_->text = text;
}

}  // namespace ganymede::serve
