#include "serve/doorkeeper.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/printable.hpp"

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

void RefusalLog::add(int status, std::string_view method, std::string_view path) {
  constexpr std::size_t kMaxMethod = 16, kMaxPath = 200;
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  if (const auto size = std::filesystem::file_size(file_, ignored); !ignored && size > kMaxBytes)
    std::filesystem::rename(file_, file_.string() + ".1", ignored);
  std::ofstream(file_, std::ios::app) << fmt::format("{} {} {} {}\n", format_time(now()), status,
                                                     printable(method.substr(0, kMaxMethod)),
                                                     printable(path.substr(0, kMaxPath)));
}

namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr auto kFarewell = std::chrono::seconds(1);
constexpr std::size_t kMaxDiscarded = 1 << 20;  ///< bytes that are read from a refused caller who continues to send
constexpr int kAnswerBuffer = 256 << 10;  ///< bytes: every page of the program fits, so that no reader holds a thread
constexpr int kAcceptedAtOnce = 64;       ///< connections accepted in one turn, so that open ones are read in between

}  // namespace

Doorkeeper::Doorkeeper(int listener, int wake, const Bounds& bounds, Clock::duration patience)
    : listener_(listener), wake_(wake), bounds_(bounds), patience_(patience) {
  ::fcntl(listener_, F_SETFL, ::fcntl(listener_, F_GETFL) | O_NONBLOCK);
  // With the library's backlog of five, the sixth caller would wait for a second before it tries again.
  ::listen(listener_, SOMAXCONN);
}

Doorkeeper::~Doorkeeper() {
  for (Visitor& visitor : visitors_) close(visitor);
}

void Doorkeeper::close(Visitor& visitor) {
  if (!visitor.closed) ::close(visitor.socket);
  visitor.closed = true;
}

bool Doorkeeper::turn(const std::atomic<std::size_t>& answering, const std::function<void(Arrival)>& hand_over) {
  // If all open connections are being answered, new ones wait in the queue of the system.
  const bool full = answering >= bounds_.connections;
  std::vector<pollfd> polled{{wake_, POLLIN, 0}, {full ? -1 : listener_, POLLIN, 0}};
  auto next = Clock::now() + std::chrono::hours(1);
  for (const Visitor& visitor : visitors_) {
    polled.push_back({visitor.socket, POLLIN, 0});
    next = std::min(next, visitor.end);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  if (::poll(polled.data(), polled.size(), static_cast<int>(std::max<std::int64_t>(left, 0))) < 0)
    return errno == EINTR;
  if (polled[0].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_, &count, sizeof count);
  }
  const auto now = Clock::now();
  for (std::size_t i = 0; i < visitors_.size(); ++i) {
    if (polled[i + 2].revents != 0) read_from(visitors_[i], hand_over);
    if (visitors_[i].end <= now) close(visitors_[i]);
  }
  std::erase_if(visitors_, [](const Visitor& visitor) { return visitor.closed; });
  return polled[1].revents == 0 || accept_all(answering);
}

bool Doorkeeper::accept_all(const std::atomic<std::size_t>& answering) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    const int error = errno;
    const bool too_many = socket < 0 && (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM);
    if (socket < 0 && !too_many) return error != EBADF && error != EINVAL && error != ENOTSOCK;
    if (socket >= 0) {
      ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kAnswerBuffer, sizeof kAnswerBuffer);
      visitors_.push_back({socket, Clock::now() + patience_});
    }
    if ((too_many || visitors_.size() + answering > bounds_.connections) && !visitors_.empty()) {
      close(visitors_.front());
      visitors_.pop_front();
    } else if (too_many) {
      ::usleep(10'000);  // there is no connection to close: other programs hold the descriptors
      return true;
    }
  }
  return true;
}

void Doorkeeper::read_from(Visitor& visitor, const std::function<void(Arrival)>& hand_over) {
  std::array<char, 16 << 10> piece;
  const ssize_t got = ::recv(visitor.socket, piece.data(), piece.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close(visitor);
  if (visitor.refused) {
    visitor.discarded += static_cast<std::size_t>(got);
    if (visitor.discarded > kMaxDiscarded) close(visitor);
    return;
  }
  const std::size_t before = visitor.received.size();
  visitor.received.append(piece.data(), static_cast<std::size_t>(got));
  if (visitor.wanted == 0) {
    const std::size_t end = visitor.received.find(kHeadEnd, before < kHeadEnd.size() ? 0 : before - kHeadEnd.size());
    const std::size_t size = end == std::string::npos ? visitor.received.size() + 1 : end + kHeadEnd.size();
    if (size > bounds_.head) return refuse(visitor, "431 Request Header Fields Too Large");
    if (end == std::string::npos) return;
    read_head(visitor, size);
    if (visitor.refused) return;
  }
  if (visitor.received.size() < visitor.wanted) return;
  visitor.closed = true;
  hand_over({visitor.socket, std::move(visitor.received), visitor.end});
}

/// Decides from a head of `size` bytes how much of the request is waited for.
void Doorkeeper::read_head(Visitor& visitor, std::size_t size) {
  std::string head = visitor.received.substr(0, size);
  for (char& letter : head) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
  constexpr std::string_view kLength = "\r\ncontent-length:", kEncoding = "\r\ntransfer-encoding:",
                             kExpect = "\r\nexpect:";
  if (head.find(kEncoding) != std::string::npos) return refuse(visitor, "411 Length Required");
  std::size_t body = 0;
  if (std::size_t at = head.find(kLength); at != std::string::npos) {
    if (head.rfind(kLength) != at) return refuse(visitor, "400 Bad Request");
    at = head.find_first_not_of(" \t", at + kLength.size());
    const auto [end, error] = std::from_chars(head.data() + at, head.data() + head.size(), body);
    if (error != std::errc{} || (*end != '\r' && *end != ' ')) return refuse(visitor, "400 Bad Request");
  } else {  // then there is no body (RFC 9112, 6.3); the library would wait for one until the caller hangs up
    constexpr std::string_view kNone = "Content-Length: 0\r\n";
    visitor.received.insert(size - 2, kNone);  // before the empty line
    size += kNone.size();
  }
  visitor.wanted = body <= bounds_.head - size ? size + body : size;
  if (visitor.received.size() >= visitor.wanted || head.find(kExpect) == std::string::npos) return;
  constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
  [[maybe_unused]] const auto sent = ::send(visitor.socket, kGoOn.data(), kGoOn.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Doorkeeper::refuse(Visitor& visitor, std::string_view status) {
  const std::string body = fmt::format("{{\"error\":\"{}\"}}\r\n", status.substr(4));
  const std::string answer =
      fmt::format("HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                  status, body.size(), body);
  [[maybe_unused]] const auto sent = ::send(visitor.socket, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  // If the socket were closed now, a caller who is still sending would lose the answer.
  ::shutdown(visitor.socket, SHUT_WR);
  visitor.refused = true;
  visitor.received = {};
  visitor.end = std::min(visitor.end, Clock::now() + kFarewell);
}

}  // namespace ganymede::serve
