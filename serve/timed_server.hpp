#pragma once
// cpp-httplib's server with a bound on the time of a whole request. The library's timeouts are of single reads, so that
// a byte every few seconds would keep one of its threads for as long as a caller likes.

#include <httplib.h>

#include "common/units.hpp"

namespace ganymede::serve {

/// Of one connection, which is one request. Reading fails once `request` has passed; writing, `answer` after the first
/// byte of it.
struct Patience {
  Seconds request{10}, answer{30};
};

class TimedServer : public httplib::Server {
 public:
  explicit TimedServer(const Patience& patience = {}) : patience_(patience) {}

 private:
  bool process_and_close_socket(socket_t socket) override;

  Patience patience_;
};

}  // namespace ganymede::serve
