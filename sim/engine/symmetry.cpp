#include "sim/engine/symmetry.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <unordered_map>

namespace ganymede::sim {
namespace {

using Color = std::uint64_t;

/// A permutation of 64 bits in which each input bit affects all output bits (the finaliser of splitmix64).
Color mixed(Color x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}
/// The colour of something that had `color` and now also differs by `more`.
Color with(Color color, Color more) { return mixed(color ^ mixed(more)); }
Color with(Color color, double more) { return with(color, std::bit_cast<Color>(more)); }

std::size_t count_distinct(std::vector<Color> colors) {
  std::sort(colors.begin(), colors.end());
  return static_cast<std::size_t>(std::unique(colors.begin(), colors.end()) - colors.begin());
}

/// One stage of one call, which every pass of the refinement walks.
struct StageRef {
  int communicator = 0;
  std::size_t call = 0, stage = 0;
  const Schedule* schedule = nullptr;
};

/// Colour refinement: members (endpoints of communicators, in lanes) and links start with colours by their own
/// properties. Each pass mixes into a colour those of all messages that a member takes part in, or that a link carries.
/// Colours are classes once a pass splits none.
class ColorRefinement {
 public:
  ColorRefinement(const FabricGraph& fabric, std::span<const Job> jobs) : fabric_(fabric) {
    for (const Job& job : jobs)
      for (const Communicator& communicator : job.communicators) add_communicator(communicator);
    for (const DirectedLink& link : fabric.links()) links_.push_back(with(Color{1}, link.bandwidth.si));
  }

  Quotient run() {
    std::size_t classes = 0;
    for (std::size_t found = count_distinct(members_) + count_distinct(links_); found != classes;) {
      classes = found;
      refine_once();
      found = count_distinct(members_) + count_distinct(links_);
    }
    return build();
  }

 private:
  void add_communicator(const Communicator& communicator) {
    const int number = static_cast<int>(communicators_.size());
    communicators_.push_back(&communicator);
    first_.push_back(members_.size());
    const int endpoints = communicator.calls.empty() ? 0 : communicator.calls[0].schedule->endpoints();
    int lanes = 1;
    for (const CollectiveCall& call : communicator.calls) lanes = std::max(lanes, call.schedule->lanes());
    for (int member = 0; member < lanes * endpoints; ++member) {
      const int lane = member / endpoints, endpoint = member % endpoints;
      const Endpoint& properties =
          fabric_.endpoints()[static_cast<std::size_t>(fabric_endpoint(communicator, endpoint))];
      Color color =
          with(with(with(Color{2}, static_cast<Color>(number)), properties.memory_bandwidth.si), properties.launch.si);
      for (const CollectiveCall& call : communicator.calls) {
        const bool is_rank = static_cast<std::size_t>(endpoint) < call.arrivals.size();
        color = is_rank ? with(color, call.arrivals[static_cast<std::size_t>(endpoint)].si) : with(color, Color{3});
        color = with(color, Color{lane < call.schedule->lanes() ? 0U : 1U});
      }
      members_.push_back(color);
    }
    for (std::size_t call = 0; call < communicator.calls.size(); ++call) {
      const Schedule& schedule = *communicator.calls[call].schedule;
      for (std::size_t stage = 0; stage < schedule.stages().size(); ++stage)
        stages_.push_back({number, call, stage, &schedule});
    }
  }

  /// The fabric's endpoint of a communicator's endpoint.
  static int fabric_endpoint(const Communicator& communicator, int endpoint) {
    return communicator.members.empty() ? endpoint : communicator.members[static_cast<std::size_t>(endpoint)];
  }

  /// Calls `visit(transfer, source member, destination member, colour of the transfer)` for each transfer of one round,
  /// with the transfer's paths in paths_.
  template <class Visit>
  void walk(const StageRef& ref, std::size_t number, Visit visit) {
    const Communicator& communicator = *communicators_[static_cast<std::size_t>(ref.communicator)];
    const std::size_t first = first_[static_cast<std::size_t>(ref.communicator)];
    transfers_.clear();
    ref.schedule->stages()[ref.stage].expand(0, transfers_);
    for (const Transfer& transfer : transfers_) {
      fabric_.paths(fabric_endpoint(communicator, transfer.source), fabric_endpoint(communicator, transfer.destination),
                    paths_);
      const std::size_t lane =
          first + static_cast<std::size_t>(transfer.lane) * static_cast<std::size_t>(ref.schedule->endpoints());
      const std::size_t source = lane + static_cast<std::size_t>(transfer.source);
      const std::size_t destination = lane + static_cast<std::size_t>(transfer.destination);
      Color color = with(
          members_[source] + 3 * mixed(members_[destination]),
          static_cast<Color>(transfer.length) * 2 + (transfer.reduce ? 1 : 0) + (static_cast<Color>(number) << 44U));
      for (const Path& path : paths_) {
        Color path_color = with(std::bit_cast<Color>(path.latency.si) ^ (path.between_nodes ? 5U : 0U),
                                std::bit_cast<Color>(path.flow_limit.si) + std::bit_cast<Color>(path.share));
        for (const int link : path.links) path_color = mixed(path_color + links_[static_cast<std::size_t>(link)]);
        color += path_color;
      }
      visit(transfer, source, destination, mixed(color));
    }
  }

