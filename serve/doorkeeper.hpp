#pragma once
// Connections until the head of their request has come, all in one thread.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>

namespace ganymede::serve {

/// What all connections together may take. With the defaults their heads take some 40 MiB at most.
struct Bounds {
  std::size_t head = 64 << 10;    ///< bytes of the request line and the headers; more is answered by 431
  std::size_t connections = 512;  ///< open at once; one more ends the one that has waited longest for its head
};

/// A connection whose head has come, to be closed by who gets it.
struct Arrival {
  int socket;
  std::string received;                       ///< begins with the head
  std::chrono::steady_clock::time_point end;  ///< when the whole request must have come
};

class Doorkeeper {
 public:
  using Clock = std::chrono::steady_clock;

  /// `listener` and `wake`, whose reading ends a turn, must outlive this. A request must have come within `patience`.
  Doorkeeper(int listener, int wake, const Bounds& bounds, Clock::duration patience);
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;
  ~Doorkeeper();

  /// Waits until something happens, accepts who is new, reads what has come and hands over each whose head is there;
  /// `answering` of those handed over are still open. False: `listener` cannot accept any more.
  bool turn(const std::atomic<std::size_t>& answering, const std::function<void(Arrival)>& hand_over);

 private:
  struct Visitor {
    int socket;
    Clock::time_point end;
    std::string received{};
    bool refused = false;       ///< answered already; what still comes is read and forgotten
    std::size_t forgotten = 0;  ///< bytes
    bool gone = false;
  };

  bool accept_all(const std::atomic<std::size_t>& answering);
  void read_from(Visitor& visitor, const std::function<void(Arrival)>& hand_over);
  void refuse_head(Visitor& visitor);
  static void close(Visitor& visitor);

  int listener_, wake_;
  Bounds bounds_;
  Clock::duration patience_;
  std::deque<Visitor> visitors_;  ///< who has waited longest comes first
};

}  // namespace ganymede::serve
