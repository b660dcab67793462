#pragma once
// Serves the metrics of a run under way to Prometheus.

#include <memory>
#include <string>

namespace ganymede::serve {

/// Serves the last text that it was shown at /metrics as long as it lives.
class MetricsServer {
 public:
  /// `address`: "127.0.0.1:9464"; the host may be left out, an IPv6 address stands in brackets, and the port 0 is one
  /// that is free. Throws ConfigError, which names --listen, for what is no address, and if nothing can listen there.
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
