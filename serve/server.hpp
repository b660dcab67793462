#pragma once
// The page and its API over HTTP, on 127.0.0.1 only. docs/serve.md describes both, and how other programs and users are
// kept out.

#include <memory>
#include <string>

#include "serve/jobs.hpp"

namespace ganymede::serve {

struct ServerOptions {
  int port = 8765;                 ///< 0: a free one
  std::size_t max_body = 1 << 20;  ///< bytes of a request's body, at most; an upload has UploadStore::kMaxBytes
};

class Server {
 public:
  /// Binds the port. Throws ConfigError if it is in use. `jobs` must outlive this.
  Server(Jobs& jobs, const ServerOptions& options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// The address to open in a browser, with its token.
  std::string address() const;
  /// Answers requests until another thread calls stop(). Returns false if it could not listen.
  bool run();
  /// Requires that run() is running or will be called.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ganymede::serve
