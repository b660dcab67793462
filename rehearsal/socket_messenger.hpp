#pragma once
// Messages between the processes of one machine over TCP sockets, as slow as a network that they stand for.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/random.hpp"
#include "common/units.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::rehearsal {

/// The network that the sockets stand for: each process has a NIC, which is full duplex, and between two NICs is only
/// latency.
struct Shaping {
  BytesPerSecond rate;     ///< of a NIC, in each direction
  Seconds latency;         ///< from one process to another
  double loss = 0;         ///< share of packets that are lost and sent again, below 1
  bool is_paced = true;    ///< false: the kernel shapes the rate
  bool is_delayed = true;  ///< false: the kernel (netem) also delays and loses packets
};

/// Every byte travels through a real socket. What is shaped is time: a message is cut into pieces, each of which says
/// when it has left the sender's NIC at `rate`. The receiver lets them through its own NIC at `rate`, in the order of
/// arrival, and holds each back until one latency later. Both clocks are the machine's one clock, so that a process
/// that wakes up late does not make a message late, only what the process does next.
///
/// Losses are drawn by the receiver, packet by packet of kPacketBytes. What is lost comes one round trip later, as a
/// fast retransmission does, takes the receiver's NIC again, may be lost again, and holds back what the same process
/// has sent after it, as TCP's order does. Timeouts and slower rates after a loss are not played.
class SocketMessenger final : public kernel::Messenger {
 public:
  /// `sockets` are connected to each other process, by rank, and are closed with the messenger; the entry of `rank` is
  /// not used.
  SocketMessenger(int rank, std::vector<int> sockets, const Shaping& shaping);
  ~SocketMessenger() override;

  static constexpr int kPacketBytes = 1448;  ///< of a message in a packet of Ethernet

  std::string name() const override;
  std::int64_t lost_packets() const { return lost_; }  ///< that this process was to receive, so far
  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(peers_.size()); }
  Message send(std::span<const std::byte> bytes, int to, int tag) override;
  Message receive(std::span<std::byte> bytes, int from, int tag) override;
  bool done(Message message) override;
  void wait(double seconds) override;
  /// Paced sockets: changes the rate of this process's NIC, for pieces that are not yet cut.
  void set_rate(BytesPerSecond rate) { shaping_.rate = rate; }
  void rest(double seconds) override { wait(seconds); }  // what comes meanwhile is stamped when it comes

 private:
  /// A message of this process. Sends are handed over when the last piece is in the socket's hands.
  struct State {
    bool is_handed_over = false;
    double left = 0;  ///< when the last byte has left the NIC
  };
  struct Outgoing {
    Message message;
    int to, tag;
    std::span<const std::byte> rest;
    double ready;  ///< when send() was called
  };
  struct Incoming {
    Message message;
    std::span<std::byte> rest;
  };
  /// Precedes the bytes of a piece.
  struct PieceHeader {
    std::uint32_t tag = 0, length = 0;
    double left = 0;  ///< when the piece has left the sender's NIC, in seconds of the machine's clock
  };
  struct Piece {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t length = 0, taken = 0;
    double available = 0;
  };
  /// A piece that comes from a socket.
  struct Reading {
    PieceHeader header;
    std::size_t header_got = 0, got = 0;
    std::unique_ptr<std::byte[]> bytes;
    bool has_header() const { return header_got == sizeof(PieceHeader); }
  };
  /// The bytes of one tag from one process, in order.
  struct Stream {
    std::deque<Piece> arrived;
    std::deque<Incoming> wanted;
  };
  struct Peer {
    int socket = -1;
    bool is_gone = false;
    double held_until = 0;           ///< what comes after a lost packet is not passed on before
    std::vector<std::byte> writing;  ///< of one piece, what the socket has not yet taken
    Reading reading;
  };

  Message new_message();
  bool is_first_of_its_way(std::size_t outgoing) const;
  void send_pieces(double now);
  void send_piece(Outgoing& outgoing, double start);
  void flush(int rank);
  void read(int rank, double now);
  void begin_piece(int rank, std::size_t header_bytes, double now);
  void take_piece(int rank, double now);
  double lose_packets(std::uint32_t length);
  void deliver(double now);
  double next_event() const;
  [[noreturn]] void fail_without(int rank) const;

  int rank_;
  Shaping shaping_;
  std::size_t piece_bytes_;
  std::vector<Peer> peers_;
  std::vector<State> states_;
  std::vector<Message> free_;
  std::vector<Outgoing> outgoing_;
  std::size_t turn_ = 0;                           // which of the outgoing messages sends its next piece
  std::map<std::pair<int, int>, Stream> streams_;  // by process and tag
  double sent_until_ = 0, received_until_ = 0;     // when the NIC is free, in each direction
  RandomStream losses_;
  std::int64_t lost_ = 0;
};

}  // namespace ganymede::rehearsal
