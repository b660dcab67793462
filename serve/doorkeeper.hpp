#pragma once
// Holds all connections in one thread until the head of their request has been received.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>

namespace ganymede::serve {

/// Bounds on all connections together. With the defaults, the heads of requests take about 40 MiB at most.
struct Bounds {
  std::size_t head = 64 << 10;    ///< bytes of request line and headers; status 431 beyond
  std::size_t connections = 512;  ///< open at once; one more closes the one that has waited longest for its head
};

/// A connection whose head has been received. Whoever receives it must close the socket.
struct Arrival {
  int socket;
  std::string received;                       ///< begins with the head
  std::chrono::steady_clock::time_point end;  ///< by which the whole request must have been received
};

class Doorkeeper {
 public:
  using Clock = std::chrono::steady_clock;

  /// `listener` and `wake` must outlive this; turn() returns when `wake` becomes readable. A request must be received
  /// within `patience`.
  Doorkeeper(int listener, int wake, const Bounds& bounds, Clock::duration patience);
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;
  ~Doorkeeper();

  /// Waits for an event, accepts new connections, reads from all, and hands over each whose head is complete.
  /// `answering` counts those handed over that are still open. Returns false if `listener` cannot accept any more.
  bool turn(const std::atomic<std::size_t>& answering, const std::function<void(Arrival)>& hand_over);

 private:
  struct Visitor {
    int socket;
    Clock::time_point end;
    std::string received{};
    bool refused = false;       ///< answered already; the rest of its request is read and discarded
    std::size_t discarded = 0;  ///< bytes
    bool closed = false;
  };

  bool accept_all(const std::atomic<std::size_t>& answering);
  void read_from(Visitor& visitor, const std::function<void(Arrival)>& hand_over);
  void refuse_head(Visitor& visitor);
  static void close(Visitor& visitor);

  int listener_, wake_;
  Bounds bounds_;
  Clock::duration patience_;
  std::deque<Visitor> visitors_;  ///< the one that has waited longest first
};

}  // namespace ganymede::serve
