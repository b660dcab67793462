#include "sim/engine/message_graph.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace ganymede::sim {

MessageGraph::MessageGraph(const FabricGraph& fabric, std::span<const Job> jobs) : fabric_(fabric) {
  add_members(jobs);
  for (std::size_t number = 0; number < communicators_.size(); ++number)
    for (std::size_t call = 0; call < communicators_[number]->calls.size(); ++call)
      add_call(static_cast<int>(number), call);
}

MessageGraph::MessageGraph(const FabricGraph& fabric) : fabric_(fabric), first_{0} {
  first_.push_back(static_cast<std::size_t>(fabric.ranks()));
  std::vector<Path> path(1);
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(fabric.ranks()); ++rank) {
    path[0].links.clear();
    if (!fabric.append_links_of(static_cast<int>(rank), path[0].links)) return;
    const auto kind = number_of(MessageKind{.first_stage = fabric.place_of(static_cast<int>(rank))});
    messages_.push_back({rank, rank, kind, static_cast<std::uint32_t>(routes_.size())});
    add_route(path);
  }
}

MessageGraph::MessageGraph(const FabricGraph& fabric, std::span<const Job> jobs, const std::vector<int>& class_of)
    : fabric_(fabric) {
  add_members(jobs);
  std::vector<std::int64_t> sizes;
  std::vector<int> first_of;
  for (int rank = 0; rank < fabric.ranks(); ++rank) {
    const auto same = static_cast<std::size_t>(class_of[static_cast<std::size_t>(rank)]);
    if (same == sizes.size()) sizes.push_back(0), first_of.push_back(rank);
    ++sizes[same];
  }
  for (std::size_t call = 0; call < communicators_[0]->calls.size(); ++call) {
    const auto& stages = communicators_[0]->calls[call].schedule->stages();
    for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
      const AllPairs& sent = *stages[static_cast<std::size_t>(stage)].all_pairs;
      for (std::size_t same = 0; same < sizes.size(); ++same)
        for (int to = 0; to < fabric.ranks(); ++to)
          if (to != first_of[same])
            add_message({0, call, stage, stage + 1, sent.length, sent.reduce, sizes[same]}, 0, {first_of[same], to});
    }
  }
}

void MessageGraph::add_members(std::span<const Job> jobs) {
  std::size_t members = 0;
  for (const Job& job : jobs)
    for (const Communicator& communicator : job.communicators) {
      communicators_.push_back(&communicator);
      first_.push_back(members);
      const int endpoints = communicator.calls.empty() ? 0 : communicator.calls[0].schedule->endpoints();
      int lanes = 1;
      for (const CollectiveCall& call : communicator.calls) lanes = std::max(lanes, call.schedule->lanes());
      members += static_cast<std::size_t>(lanes) * static_cast<std::size_t>(endpoints);
    }
  first_.push_back(members);
}

void MessageGraph::add_call(int number, std::size_t call) {
  const Communicator& communicator = *communicators_[static_cast<std::size_t>(number)];
  const Schedule& schedule = *communicator.calls[call].schedule;
  const auto endpoints = static_cast<std::size_t>(schedule.endpoints());
  schedule.visit_spans([&](const Transfer& transfer, int first_stage, int end_stage) {
    const std::size_t lane =
        first_[static_cast<std::size_t>(number)] + static_cast<std::size_t>(transfer.lane) * endpoints;
    add_message({number, call, first_stage, end_stage, transfer.length, transfer.reduce}, lane, transfer);
  });
}

void MessageGraph::add_message(const MessageKind& kind, std::size_t lane, const Transfer& transfer) {
  const Communicator& communicator = *communicators_[static_cast<std::size_t>(kind.communicator)];
  messages_.push_back({static_cast<std::uint32_t>(lane + static_cast<std::size_t>(transfer.source)),
                       static_cast<std::uint32_t>(lane + static_cast<std::size_t>(transfer.destination)),
                       number_of(kind), static_cast<std::uint32_t>(routes_.size())});
  fabric_.paths(fabric_endpoint(communicator, transfer.source), fabric_endpoint(communicator, transfer.destination),
                paths_);
  add_route(paths_);
}

