#pragma once
// Decides who may use the server: a caller with the token, at the address that the server has printed.
//
// A page of another site in the user's browser can send requests to any local port, but it cannot read the token. The
// token travels in a header, which a browser never adds by itself; a cookie would be sent to every port of 127.0.0.1,
// and so to programs of other users of the machine. A foreign name that resolves to 127.0.0.1 (DNS rebinding) shows in
// Host, and a request that another site's page posts shows it in Origin.
//
// Pictures, frames and linked files are fetched without a script that could add a header. Their addresses have a key
// instead, which is valid for one path.

#include <string>
#include <string_view>

namespace ganymede::serve {

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

enum class Verdict { welcome, wrong_host, wrong_origin, no_token };

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

}  // namespace ganymede::serve
