#include "rehearsal/socket_messenger.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/errors.hpp"
#include "rehearsal/clock.hpp"

namespace ganymede::rehearsal {
namespace {

/// Precedes the bytes of a piece.
struct PieceHeader {
  std::uint32_t tag, length;
  double left;  ///< when the piece has left the sender's NIC, in seconds of the machine's clock
};

/// Pieces take a quarter of a millisecond, so that messages which share a NIC do so fairly; their headers stay below
/// half a percent of the bytes.
std::size_t piece_bytes(BytesPerSecond rate) {
  return static_cast<std::size_t>(std::clamp(rate.si * 250e-6, 4096.0, 65536.0));
}

}  // namespace

SocketMessenger::SocketMessenger(int rank, std::vector<int> sockets, const Shaping& shaping)
    : rank_(rank), shaping_(shaping), piece_bytes_(piece_bytes(shaping.rate)), peers_(sockets.size()) {
  // Waking up is otherwise up to 50 us late.
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (static_cast<int>(i) == rank) continue;
    peers_[i].socket = sockets[i];
    const int on = 1;
    ::setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(sockets[i], F_SETFL, O_NONBLOCK);
  }
}

SocketMessenger::~SocketMessenger() {
  for (const Peer& peer : peers_)
    if (peer.socket >= 0) ::close(peer.socket);
}

std::string SocketMessenger::name() const {
  return fmt::format("sockets {} {}, {} away", shaping_.is_paced ? "paced to" : "in network namespaces with",
                     to_string(shaping_.rate), to_string(shaping_.latency));
}

SocketMessenger::Message SocketMessenger::new_message() {
  if (free_.empty()) {
    states_.emplace_back();
    return states_.size() - 1;
  }
  const Message message = free_.back();
  free_.pop_back();
  states_[message] = {};
  return message;
}

SocketMessenger::Message SocketMessenger::send(std::span<const std::byte> bytes, int to, int tag) {
  const Message message = new_message();
  const double now = machine_time();
  outgoing_.push_back({message, to, tag, bytes, now});
  send_pieces(now);
  return message;
}

SocketMessenger::Message SocketMessenger::receive(std::span<std::byte> bytes, int from, int tag) {
  const Message message = new_message();
  streams_[{from, tag}].wanted.push_back({message, bytes});
  return message;
}

bool SocketMessenger::done(Message message) {
  const State& state = states_[message];
  if (!state.is_handed_over || machine_time() < state.left) return false;
  free_.push_back(message);
  return true;
}

void SocketMessenger::fail_without(int rank) const {
  throw Failure(fmt::format("rank {}: the connection to rank {} has ended; its process is gone", rank_, rank));
}

/// Messages of one tag to one process keep their order.
bool SocketMessenger::is_first_of_its_way(std::size_t outgoing) const {
  const Outgoing& mine = outgoing_[outgoing];
  return std::none_of(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(outgoing),
                      [&](const Outgoing& other) { return other.to == mine.to && other.tag == mine.tag; });
}

void SocketMessenger::send_pieces(double now) {
  for (std::size_t tried = 0; tried < outgoing_.size();) {
    turn_ = (turn_ + 1) % outgoing_.size();
    Outgoing& outgoing = outgoing_[turn_];
    Peer& peer = peers_[static_cast<std::size_t>(outgoing.to)];
    flush(outgoing.to);
    // A NIC that was busy goes on at once, even if this process looks at it late; an idle one begins with the message.
    const double start = std::max(sent_until_, outgoing.ready);
    if (!peer.writing.empty() || !is_first_of_its_way(turn_) || (shaping_.is_paced && start > now)) {
      ++tried;
      continue;
    }
    send_piece(outgoing, start);
    tried = 0;
    if (outgoing.rest.empty()) outgoing_.erase(outgoing_.begin() + static_cast<std::ptrdiff_t>(turn_));
  }
}

void SocketMessenger::send_piece(Outgoing& outgoing, double start) {
  const std::size_t length = std::min(outgoing.rest.size(), piece_bytes_);
  PieceHeader header{static_cast<std::uint32_t>(outgoing.tag), static_cast<std::uint32_t>(length), start};
  if (shaping_.is_paced) {
    header.left = sent_until_ = start + static_cast<double>(length) / shaping_.rate.si;
  }
  std::vector<std::byte>& writing = peers_[static_cast<std::size_t>(outgoing.to)].writing;
  writing.resize(sizeof header + length);
  std::memcpy(writing.data(), &header, sizeof header);
  std::memcpy(writing.data() + sizeof header, outgoing.rest.data(), length);
  outgoing.rest = outgoing.rest.subspan(length);
  if (outgoing.rest.empty()) states_[outgoing.message] = {true, header.left};
  flush(outgoing.to);
}

