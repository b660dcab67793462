#pragma once
// cpp-httplib's server with bounds on what callers can take: the time of a whole request, the size of its head, the
// number of connections.
//
// The library accepts a connection and keeps one of its threads for it until its request has come, however long and
// however large its headers. Here one thread holds all connections until the head of their request is there, and a
// thread of the pool sees none before. Whoever connects and says nothing therefore keeps nobody waiting.

#include <httplib.h>

#include <atomic>
#include <cstddef>

#include "common/units.hpp"
#include "serve/doorkeeper.hpp"

namespace ganymede::serve {

/// What one connection, which is one request, may take. Reading fails once `request` has passed since it was accepted;
/// writing, `answer` after the first byte of it.
struct Patience {
  Seconds request{10}, answer{30};
};

/// The library's functions of the same names are hidden.
class TimedServer : public httplib::Server {
 public:
  explicit TimedServer(const Patience& patience = {}, const Bounds& bounds = {});
  ~TimedServer() override;

  /// Accepts and answers until stop() is called, also before this. False: it could not listen.
  bool listen_after_bind();
  bool is_running() const { return running_; }
  /// From any thread.
  void stop();

 private:
  void answer(const Arrival& arrival);
  void wake() const;

  Patience patience_;
  Bounds bounds_;
  int wake_;  ///< an event: something has changed for the thread that accepts
  std::atomic<bool> running_ = false, stopping_ = false;
  std::atomic<std::size_t> answering_ = 0;
};

}  // namespace ganymede::serve
