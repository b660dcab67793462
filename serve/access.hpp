#pragma once
// Who may talk to the server: whoever has the token, at the address that the server has told.
//
// A page of another site that this machine's browser shows can send requests to any local port. It cannot read the
// token; a name of its own that it lets point to 127.0.0.1 (DNS rebinding) shows in Host; and what it posts with the
// browser's cookie shows in Origin, besides that the cookie is SameSite=Strict.

#include <string>
#include <string_view>

namespace ganymede::serve {

/// 256 bits of the system's randomness, as 64 hexadecimal digits. Failure if there is none.
std::string random_token();

/// Whether they are equal; how long it takes depends on the lengths alone.
bool same_secret(std::string_view a, std::string_view b);

/// What a request shows of who sends it; "" for what it does not have.
struct Caller {
  std::string method, host, origin, cookie, authorization, token;  ///< `token`: of the address, "?token="
};

enum class Verdict { welcome, wrong_host, wrong_origin, no_token };

class Gate {
 public:
  Gate(std::string token, int port);

  Verdict judge(const Caller& caller) const;
  /// The address to open.
  std::string address() const;
  /// Set-Cookie's value, for who came with a token. Cookies are shared by all ports of a host, so its name has the
  /// port.
  std::string cookie() const;

 private:
  std::string cookie_name() const;

  std::string token_;
  int port_;
};

}  // namespace ganymede::serve
