#include "sim/engine/message_graph.hpp"

#include <algorithm>

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

}  // namespace ganymede::sim
