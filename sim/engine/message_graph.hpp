#pragma once
// The messages of jobs on a fabric as a graph: which members and which links each message joins. Members are the
// endpoints of communicators, once for each lane.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::sim {

// Colours: hashes of 64 bits that tell classes apart. Two different things have the same colour with a probability of
// about 2^-64.

using Color = std::uint64_t;

/// A permutation of 64 bits in which each input bit affects all output bits (the finaliser of splitmix64).
inline Color mixed(Color x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}
/// The colour of something that had `color` and now also differs by `more`.
inline Color with(Color color, Color more) { return mixed(color ^ mixed(more)); }
inline Color with(Color color, double more) { return with(color, std::bit_cast<Color>(more)); }

/// A message of some consecutive stages of one call. Its two ends are members.
struct Message {
  std::uint32_t source = 0, destination = 0;
  std::uint32_t kind = 0;   ///< index into MessageGraph::kinds
  std::uint32_t route = 0;  ///< where its paths begin in MessageGraph::routes
};

/// Messages of the same stages have this in common.
struct MessageKind {
  int communicator = 0;
  std::size_t call = 0;
  int first_stage = 0, end_stage = 0;  ///< stages [first_stage, end_stage) of the call's schedule
  std::int64_t length = 0;             ///< bytes
  bool reduce = false;
  std::int64_t copies = 1;  ///< for how many messages of like ranks each of these stands
};

class MessageGraph {
 public:
  MessageGraph(const FabricGraph& fabric, std::span<const Job> jobs);
  /// One message from each rank to itself, over all links of its place (FabricGraph::append_links_of()); without
  /// messages if the fabric has no such places.
  explicit MessageGraph(const FabricGraph& fabric);
  /// For jobs whose ranks could change places (Schedule::is_all_pairs()), only the messages that the first of each
  /// class of ranks sends. `class_of` is by rank.
  MessageGraph(const FabricGraph& fabric, std::span<const Job> jobs, const std::vector<int>& class_of);

  const std::vector<const Communicator*>& communicators() const { return communicators_; }
  /// The first member of a communicator; for the number of communicators, the number of members.
  std::size_t first_member(std::size_t communicator) const { return first_[communicator]; }
  std::size_t members() const { return first_.back(); }
  const std::vector<Message>& messages() const { return messages_; }
  const std::vector<MessageKind>& kinds() const { return kinds_; }
  const std::vector<PathKind>& path_kinds() const { return path_kinds_; }
  Color color_of_kind(std::size_t kind) const { return kind_colors_[kind]; }
  Color color_of_path_kind(std::size_t kind) const { return path_kind_colors_[kind]; }

  /// Calls `visit(number, kind of the path, its links)` for each path of a message.
  template <class Visit>
  void each_path(std::size_t message, Visit visit) const {
    const std::size_t end =
        message + 1 < messages_.size() ? messages_[message + 1].route : static_cast<std::uint32_t>(routes_.size());
    int number = 0;
    for (std::size_t at = messages_[message].route; at < end; ++number) {
      const auto links = static_cast<std::size_t>(routes_[at + 1]);
      visit(number, static_cast<std::size_t>(routes_[at]), std::span<const int>(&routes_[at + 2], links));
      at += 2 + links;
    }
  }

  /// The fabric's endpoint of an endpoint of a communicator.
  static int fabric_endpoint(const Communicator& communicator, int endpoint) {
    return communicator.members.empty() ? endpoint : communicator.members[static_cast<std::size_t>(endpoint)];
  }

 private:
  void add_members(std::span<const Job> jobs);
  void add_call(int communicator, std::size_t call);
  void add_message(const MessageKind& kind, std::size_t lane, const Transfer& transfer);
  std::uint32_t number_of(const MessageKind& kind);
  int number_of(const PathKind& kind);
  void add_route(const std::vector<Path>& paths);

  const FabricGraph& fabric_;
  std::vector<const Communicator*> communicators_;
  std::vector<std::size_t> first_;
  std::vector<Message> messages_;
  std::vector<MessageKind> kinds_;
  std::vector<PathKind> path_kinds_;
  std::vector<Color> kind_colors_, path_kind_colors_;
  std::unordered_map<Color, int> numbers_by_color_;  // of kinds of both sorts
  std::vector<int> routes_;                          // of each path: its kind, its number of links, its links
  std::vector<Path> paths_;                          // scratch of add_message()
};

/// Classes of members and links, numbered in the order of their first elements, and the colour of each message: two
/// messages are alike if and only if their colours are equal.
struct EquitablePartition {
  std::vector<int> class_of_member, class_of_link;
  std::vector<std::size_t> first_member, first_link;          ///< by class
  std::vector<std::size_t> members_of_class, links_of_class;  ///< how many a class has
  bool is_equitable = true;  ///< false: it would have had more classes than were allowed
  std::vector<Color> message_colors;
};

/// Splits the classes that the initial colours give until all members of a class send and receive equally many messages
/// of each colour, and all links of a class carry equally many. Only messages at members and links that a split has
/// moved into a new class are looked at again, so that a chain of n costs about n and not n squared.
///
/// Splitting goes on round by round, and after round d two members are alike if all is alike within d messages of them.
/// It ends before a round after which there would be more than `most_classes` (but at least four times as many as the
/// initial colours give): what is merged then differs only in what is further away. With none allowed, the initial
/// colours are the partition.
EquitablePartition refine(const MessageGraph& graph, const std::vector<Color>& members, const std::vector<Color>& links,
                          std::size_t most_classes = std::numeric_limits<std::size_t>::max());

}  // namespace ganymede::sim
