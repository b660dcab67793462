#include "sim/engine/symmetry.hpp"

#include <algorithm>
#include <unordered_map>

#include "common/units.hpp"
#include "sim/engine/color_refinement.hpp"
#include "sim/engine/message_graph.hpp"

namespace ganymede::sim {
namespace {

/// Builds the quotient from the classes.
class QuotientBuilder {
 public:
  QuotientBuilder(const FabricGraph& fabric, std::span<const Job> jobs)
      : fabric_(fabric), graph_(fabric, jobs), partition_(refine(graph_, member_colors(), link_colors())) {}

  Quotient build() {
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

  /// What distinguishes members apart from their messages.
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
        colors.push_back(color);
      }
    }
    return colors;
  }

  std::vector<Color> link_colors() const {
    std::vector<Color> colors;
    for (const DirectedLink& link : fabric_.links()) colors.push_back(with(Color{1}, link.bandwidth.si));
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
    for (std::size_t i = 0; i < graph_.messages().size(); ++i) {
      const auto [at, is_new] = numbers_by_color.try_emplace(partition_.message_colors[i], quotient_.transfers.size());
      if (is_new) quotient_.transfers.push_back(new_class(i));
      count(i, quotient_.transfers[at->second]);
    }
  }

  /// The class of messages that begins with this one. Its links have no weights yet.
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
    graph_.each_path(index, [&](int /*number*/, std::size_t path_kind, std::span<const int> links) {
      const PathKind& path = graph_.path_kinds()[path_kind];
      QuotientFlow flow;
      flow.bytes = static_cast<double>(kind.length) * path.share * cost.wire;
      flow.latency = latency_of(path, cost).si;
      const BytesPerSecond protocols = path.between_nodes ? cost.flow_between : cost.flow_inside;
      flow.limit = std::min(path.limit(cost.connections), protocols).si;
      flow.limit_is_protocols = protocols < path.limit(cost.connections);
      for (const int link : links) {
        const int of = partition_.class_of_link[static_cast<std::size_t>(link)];
        if (std::none_of(flow.uses.begin(), flow.uses.end(), [&](const LinkUse& use) { return use.link == of; }))
          flow.uses.push_back({of, 0});
      }
      same_class.flows.push_back(std::move(flow));
    });
    return same_class;
  }

  /// Counts a message of a class where it crosses the first link of a class of links, and where it reaches the first
  /// member of a class of ranks.
  void count(std::size_t index, QuotientTransfer& same_class) const {
    const Message& message = graph_.messages()[index];
    const MessageKind& kind = graph_.kinds()[message.kind];
    const auto to = static_cast<std::size_t>(same_class.destination);
    if (kind.reduce && !cost_of(kind).reduction_is_free && partition_.first_member[to] == message.destination) {
      const auto number = static_cast<std::size_t>(kind.communicator);
      const Communicator& communicator = *graph_.communicators()[number];
      const auto endpoints = static_cast<std::size_t>(communicator.calls[kind.call].schedule->endpoints());
      const auto at = static_cast<int>((message.destination - graph_.first_member(number)) % endpoints);
      same_class.adding += cost_of(kind).stretch * static_cast<double>(kind.length) * kMemoryBytesPerReducedByte /
                           endpoint(communicator, at).memory_bandwidth.si;
    }
    graph_.each_path(index, [&](int number, std::size_t /*kind*/, std::span<const int> links) {
      for (const int link : links) {
        const int of = partition_.class_of_link[static_cast<std::size_t>(link)];
        if (partition_.first_link[static_cast<std::size_t>(of)] != static_cast<std::size_t>(link)) continue;
        for (LinkUse& use : same_class.flows[static_cast<std::size_t>(number)].uses)
          if (use.link == of) use.weight += 1;
      }
    });
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
  MessageGraph graph_;
  EquitablePartition partition_;
  Quotient quotient_;
};

}  // namespace

Quotient quotient_of(const FabricGraph& fabric, std::span<const Job> jobs) {
  return QuotientBuilder(fabric, jobs).build();
}

}  // namespace ganymede::sim
