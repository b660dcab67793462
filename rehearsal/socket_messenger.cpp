#include "rehearsal/socket_messenger.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "rehearsal/clock.hpp"

namespace ganymede::rehearsal {
namespace {

/// Pieces take a quarter of a millisecond, so that messages which share a NIC do so fairly; their headers stay below
/// half a percent of the bytes.
std::size_t piece_bytes(BytesPerSecond rate) {
  return static_cast<std::size_t>(std::clamp(rate.si * 250e-6, 4096.0, 65536.0));
}

}  // namespace

SocketMessenger::SocketMessenger(int rank, std::vector<int> sockets, const Shaping& shaping)
    : rank_(rank),
      shaping_(shaping),
      piece_bytes_(piece_bytes(shaping.rate)),
      peers_(sockets.size()),
      losses_(static_cast<std::uint64_t>(rank), "rehearsal/losses") {
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
  return fmt::format("sockets {} {}, {} away{}", shaping_.is_paced ? "paced to" : "in network namespaces with",
                     to_string(shaping_.rate), to_string(shaping_.latency),
                     shaping_.loss > 0 ? fmt::format(", {:g} % of packets lost{}", 100 * shaping_.loss,
                                                     shaping_.is_delayed ? "" : " by netem")
                                       : "");
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
  throw Failure(fmt::format("the connection to rank {} has ended; its process is gone", rank));
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
  const std::span<const std::byte> bytes = outgoing.rest.first(length), head = std::as_bytes(std::span(&header, 1));
  iovec parts[] = {{&header, sizeof header}, {const_cast<std::byte*>(bytes.data()), length}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = std::size(parts);
  Peer& peer = peers_[static_cast<std::size_t>(outgoing.to)];
  ssize_t sent = 0;
  do sent = ::sendmsg(peer.socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno != EAGAIN) fail_without(outgoing.to);
  // Bytes that the socket does not take now are kept, since the message's bytes may change once its last piece is under
  // way.
  const auto taken = static_cast<std::size_t>(std::max<ssize_t>(sent, 0)), of_head = std::min(taken, sizeof header);
  peer.writing.assign(head.begin() + static_cast<std::ptrdiff_t>(of_head), head.end());
  peer.writing.insert(peer.writing.end(), bytes.begin() + static_cast<std::ptrdiff_t>(taken - of_head), bytes.end());
  outgoing.rest = outgoing.rest.subspan(length);
  if (outgoing.rest.empty()) states_[outgoing.message] = {true, header.left};
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
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  Reading& reading = peer.reading;
  while (!peer.is_gone) {
    // One call reads the rest of a piece and the header of the next one, or the rest of a header.
    PieceHeader next;
    iovec parts[] = {
        {nullptr, 0},
        {reinterpret_cast<std::byte*>(&reading.header) + reading.header_got, sizeof next - reading.header_got}};
    if (reading.has_header()) {
      parts[0] = {reading.bytes.get() + reading.got, reading.header.length - reading.got};
      parts[1] = {&next, sizeof next};
    }
    const ssize_t result = ::readv(peer.socket, parts, std::size(parts));
    if (result < 0 && errno == EINTR) continue;
    if (result < 0 && errno == EAGAIN) return;
    if (result <= 0) peer.is_gone = true;
    auto got = static_cast<std::size_t>(std::max<ssize_t>(result, 0));
    const bool is_all = got < parts[0].iov_len + parts[1].iov_len;
    if (reading.has_header()) {
      const std::size_t bytes = std::min(got, parts[0].iov_len);
      reading.got += bytes;
      got -= bytes;
      if (reading.got == reading.header.length) {
        take_piece(rank, now);
        reading.header = next;
      }
    }
    if (!reading.has_header()) begin_piece(rank, got, now);
    if (is_all) return;
  }
}

/// Notes more bytes of a header; once it is whole, its piece follows.
void SocketMessenger::begin_piece(int rank, std::size_t header_bytes, double now) {
  Reading& reading = peers_[static_cast<std::size_t>(rank)].reading;
  reading.header_got += header_bytes;
  if (!reading.has_header()) return;
  reading.bytes = std::make_unique_for_overwrite<std::byte[]>(reading.header.length);
  if (reading.header.length == 0) take_piece(rank, now);
}

/// Draws which packets of a piece are lost; returns how much later its last byte comes therefore.
double SocketMessenger::lose_packets(std::uint32_t length) {
  if (shaping_.loss <= 0) return 0;
  double later = 0;
  for (std::uint32_t left = (length + kPacketBytes - 1) / kPacketBytes; left > 0;) {
    std::uint32_t lost = 0;
    for (std::uint32_t packet = 0; packet < left; ++packet) lost += losses_.uniform() < shaping_.loss ? 1 : 0;
    if (lost == 0) break;
    lost_ += lost;
    const double again = lost * (kPacketBytes / shaping_.rate.si);
    received_until_ += again;
    later += 2 * shaping_.latency.si + again;
    left = lost;
  }
  return later;
}

void SocketMessenger::take_piece(int rank, double now) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  const PieceHeader& header = peer.reading.header;
  double arrived = now;
  if (shaping_.is_paced) {
    const double length = static_cast<double>(header.length) / shaping_.rate.si;
    arrived = received_until_ = std::max(header.left, received_until_ + length);
  }
  if (shaping_.is_delayed) arrived += shaping_.latency.si + lose_packets(header.length);
  peer.held_until = std::max(peer.held_until, arrived);
  streams_[{rank, static_cast<int>(header.tag)}].arrived.push_back(
      {std::move(peer.reading.bytes), header.length, 0, peer.held_until});
  peer.reading.header_got = peer.reading.got = 0;
}

void SocketMessenger::deliver(double now) {
  for (auto& [way, stream] : streams_) {
    while (!stream.wanted.empty() && !stream.arrived.empty() && stream.arrived.front().available <= now) {
      Incoming& wanted = stream.wanted.front();
      Piece& piece = stream.arrived.front();
      const std::size_t length = std::min(wanted.rest.size(), piece.length - piece.taken);
      std::memcpy(wanted.rest.data(), piece.bytes.get() + piece.taken, length);
      wanted.rest = wanted.rest.subspan(length);
      piece.taken += length;
      if (wanted.rest.empty()) {
        states_[wanted.message].is_handed_over = true;
        stream.wanted.pop_front();
      }
      if (piece.taken == piece.length) stream.arrived.pop_front();
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
  const timespec timeout = timespec_of(most);
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
