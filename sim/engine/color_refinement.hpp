#pragma once
// Finds the coarsest equitable partition of the members and links of a message graph, or a coarser one.

#include <cstddef>
#include <limits>
#include <vector>

#include "sim/engine/message_graph.hpp"

namespace ganymede::sim {

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