  void refine_once() {
    std::vector<Color> members(members_.size()), links(links_.size());
    for (std::size_t number = 0; number < stages_.size(); ++number) {
      walk(stages_[number], number,
           [&](const Transfer& /*transfer*/, std::size_t source, std::size_t destination, Color color) {
             members[source] += mixed(color ^ 0x5555U);
             members[destination] += mixed(color ^ 0xaaaaU);
             for (std::size_t i = 0; i < paths_.size(); ++i)
               for (const int link : paths_[i].links) links[static_cast<std::size_t>(link)] += mixed(color + i);
           });
    }
    for (std::size_t i = 0; i < members.size(); ++i) members_[i] = with(members_[i], members[i]);
    for (std::size_t i = 0; i < links.size(); ++i) links_[i] = with(links_[i], links[i]);
  }

  /// Numbers classes in the order of their first members, and collects these as their representatives.
  static std::vector<int> numbered(const std::vector<Color>& colors, std::vector<std::size_t>& representatives) {
    std::unordered_map<Color, int> numbers_by_color;
    std::vector<int> numbers(colors.size());
    for (std::size_t i = 0; i < colors.size(); ++i) {
      const auto [at, is_new] = numbers_by_color.try_emplace(colors[i], static_cast<int>(numbers_by_color.size()));
      if (is_new) representatives.push_back(i);
      numbers[i] = at->second;
    }
    return numbers;
  }

  Quotient build() {
    std::vector<std::size_t> member_of_class, link_of_class;
    const std::vector<int> member_class = numbered(members_, member_of_class);
    const std::vector<int> link_class = numbered(links_, link_of_class);
    Quotient quotient;
    quotient.members = static_cast<std::int64_t>(members_.size());
    for (const std::size_t link : link_of_class) quotient.link_bandwidths.push_back(fabric_.links()[link].bandwidth.si);
    quotient.link_of_class = link_of_class;
    for (std::size_t number = 0; number < communicators_.size(); ++number) add_ranks(number, member_class, quotient);
    for (std::size_t number = 0; number < stages_.size(); ++number) {
      const StageRef& ref = stages_[number];
      auto& calls = quotient.calls[static_cast<std::size_t>(ref.communicator)];
      calls[ref.call].stages.push_back(
          stage_of(number, member_class, link_class, member_of_class, link_of_class, quotient.ranks.size()));
      QuotientStage& stage = calls[ref.call].stages.back();
      stage.first_round = calls[ref.call].rounds;
      calls[ref.call].rounds += stage.rounds;
    }
    return quotient;
  }

  void add_ranks(std::size_t number, const std::vector<int>& member_class, Quotient& quotient) {
    const Communicator& communicator = *communicators_[number];
    auto& calls = quotient.calls.emplace_back(communicator.calls.size());
    for (std::size_t call = 0; call < calls.size(); ++call) {
      const ProtocolCost& cost = communicator.calls[call].schedule->cost();
      calls[call].start = cost.start.si;
      calls[call].eager = cost.eager;
    }
    auto& classes = quotient.class_of.emplace_back();
    const std::size_t last = number + 1 < first_.size() ? first_[number + 1] : members_.size();
    for (std::size_t member = first_[number]; member < last; ++member) {
      classes.push_back(member_class[member]);
      if (member_class[member] < static_cast<int>(quotient.ranks.size())) continue;
      const int endpoints = communicator.calls[0].schedule->endpoints();
      const int endpoint = static_cast<int>(member - first_[number]) % endpoints;
      const int lane = static_cast<int>(member - first_[number]) / endpoints;
      QuotientRank rank;
      rank.communicator = static_cast<int>(number);
      const Endpoint& properties =
          fabric_.endpoints()[static_cast<std::size_t>(fabric_endpoint(communicator, endpoint))];
      for (const CollectiveCall& call : communicator.calls) {
        const bool is_rank = endpoint < call.schedule->ranks();
        rank.takes_part.push_back(lane < call.schedule->lanes());
        rank.issue.push_back(is_rank ? call.arrivals[static_cast<std::size_t>(endpoint)].si : -1);
      }
      rank.launch = properties.launch.si;
      quotient.ranks.push_back(std::move(rank));
    }
  }