void SocketMessenger::flush(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  while (!peer.writing.empty()) {
    const ssize_t sent = ::send(peer.socket, peer.writing.data(), peer.writing.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) fail_without(rank);
    peer.writing.erase(peer.writing.begin(), peer.writing.begin() + sent);
  }
}

void SocketMessenger::read(int rank, double now) {
  constexpr std::size_t kMost = std::size_t{1} << 16;
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  while (!peer.is_gone) {
    const std::size_t before = peer.reading.size();
    peer.reading.resize(before + kMost);
    const ssize_t got = ::recv(peer.socket, peer.reading.data() + before, kMost, 0);
    peer.reading.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) peer.is_gone = true;
    take_pieces(rank, now);
  }
}

void SocketMessenger::take_pieces(int rank, double now) {
  std::vector<std::byte>& reading = peers_[static_cast<std::size_t>(rank)].reading;
  std::size_t begin = 0;
  PieceHeader header{};
  while (reading.size() - begin >= sizeof header) {
    std::memcpy(&header, reading.data() + begin, sizeof header);
    const std::size_t end = begin + sizeof header + header.length;
    if (reading.size() < end) break;
    double arrived = now;
    if (shaping_.is_paced) {
      const double length = static_cast<double>(header.length) / shaping_.rate.si;
      arrived = received_until_ = std::max(header.left, received_until_ + length);
    }
    Piece piece{{reading.begin() + static_cast<std::ptrdiff_t>(begin + sizeof header),
                 reading.begin() + static_cast<std::ptrdiff_t>(end)}};
    piece.available = arrived + shaping_.latency.si;
    streams_[{rank, static_cast<int>(header.tag)}].arrived.push_back(std::move(piece));
    begin = end;
  }
  reading.erase(reading.begin(), reading.begin() + static_cast<std::ptrdiff_t>(begin));
}

void SocketMessenger::deliver(double now) {
  for (auto& [way, stream] : streams_) {
    while (!stream.wanted.empty() && !stream.arrived.empty() && stream.arrived.front().available <= now) {
      Incoming& wanted = stream.wanted.front();
      Piece& piece = stream.arrived.front();
      const std::size_t length = std::min(wanted.rest.size(), piece.bytes.size() - piece.taken);
      std::memcpy(wanted.rest.data(), piece.bytes.data() + piece.taken, length);
      wanted.rest = wanted.rest.subspan(length);
      piece.taken += length;
      if (wanted.rest.empty()) {
        states_[wanted.message].is_handed_over = true;
        stream.wanted.pop_front();
      }
      if (piece.taken == piece.bytes.size()) stream.arrived.pop_front();
    }
    if (!stream.wanted.empty() && stream.arrived.empty() && peers_[static_cast<std::size_t>(way.first)].is_gone)
      fail_without(way.first);
  }
}

/// When something that this process itself has delayed is due.
double SocketMessenger::next_event() const {
  double next = std::numeric_limits<double>::infinity();
  for (const Outgoing& outgoing : outgoing_)
    if (peers_[static_cast<std::size_t>(outgoing.to)].writing.empty())
      next = std::min(next, std::max(sent_until_, outgoing.ready));
  for (const auto& [way, stream] : streams_)
    if (!stream.wanted.empty() && !stream.arrived.empty()) next = std::min(next, stream.arrived.front().available);
  const double now = machine_time();
  for (const State& state : states_)
    if (state.left > now) next = std::min(next, state.left);
  return next;
}

void SocketMessenger::wait(double seconds) {
  std::vector<pollfd> polled;
  for (const Peer& peer : peers_) {
    const bool is_open = peer.socket >= 0 && !peer.is_gone;
    polled.push_back(
        {is_open ? peer.socket : -1, static_cast<short>(peer.writing.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  }
  const double most = std::max(0.0, std::min(seconds, next_event() - machine_time()));
  timespec timeout{};
  timeout.tv_sec = static_cast<std::time_t>(most);
  timeout.tv_nsec = static_cast<long>((most - static_cast<double>(timeout.tv_sec)) * 1e9);
  ::ppoll(polled.data(), polled.size(), &timeout, nullptr);
  const double now = machine_time();
  for (std::size_t rank = 0; rank < polled.size(); ++rank) {
    if ((polled[rank].revents & POLLOUT) != 0) flush(static_cast<int>(rank));
    if ((polled[rank].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read(static_cast<int>(rank), now);
  }
  deliver(now);
  send_pieces(machine_time());
}

}  // namespace ganymede::rehearsal
