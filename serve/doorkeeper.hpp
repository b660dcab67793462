#pragma once
// Holds all connections in one thread until their request has been received, or its head if the body is long.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace ganymede::serve {

// Decides who may use the server: a caller with the token. That it asks at the address that was printed is seen before
// (is_our_name, by TimedServer).
//
// A page of another site in the user's browser can send requests to any local port, but it cannot read the token. The
// token travels in a header, which a browser never adds by itself; a cookie would be sent to every port of 127.0.0.1,
// and so to programs of other users of the machine. A foreign name that resolves to 127.0.0.1 (DNS rebinding) shows in
// Host, and a request that another site's page posts shows it in Origin.
//
// Pictures, frames and linked files are fetched without a script that could add a header. Their addresses have a key
// instead, which is valid for one path.

/// Returns 256 random bits from the system as 64 hexadecimal digits. Throws Failure if the system gives none.
std::string random_token();

/// True if Host of a request, `name`, is that of a server at `host` (an address or a name) and `port`. Any address of
/// the machine will do for one that listens at all of them (0.0.0.0, ::), but no name except localhost.
bool is_our_name(std::string_view name, const std::string& host, int port);

/// True if the texts are equal. The time it takes depends on their lengths alone.
bool same_secret(std::string_view a, std::string_view b);

/// The sender of a request, as the request states it. A part that the request lacks is "".
struct Caller {
  std::string method, host, origin, authorization;
  std::string token;      ///< "?token=" of the address
  std::string path, key;  ///< of the address, and its "?key="
};

enum class Verdict { welcome, wrong_origin, no_token };

class Gate {
 public:
  Gate(std::string token, int port);

  Verdict judge(const Caller& caller) const;
  /// The address to open in a browser, with the token.
  std::string address() const;
  /// The key that opens this path, and no other, without the token: 64 hexadecimal digits.
  std::string key_of(std::string_view path) const;

 private:
  std::string token_;
  int port_;
};

// A log of the requests that were refused, by which the owner of the server sees who tries what.

class RefusalLog {
 public:
  static constexpr std::size_t kMaxBytes = 1 << 20;  ///< of the file; the one before it is kept too

  explicit RefusalLog(std::filesystem::path file) : file_(std::move(file)) {}

  /// Adds a line: time, HTTP status, method and path. The path must be without a query, which may hold the token.
  /// Characters that could steer a terminal are written as text. An error of the file system is no error of the
  /// request.
  void add(int status, std::string_view method, std::string_view path);

 private:
  std::filesystem::path file_;
  std::mutex mutex_;
};

/// Bounds on all connections together. With the defaults, what is received takes about 40 MiB at most.
struct Bounds {
  std::size_t head = 64 << 10;    ///< bytes of request line and headers; status 431 beyond; with a body that fits: both
  std::size_t connections = 512;  ///< open at once; one more closes the one that has waited longest for its head
};

/// A connection whose request has been received, or at least its head if the whole is longer than Bounds::head. Whoever
/// receives it must close the socket.
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

  /// Waits for an event, accepts new connections, reads from all, and hands over each whose request is complete: a body
  /// that stays away would keep a thread waiting. Bodies without a stated length are refused. `answering` counts those
  /// handed over that are still open. Returns false if `listener` cannot accept any more.
  bool turn(const std::atomic<std::size_t>& answering, const std::function<void(Arrival)>& hand_over);

 private:
  struct Visitor {
    int socket;
    Clock::time_point end;
    std::string received{};
    std::size_t wanted = 0;     ///< bytes of the request, once its head has been read
    bool refused = false;       ///< answered already; the rest of its request is read and discarded
    std::size_t discarded = 0;  ///< bytes
    bool closed = false;
  };

  bool accept_all(const std::atomic<std::size_t>& answering);
  void read_from(Visitor& visitor, const std::function<void(Arrival)>& hand_over);
  void read_head(Visitor& visitor, std::size_t size);
  static void refuse(Visitor& visitor, std::string_view status);
  static void close(Visitor& visitor);

  int listener_, wake_;
  Bounds bounds_;
  Clock::duration patience_;
  std::deque<Visitor> visitors_;  ///< the one that has waited longest first
};

}  // namespace ganymede::serve