void MessageGraph::add_route(const std::vector<Path>& paths) {
  for (const Path& path : paths) {
    routes_.push_back(number_of(static_cast<const PathKind&>(path)));
    routes_.push_back(static_cast<int>(path.links.size()));
    routes_.insert(routes_.end(), path.links.begin(), path.links.end());
  }
}

std::uint32_t MessageGraph::number_of(const MessageKind& kind) {
  Color color = with(with(Color{1}, static_cast<Color>(kind.communicator)), static_cast<Color>(kind.call));
  color = with(with(color, static_cast<Color>(kind.first_stage)), static_cast<Color>(kind.end_stage));
  color = with(color, static_cast<Color>(kind.length) * 2 + (kind.reduce ? 1 : 0));
  if (kind.copies != 1) color = with(color, static_cast<Color>(kind.copies));
  const auto [at, is_new] = numbers_by_color_.try_emplace(color, static_cast<int>(kinds_.size()));
  if (is_new) {
    kinds_.push_back(kind);
    kind_colors_.push_back(color);
  }
  return static_cast<std::uint32_t>(at->second);
}

int MessageGraph::number_of(const PathKind& kind) {
  Color color = with(with(Color{kind.between_nodes ? 3U : 2U}, kind.latency.si), kind.flow_limit.si);
  color = with(with(color, kind.connection_limit.si), kind.share);
  const auto [at, is_new] = numbers_by_color_.try_emplace(color, static_cast<int>(path_kinds_.size()));
  if (is_new) {
    path_kinds_.push_back(kind);
    path_kind_colors_.push_back(color);
  }
  return at->second;
}

namespace {

/// Items are the members, followed by the links.
class Refinement {
 public:
  Refinement(const MessageGraph& graph, const std::vector<Color>& members, const std::vector<Color>& links)
      : graph_(graph), members_(members.size()), tokens_(members) {
    tokens_.insert(tokens_.end(), links.begin(), links.end());
    signatures_.resize(tokens_.size());
    class_of_.resize(tokens_.size());
    is_touched_.assign(tokens_.size(), true);
    for (std::size_t item = 0; item < tokens_.size(); ++item) {
      tokens_[item] = with(tokens_[item], Color{item < members_ ? 1U : 2U});
      touched_.push_back(static_cast<std::uint32_t>(item));
    }
    number_initial_classes();
    list_messages_of_items();
  }

  EquitablePartition run(std::size_t most_classes) {
    colors_.resize(graph_.messages().size());
    recolored_in_.assign(colors_.size(), 0);
    for (std::size_t message = 0; message < colors_.size(); ++message) {
      colors_[message] = color_of(message);
      sign(message, colors_[message]);
    }
    EquitablePartition result;
    const std::size_t most = std::max(most_classes, kLeastGrowth * sizes_.size());
    if (most_classes > 0) split_classes();
    for (; !moved_.empty(); split_classes()) {
      result.is_equitable = sizes_.size() <= most;
      if (!result.is_equitable) break;
      recolor();
    }
    if (!result.is_equitable)
      for (const Moved& moved : moved_) class_of_[moved.item] = moved.from;
    result.class_of_member = numbered(0, members_, result.first_member, result.members_of_class);
    result.class_of_link = numbered(members_, tokens_.size(), result.first_link, result.links_of_class);
    result.message_colors = std::move(colors_);
    return result;
  }

 private:
  // Odd factors that keep apart what a token stands for in a sum.
  static constexpr Color kOfSource = 0x9e3779b97f4a7c15ULL, kOfDestination = 0xc2b2ae3d27d4eb4fULL,
                         kOfLink = 0x165667b19e3779f9ULL;
  static constexpr std::size_t kLeastGrowth = 4;  // so that arrivals that all differ do not end it at once

