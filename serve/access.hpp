#pragma once
// Who may talk to the server: whoever has the token, at the address that the server has told.
//
// A page of another site that this machine's browser shows can send requests to any local port. It cannot read the
// token, which the page sends in a header: a browser adds no header of that kind by itself, while it would send a
// cookie to every port of 127.0.0.1, and so to programs of other users of the machine. A name that the other site lets
// point to 127.0.0.1 (DNS rebinding) shows in Host, and what it posts shows in Origin.
//
// What a browser fetches without a script, a picture, a frame or a file behind a link, has a key in its address instead
// that is good for this one path.

#include <string>
#include <string_view>

namespace ganymede::serve {

/// 256 bits of the system's randomness, as 64 hexadecimal digits. Failure if there is none.
std::string random_token();

/// Whether they are equal; how long it takes depends on the lengths alone.
bool same_secret(std::string_view a, std::string_view b);

/// What a request shows of who sends it; "" for what it does not have.
struct Caller {
  std::string method, host, origin, authorization;
  std::string token;      ///< of the address, "?token="
  std::string path, key;  ///< the address and its "?key="
};

enum class Verdict { welcome, wrong_host, wrong_origin, no_token };

class Gate {
 public:
  Gate(std::string token, int port);

  Verdict judge(const Caller& caller) const;
  /// The address to open.
  std::string address() const;
  /// What reads this path, and no other, without the token: 64 hexadecimal digits.
  std::string key_of(std::string_view path) const;

 private:
  std::string token_;
  int port_;
};

}  // namespace ganymede::serve
