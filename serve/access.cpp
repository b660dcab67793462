#include "serve/access.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <utility>

#include "common/errors.hpp"

namespace ganymede::serve {
std::string random_token() {
  std::array<unsigned char, 32> bytes{};
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Failure("the system gives no random numbers for the token");
    done += static_cast<std::size_t>(got);
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference =
        static_cast<unsigned char>(difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  return difference == 0;
}

bool is_our_name(std::string_view name, const std::string& host, int port) {
  // Browsers leave out the default port.
  if (const std::string suffix = fmt::format(":{}", port); name.ends_with(suffix))
    name.remove_suffix(suffix.size());
  else if (port != 80)
    return false;
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  const std::string text(name);
  const bool is_address =
      ::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 || ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
  if (host == "0.0.0.0" || host == "::") return is_address || name == "localhost";
  return name == host || (name == "localhost" && (host.starts_with("127.") || host == "::1"));
}

Gate::Gate(std::string token, int port) : token_(std::move(token)), port_(port) {}

std::string Gate::address() const { return fmt::format("http://127.0.0.1:{}/?token={}", port_, token_); }
std::string Gate::key_of(std::string_view path) const {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(path.data());
  if (HMAC(EVP_sha256(), token_.data(), static_cast<int>(token_.size()), bytes, path.size(), digest.data(), &size) ==
      nullptr)
    throw Failure("the system computes no HMAC for the key of a file");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

Verdict Gate::judge(const Caller& caller) const {
  if (!is_our_name(caller.host, "127.0.0.1", port_)) return Verdict::wrong_host;
  const bool reads = caller.method == "GET" || caller.method == "HEAD";
  if (!reads && !caller.origin.empty() && caller.origin != "http://" + caller.host) return Verdict::wrong_origin;
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view authorization = caller.authorization;
  const bool known =
      same_secret(caller.token, token_) ||
      (authorization.starts_with(kBearer) && same_secret(authorization.substr(kBearer.size()), token_)) ||
      (reads && !caller.key.empty() && same_secret(caller.key, key_of(caller.path)));
  return known ? Verdict::welcome : Verdict::no_token;
}

}  // namespace ganymede::serve