  /// An item whose signature has changed.
  struct Touched {
    std::uint32_t of = 0, item = 0;  // its class; its number
    Color signature = 0;
  };

  /// An item in a new class.
  struct Moved {
    std::uint32_t item = 0, from = 0;  // its number; its class before
  };

  void number_initial_classes() {
    std::unordered_map<Color, std::uint32_t> numbers;
    for (std::size_t item = 0; item < tokens_.size(); ++item) {
      const auto [at, is_new] = numbers.try_emplace(tokens_[item], static_cast<std::uint32_t>(sizes_.size()));
      if (is_new) sizes_.push_back(0);
      class_of_[item] = at->second;
      ++sizes_[at->second];
    }
  }

  template <class Visit>
  void each_item(std::size_t message, Visit visit) const {
    visit(graph_.messages()[message].source);
    visit(graph_.messages()[message].destination);
    graph_.each_path(message, [&](int /*number*/, std::size_t /*kind*/, std::span<const int> links) {
      for (const int link : links) visit(static_cast<std::uint32_t>(members_) + static_cast<std::uint32_t>(link));
    });
  }

  void list_messages_of_items() {
    first_.assign(tokens_.size() + 1, 0);
    const std::size_t count = graph_.messages().size();
    for (std::size_t message = 0; message < count; ++message)
      each_item(message, [&](std::uint32_t item) { ++first_[item]; });
    std::uint32_t sum = 0;
    for (std::uint32_t& first : first_) first = sum += first;
    messages_of_.resize(sum);
    for (std::size_t message = count; message-- > 0;)
      each_item(message,
                [&](std::uint32_t item) { messages_of_[--first_[item]] = static_cast<std::uint32_t>(message); });
  }

  // Tokens and colours are random numbers of 64 bits, so a sum in which each has an odd factor of its own tells them
  // apart as well as a hash of each would, in less time.
  Color color_of(std::size_t index) const {
    const Message& message = graph_.messages()[index];
    Color color = kOfSource * tokens_[message.source] + kOfDestination * tokens_[message.destination] +
                  graph_.color_of_kind(message.kind);
    graph_.each_path(index, [&](int /*number*/, std::size_t kind, std::span<const int> links) {
      Color path = graph_.color_of_path_kind(kind);
      for (const int link : links) path = kOfLink * path + tokens_[members_ + static_cast<std::size_t>(link)];
      color += mixed(path);
    });
    return mixed(color);
  }

  /// Adds `change`, the difference of two colours of a message, to the signatures of its ends and links.
  void sign(std::size_t index, Color change) {
    const Message& message = graph_.messages()[index];
    signatures_[message.source] += kOfSource * change;
    signatures_[message.destination] += kOfDestination * change;
    graph_.each_path(index, [&](int number, std::size_t /*kind*/, std::span<const int> links) {
      const Color on_path = (kOfLink + 2 * static_cast<Color>(number)) * change;
      for (const int link : links) signatures_[members_ + static_cast<std::size_t>(link)] += on_path;
    });
  }

  /// Gives the messages of the moved items their new colours, each once: a message joins several items.
  void recolor() {
    ++round_;
    for (const Moved& moved : moved_)
      for (std::uint32_t at = first_[moved.item]; at < first_[moved.item + 1]; ++at) {
        const std::uint32_t message = messages_of_[at];
        if (std::exchange(recolored_in_[message], round_) == round_) continue;
        const Color color = color_of(message);
        sign(message, color - colors_[message]);
        colors_[message] = color;
        each_item(message, [&](std::uint32_t touched) {
          if (is_touched_[touched]) return;
          is_touched_[touched] = true;
          touched_.push_back(touched);
        });
      }
  }