  QuotientStage stage_of(std::size_t number, const std::vector<int>& member_class, const std::vector<int>& link_class,
                         const std::vector<std::size_t>& member_of_class, const std::vector<std::size_t>& link_of_class,
                         std::size_t classes) {
    const StageRef& ref = stages_[number];
    const ProtocolCost& cost = ref.schedule->cost();
    QuotientStage stage;
    stage.rounds = ref.schedule->stages()[ref.stage].rounds;
    stage.of_class.resize(classes);
    std::unordered_map<Color, std::size_t> numbers_by_color;
    walk(ref, number, [&](const Transfer& transfer, std::size_t source, std::size_t destination, Color color) {
      const auto [at, is_new] = numbers_by_color.try_emplace(color, stage.transfers.size());
      const int from = member_class[source], to = member_class[destination];
      if (is_new) stage.transfers.push_back(new_class(transfer, from, to, cost, link_class));
      QuotientTransfer& same_class = stage.transfers[at->second];
      if (transfer.reduce && !cost.reduction_is_free && member_of_class[static_cast<std::size_t>(to)] == destination) {
        const Communicator& communicator = *communicators_[static_cast<std::size_t>(ref.communicator)];
        const auto& endpoint =
            fabric_.endpoints()[static_cast<std::size_t>(fabric_endpoint(communicator, transfer.destination))];
        same_class.adding +=
            static_cast<double>(transfer.length) * kMemoryBytesPerReducedByte / endpoint.memory_bandwidth.si;
      }
      for (std::size_t i = 0; i < paths_.size(); ++i) {
        for (const int link : paths_[i].links) {
          const int of = link_class[static_cast<std::size_t>(link)];
          if (link_of_class[static_cast<std::size_t>(of)] != static_cast<std::size_t>(link)) continue;
          for (LinkUse& use : same_class.flows[i].uses)
            if (use.link == of) use.weight += 1;
        }
      }
    });
    for (std::size_t i = 0; i < stage.transfers.size(); ++i) {
      stage.of_class[static_cast<std::size_t>(stage.transfers[i].source)].push_back(static_cast<int>(i));
      stage.of_class[static_cast<std::size_t>(stage.transfers[i].destination)].push_back(static_cast<int>(i));
    }
    return stage;
  }

  /// The class of transfers that begins with this one. Its links have no weights yet: stage_of() counts the messages of
  /// the class on the representative of each class of links.
  QuotientTransfer new_class(const Transfer& transfer, int from, int to, const ProtocolCost& cost,
                             const std::vector<int>& link_class) const {
    QuotientTransfer same_class{from, to, 0, {}};
    for (const Path& path : paths_) {
      QuotientFlow flow;
      flow.bytes = static_cast<double>(transfer.length) * path.share * cost.wire;
      flow.latency = latency_of(path, cost).si;
      const BytesPerSecond protocols = path.between_nodes ? cost.flow_between : cost.flow_inside;
      flow.limit = std::min(path.flow_limit, protocols).si;
      flow.limit_is_protocols = protocols < path.flow_limit;
      for (const int link : path.links) {
        const int of = link_class[static_cast<std::size_t>(link)];
        if (std::none_of(flow.uses.begin(), flow.uses.end(), [&](const LinkUse& use) { return use.link == of; }))
          flow.uses.push_back({of, 0});
      }
      same_class.flows.push_back(std::move(flow));
    }
    return same_class;
  }

  const FabricGraph& fabric_;
  std::vector<const Communicator*> communicators_;
  std::vector<std::size_t> first_;  // by communicator: its first member
  std::vector<StageRef> stages_;
  std::vector<Color> members_, links_;
  std::vector<Transfer> transfers_;
  std::vector<Path> paths_;
};

}  // namespace

Quotient quotient_of(const FabricGraph& fabric, std::span<const Job> jobs) {
  return ColorRefinement(fabric, jobs).run();
}

}  // namespace ganymede::sim
