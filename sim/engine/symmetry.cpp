#include "sim/engine/symmetry.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "common/units.hpp"
#include "sim/engine/message_graph.hpp"

namespace ganymede::sim {

/// Builds the quotient from the classes.
class Symmetry::Builder {
 public:
  Builder(const Symmetry& symmetry, std::size_t most_classes)
      : fabric_(symmetry.fabric_),
        graph_(*symmetry.graph_),
        alike_(symmetry.alike_.get()),
        partition_(refine(graph_, member_colors(), link_colors(), alike_ ? 0 : most_classes)) {}

  Quotient build() {
    quotient_.is_exact = partition_.is_equitable;
    quotient_.members = static_cast<std::int64_t>(graph_.members());
    for (const std::size_t link : partition_.first_link)
      quotient_.link_bandwidths.push_back(fabric_.links()[link].bandwidth.si);
    quotient_.link_of_class = partition_.first_link;
    for (std::size_t number = 0; number < graph_.communicators().size(); ++number) add_communicator(number);
    add_transfers();
    list_transfers();
    return std::move(quotient_);
  }

 private:
  const Endpoint& endpoint(const Communicator& communicator, int number) const {
    return fabric_.endpoints()[static_cast<std::size_t>(MessageGraph::fabric_endpoint(communicator, number))];
  }

  /// Differences of members apart from their messages.
  std::vector<Color> member_colors() const {
    std::vector<Color> colors;
    for (std::size_t number = 0; number < graph_.communicators().size(); ++number) {
      const Communicator& communicator = *graph_.communicators()[number];
      const int count = static_cast<int>(graph_.first_member(number + 1) - graph_.first_member(number));
      for (int member = 0; member < count; ++member) {
        const int endpoints = communicator.calls[0].schedule->endpoints();
        const int lane = member / endpoints, at = member % endpoints;
        const Endpoint& properties = endpoint(communicator, at);
        Color color = with(with(with(Color{2}, static_cast<Color>(number)), properties.memory_bandwidth.si),
                           properties.launch.si);
        for (const CollectiveCall& call : communicator.calls) {
          const bool is_rank = static_cast<std::size_t>(at) < call.arrivals.size();
          color = is_rank ? with(color, call.arrivals[static_cast<std::size_t>(at)].si) : with(color, Color{3});
          color = with(color, Color{lane < call.schedule->lanes() ? 0U : 1U});
        }
        if (alike_ && member < fabric_.ranks())
          color = with(color, static_cast<Color>(alike_->class_of_member[static_cast<std::size_t>(member)]));
        colors.push_back(color);
      }
    }
    return colors;
  }

  std::vector<Color> link_colors() const {
    std::vector<Color> colors;
    for (const DirectedLink& link : fabric_.links()) {
      colors.push_back(with(Color{1}, link.bandwidth.si));
      if (alike_) colors.back() = with(colors.back(), static_cast<Color>(alike_->class_of_link[colors.size() - 1]));
    }
    return colors;
  }

  void add_communicator(std::size_t number) {
    const Communicator& communicator = *graph_.communicators()[number];
    auto& calls = quotient_.calls.emplace_back(communicator.calls.size());
    for (std::size_t index = 0; index < calls.size(); ++index) {
      const Schedule& schedule = *communicator.calls[index].schedule;
      QuotientCall& call = calls[index];
      call.start = schedule.cost().start.si;
      call.eager = schedule.cost().eager;
      for (const Stage& stage : schedule.stages()) {
        call.stages.push_back({call.rounds, stage.rounds});
        call.rounds += stage.rounds;
      }
    }
    auto& classes = quotient_.class_of.emplace_back();
    for (std::size_t member = graph_.first_member(number); member < graph_.first_member(number + 1); ++member) {
      classes.push_back(partition_.class_of_member[member]);
      if (classes.back() < static_cast<int>(quotient_.ranks.size())) continue;
      const int endpoints = communicator.calls[0].schedule->endpoints();
      const int place = static_cast<int>(member - graph_.first_member(number));
      const int at = place % endpoints, lane = place / endpoints;
      QuotientRank rank;
      rank.communicator = static_cast<int>(number);
      for (const CollectiveCall& call : communicator.calls) {
        const bool is_rank = at < call.schedule->ranks();
        rank.takes_part.push_back(lane < call.schedule->lanes());
        rank.issue.push_back(is_rank ? call.arrivals[static_cast<std::size_t>(at)].si : -1);
      }
      rank.launch = endpoint(communicator, at).launch.si;
      quotient_.ranks.push_back(std::move(rank));
    }
  }

