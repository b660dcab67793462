#pragma once
// Finds the coarsest equitable partition of the members and links of a message graph.

#include <vector>

#include "sim/engine/color.hpp"
#include "sim/engine/message_graph.hpp"

namespace ganymede::sim {

/// Classes of members and links, numbered in the order of their first elements, and the colour of each message: two
/// messages are alike if and only if their colours are equal.
struct EquitablePartition {
  std::vector<int> class_of_member, class_of_link;
  std::vector<std::size_t> first_member, first_link;  ///< by class
  std::vector<Color> message_colors;
};

/// Splits the classes that the initial colours give until all members of a class send and receive equally many messages
/// of each colour, and all links of a class carry equally many. Only messages at members and links that a split has
/// moved into a new class are looked at again, so that a chain of n costs about n and not n squared.
EquitablePartition refine(const MessageGraph& graph, const std::vector<Color>& members,
                          const std::vector<Color>& links);

}  // namespace ganymede::sim