  /// Splits classes whose items now have different signatures. The items that no change has reached, or else the
  /// largest part, keep the class; all others move to new ones.
  void split_classes() {
    moved_.clear();
    by_signature_.clear();
    for (const std::uint32_t item : touched_) {
      by_signature_.push_back({class_of_[item], item, signatures_[item]});
      is_touched_[item] = false;
    }
    touched_.clear();
    std::sort(by_signature_.begin(), by_signature_.end(), [](const Touched& a, const Touched& b) {
      return a.of != b.of ? a.of < b.of : a.signature != b.signature ? a.signature < b.signature : a.item < b.item;
    });
    for (auto first = by_signature_.begin(); first != by_signature_.end();) {
      const auto last =
          std::find_if(first, by_signature_.end(), [&](const Touched& one) { return one.of != first->of; });
      split(first->of, {first, last});
      first = last;
    }
  }

  /// Splits one class; `touched` holds its touched items, sorted by signature.
  void split(std::uint32_t of, std::span<const Touched> touched) {
    const auto part_end = [&](std::size_t begin) {
      std::size_t end = begin + 1;
      while (end < touched.size() && touched[end].signature == touched[begin].signature) ++end;
      return end;
    };
    std::size_t keeps = touched.size();  // where the part begins that keeps the class
    if (sizes_[of] == touched.size()) {
      std::size_t largest = 0;
      for (std::size_t begin = 0; begin < touched.size(); begin = part_end(begin))
        if (const std::size_t size = part_end(begin) - begin; size > largest) largest = size, keeps = begin;
    }
    for (std::size_t begin = 0; begin < touched.size();) {
      const std::size_t end = part_end(begin);
      if (begin != keeps) {
        const auto number = static_cast<std::uint32_t>(sizes_.size());
        const auto size = static_cast<std::uint32_t>(end - begin);
        sizes_.push_back(size);
        sizes_[of] -= size;
        for (; begin < end; ++begin) {
          class_of_[touched[begin].item] = number;
          tokens_[touched[begin].item] = with(Color{3}, Color{number});
          moved_.push_back({touched[begin].item, of});
        }
      }
      begin = end;
    }
  }

  std::vector<int> numbered(std::size_t first, std::size_t last, std::vector<std::size_t>& representatives,
                            std::vector<std::size_t>& sizes) const {
    std::vector<int> numbers(sizes_.size(), -1), classes;
    for (std::size_t item = first; item < last; ++item) {
      int& number = numbers[class_of_[item]];
      if (number < 0) {
        number = static_cast<int>(representatives.size());
        representatives.push_back(item - first);
        sizes.push_back(0);
      }
      ++sizes[static_cast<std::size_t>(number)];
      classes.push_back(number);
    }
    return classes;
  }

  const MessageGraph& graph_;
  std::size_t members_;                  // the number of members
  std::vector<Color> tokens_;            // of items: the colour of their class
  std::vector<Color> signatures_;        // of items: the sum over their messages
  std::vector<std::uint32_t> class_of_;  // of items
  std::vector<std::uint32_t> sizes_;     // of classes
  std::vector<std::uint32_t> first_,
      messages_of_;                          // the messages of item i are messages_of_[first_[i]...first_[i + 1]]
  std::vector<Color> colors_;                // of messages
  std::vector<std::uint32_t> recolored_in_;  // of messages: the last round that gave them a colour
  std::uint32_t round_ = 0;
  std::vector<std::uint32_t> touched_;  // items with new signatures
  std::vector<Moved> moved_;
  std::vector<char> is_touched_;
  std::vector<Touched> by_signature_;  // scratch of split_classes()
};

}  // namespace

EquitablePartition refine(const MessageGraph& graph, const std::vector<Color>& members, const std::vector<Color>& links,
                          std::size_t most_classes) {
  return Refinement(graph, members, links).run(most_classes);
}

}  // namespace ganymede::sim