  const ProtocolCost& cost_of(const MessageKind& kind) const {
    return graph_.communicators()[static_cast<std::size_t>(kind.communicator)]->calls[kind.call].schedule->cost();
  }

  void add_transfers() {
    std::unordered_map<Color, std::size_t> numbers_by_color;
    std::vector<double> messages;
    for (std::size_t i = 0; i < graph_.messages().size(); ++i) {
      const auto [at, is_new] = numbers_by_color.try_emplace(partition_.message_colors[i], quotient_.transfers.size());
      if (is_new) {
        quotient_.transfers.push_back(new_class(i));
        messages.push_back(0);
      }
      messages[at->second] += static_cast<double>(graph_.kinds()[graph_.messages()[i].kind].copies);
      count(i, quotient_.transfers[at->second]);
    }
    for (std::size_t i = 0; i < messages.size(); ++i) take_means(quotient_.transfers[i], messages[i]);
  }

  /// The class of messages that begins with this one. Its links have no weights yet, and it adds one message.
  QuotientTransfer new_class(std::size_t index) const {
    const Message& message = graph_.messages()[index];
    const MessageKind& kind = graph_.kinds()[message.kind];
    const ProtocolCost& cost = cost_of(kind);
    const auto& stages = quotient_.calls[static_cast<std::size_t>(kind.communicator)][kind.call].stages;
    const QuotientStage& last = stages[static_cast<std::size_t>(kind.end_stage) - 1];
    QuotientTransfer same_class;
    same_class.communicator = kind.communicator;
    same_class.call = kind.call;
    same_class.first_round = stages[static_cast<std::size_t>(kind.first_stage)].first_round;
    same_class.end_round = last.first_round + last.rounds;
    same_class.source = partition_.class_of_member[message.source];
    same_class.destination = partition_.class_of_member[message.destination];
    same_class.adding = adding_time(message);
    graph_.each_path(index, [&](int /*number*/, std::size_t path_kind, std::span<const int> links) {
      const PathKind& path = graph_.path_kinds()[path_kind];
      QuotientFlow flow;
      flow.bytes = static_cast<double>(kind.length) * path.share * cost.wire;
      flow.latency = latency_of(path, cost).si;
      const BytesPerSecond protocols = path.between_nodes ? cost.flow_between : cost.flow_inside;
      flow.limit = std::min(path.limit(cost.connections), protocols).si;
      flow.limit_is_protocols = protocols < path.limit(cost.connections);
      for (const int link : links) {
        const int same = partition_.class_of_link[static_cast<std::size_t>(link)];
        if (std::none_of(flow.uses.begin(), flow.uses.end(), [&](const LinkUse& use) { return use.link == same; }))
          flow.uses.push_back({same, 0});
      }
      same_class.flows.push_back(std::move(flow));
    });
    return same_class;
  }

  /// The seconds in which the destination of a message adds it.
  double adding_time(const Message& message) const {
    const MessageKind& kind = graph_.kinds()[message.kind];
    if (!kind.reduce || cost_of(kind).reduction_is_free) return 0;
    const auto number = static_cast<std::size_t>(kind.communicator);
    const Communicator& communicator = *graph_.communicators()[number];
    const auto endpoints = static_cast<std::size_t>(communicator.calls[kind.call].schedule->endpoints());
    const auto at = static_cast<int>((message.destination - graph_.first_member(number)) % endpoints);
    return cost_of(kind).stretch * static_cast<double>(kind.length) * kMemoryBytesPerReducedByte /
           endpoint(communicator, at).memory_bandwidth.si;
  }

  /// Counts a message of a class where it crosses links.
  void count(std::size_t index, QuotientTransfer& same_class) const {
    const auto copies = static_cast<double>(graph_.kinds()[graph_.messages()[index].kind].copies);
    graph_.each_path(index, [&](int number, std::size_t /*kind*/, std::span<const int> links) {
      for (const int link : links) {
        const int same = partition_.class_of_link[static_cast<std::size_t>(link)];
        for (LinkUse& use : same_class.flows[static_cast<std::size_t>(number)].uses)
          if (use.link == same) use.weight += copies;
      }
    });
  }

  /// Makes means for one link, or one rank, of what all of them have together: `messages` of this class. In an
  /// equitable partition these are whole numbers of messages. Where they are less than one, the flow is still no faster
  /// than its links.
  void take_means(QuotientTransfer& transfer, double messages) const {
    const double one = std::exchange(transfer.adding, 0);
    double left =
        messages / static_cast<double>(partition_.members_of_class[static_cast<std::size_t>(transfer.destination)]);
    for (; left >= 1; --left) transfer.adding += one;
    transfer.adding += left * one;
    for (QuotientFlow& flow : transfer.flows)
      for (LinkUse& use : flow.uses) {
        const auto link = static_cast<std::size_t>(use.link);
        use.weight /= static_cast<double>(partition_.links_of_class[link]);
        if (use.weight < 1) flow.limit = std::min(flow.limit, quotient_.link_bandwidths[link]);
      }
  }

