#pragma once
// cpp-httplib's server with bounds on the time of a whole request, the size of its head and the number of connections.
//
// The library gives each accepted connection one of its threads until its request has been received, however long that
// takes and however large the headers are. Here one thread holds all connections until their request is complete, or
// its head if the body is long; only then a thread of the pool gets it. A client that sends nothing, or a head and no
// body, thus occupies no thread.

#include <httplib.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "common/units.hpp"
#include "serve/doorkeeper.hpp"

namespace ganymede::serve {

/// Time limits of a connection, which is one request. Reading fails `request` after the connection was accepted,
/// writing `answer` after the first byte of the answer.
struct Patience {
  Seconds request{10}, answer{30};
};

/// Requests that a server answers beyond those to its own address without ranges. Any other request is refused before
/// it is read: a page of another site could send it by a name that leads here, and many ranges would make a large
/// answer to a small request.
struct Welcome {
  bool any_name = false;   ///< whatever Host says, for a server that others call by names of their own
  bool one_range = false;  ///< a part of a file
};

/// Its functions hide those of the library with the same names.
class TimedServer : public httplib::Server {
 public:
  explicit TimedServer(const Patience& patience = {}, const Bounds& bounds = {});
  ~TimedServer() override;

  /// Listens at an address and a port of it, or at a free one for 0. Returns the port; -1 if it is in use, even by a
  /// server of ours, or not ours to use.
  int bind(const std::string& host, int port, Welcome welcome = {});
  /// Listens at "127.0.0.1:9464"; the host may be left out, an IPv6 address stands in brackets, and the port 0 is one
  /// that is free. Throws ConfigError, which names --listen, for what is no address, and if nothing can listen there.
  void listen_at(const std::string& address, Welcome welcome = {});
  /// "http://127.0.0.1:9464"
  std::string address() const;
  /// Decides on the requests that are left. Must be called before bind().
  void admit_by(HandlerWithResponse further) { further_ = std::move(further); }
  /// Accepts and answers until stop() is called, which may be before this. Returns false if it could not listen.
  bool listen_after_bind();
  bool is_running() const { return running_; }
  /// May be called from any thread.
  void stop();

 private:
  HandlerResponse admit(const httplib::Request& request, httplib::Response& response, Welcome welcome) const;
  void answer(const Arrival& arrival);
  void wake() const;

  Patience patience_;
  Bounds bounds_;
  std::string host_;
  int port_ = -1;
  HandlerWithResponse further_;
  int wake_;  ///< an eventfd that wakes the accepting thread
  std::atomic<bool> running_ = false, stopping_ = false;
  std::atomic<std::size_t> answering_ = 0;
};

// Serves the metrics of a run under way to Prometheus.

/// Serves the last text that it was shown at /metrics as long as it lives.
class MetricsServer {
 public:
  /// Listens as TimedServer::listen_at does.
  MetricsServer(const std::string& address, const std::string& content_type);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  const std::string& address() const;  ///< "http://127.0.0.1:9464/metrics"
  void show(const std::string& text);

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace ganymede::serve
