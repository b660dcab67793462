#pragma once
// The page and its API over HTTP, on 127.0.0.1 only. docs/serve.md describes both, and what keeps others out.

#include <memory>
#include <string>

#include "serve/jobs.hpp"

namespace ganymede::serve {

struct ServerOptions {
  int port = 8765;                  ///< 0: a free one
  std::size_t most_body = 1 << 20;  ///< bytes of a request
};

class Server {
 public:
  /// Binds the port. ConfigError if it is in use. `jobs` must outlive this.
  Server(Jobs& jobs, const ServerOptions& options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// To open in a browser, with its token.
  std::string address() const;
  /// Answers until stop() is called, from another thread. False: it could not.
  bool run();
  /// Precondition: run() is or will be called.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ganymede::serve