  void list_transfers() {
    std::size_t lists = 0;
    for (const QuotientRank& rank : quotient_.ranks) {
      quotient_.first_list_of_rank.push_back(lists);
      lists += rank.issue.size();
    }
    auto& first = quotient_.first_of_list;
    first.assign(lists + 1, 0);
    const auto each_end = [&](auto visit) {
      for (std::size_t i = 0; i < quotient_.transfers.size(); ++i) {
        const QuotientTransfer& transfer = quotient_.transfers[i];
        for (const int end : {transfer.source, transfer.destination})
          visit(quotient_.first_list_of_rank[static_cast<std::size_t>(end)] + transfer.call, static_cast<int>(i));
      }
    };
    each_end([&](std::size_t list, int /*transfer*/) { ++first[list + 1]; });
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    quotient_.transfer_lists.resize(2 * quotient_.transfers.size());
    each_end([&](std::size_t list, int transfer) { quotient_.transfer_lists[next[list]++] = transfer; });
  }

  const FabricGraph& fabric_;
  const MessageGraph& graph_;
  const EquitablePartition* alike_;
  EquitablePartition partition_;
  Quotient quotient_;
};

namespace {

/// Shorter lists of messages take less than a second, and refinement finds fewer classes in them: it need not tell the
/// places of a node apart.
constexpr std::int64_t kLongList = 2'000'000;

/// True if all ranks call at the same moments, and every rank then sends the same to every other one, in many messages.
bool are_interchangeable(const FabricGraph& fabric, std::span<const Job> jobs) {
  if (jobs.size() != 1 || jobs[0].communicators.size() != 1 || !jobs[0].communicators[0].members.empty()) return false;
  const auto& calls = jobs[0].communicators[0].calls;
  return std::all_of(calls.begin(), calls.end(), [&](const CollectiveCall& call) {
    const bool together =
        std::adjacent_find(call.arrivals.begin(), call.arrivals.end(), std::not_equal_to<>()) == call.arrivals.end();
    return together && call.schedule->ranks() == fabric.ranks() && call.schedule->is_all_pairs() &&
           call.schedule->messages() >= kLongList;
  });
}

/// True if of any two links the places that have them are apart, or contain each other. The fabric is a tree then, and
/// ranks and links that refinement does not tell apart can change places.
bool is_tree(const MessageGraph& places, std::size_t links) {
  struct Range {
    std::uint32_t first = 0, end = 0, count = 0;
  };
  std::vector<Range> ranges(links);
  for (std::size_t place = 0; place < places.messages().size(); ++place) {
    const std::uint32_t rank = places.messages()[place].source;
    places.each_path(place, [&](int /*number*/, std::size_t /*kind*/, std::span<const int> crossed) {
      for (const int link : crossed) {
        Range& range = ranges[static_cast<std::size_t>(link)];
        if (range.count++ == 0) range.first = rank;
        range.end = rank + 1;
      }
    });
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& one, const Range& other) {
    return one.first != other.first ? one.first < other.first : one.end > other.end;
  });
  std::vector<std::uint32_t> ends;  // of the ranges around the present one
  for (const Range& range : ranges) {
    if (range.count != range.end - range.first) return false;
    while (!ends.empty() && ends.back() <= range.first) ends.pop_back();
    if (!ends.empty() && ends.back() < range.end) return false;
    ends.push_back(range.end);
  }
  return true;
}

}  // namespace

Symmetry::Symmetry(const FabricGraph& fabric, std::span<const Job> jobs) : fabric_(fabric) {
  if (are_interchangeable(fabric, jobs)) {
    const MessageGraph places(fabric);
    if (!places.messages().empty() && is_tree(places, fabric.links().size())) {
      std::vector<Color> links;
      for (const DirectedLink& link : fabric.links()) links.push_back(with(Color{1}, link.bandwidth.si));
      alike_ = std::make_unique<const EquitablePartition>(
          refine(places, std::vector<Color>(static_cast<std::size_t>(fabric.ranks())), links));
      graph_ = std::make_unique<const MessageGraph>(fabric, jobs, alike_->class_of_member);
      return;
    }
  }
  graph_ = std::make_unique<const MessageGraph>(fabric, jobs);
}
Symmetry::~Symmetry() = default;

Quotient Symmetry::quotient(std::size_t most_classes) const { return Builder(*this, most_classes).build(); }

}  // namespace ganymede::sim
