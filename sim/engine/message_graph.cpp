#include "sim/engine/message_graph.hpp"

#include <algorithm>

namespace ganymede::sim {

MessageGraph::MessageGraph(const FabricGraph& fabric, std::span<const Job> jobs) : fabric_(fabric) {
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
  for (std::size_t number = 0; number < communicators_.size(); ++number)
    for (std::size_t call = 0; call < communicators_[number]->calls.size(); ++call)
      add_call(static_cast<int>(number), call);
}

void MessageGraph::add_call(int number, std::size_t call) {
  const Communicator& communicator = *communicators_[static_cast<std::size_t>(number)];
  const Schedule& schedule = *communicator.calls[call].schedule;
  const auto endpoints = static_cast<std::size_t>(schedule.endpoints());
  std::vector<Path> paths;
  schedule.visit_spans([&](const Transfer& transfer, int first_stage, int end_stage) {
    const auto kind = number_of(MessageKind{number, call, first_stage, end_stage, transfer.length, transfer.reduce});
    const std::size_t lane =
        first_[static_cast<std::size_t>(number)] + static_cast<std::size_t>(transfer.lane) * endpoints;
    messages_.push_back({static_cast<std::uint32_t>(lane + static_cast<std::size_t>(transfer.source)),
                         static_cast<std::uint32_t>(lane + static_cast<std::size_t>(transfer.destination)), kind,
                         static_cast<std::uint32_t>(routes_.size())});
    fabric_.paths(fabric_endpoint(communicator, transfer.source), fabric_endpoint(communicator, transfer.destination),
                  paths);
    add_route(paths);
  });
}

void MessageGraph::add_route(const std::vector<Path>& paths) {
  for (const Path& path : paths) {
    routes_.push_back(number_of(static_cast<const PathKind&>(path)));
    routes_.push_back(static_cast<int>(path.links.size()));
    routes_.insert(routes_.end(), path.links.begin(), path.links.end());
    crossings_ += path.links.size();
  }
}

std::uint32_t MessageGraph::number_of(const MessageKind& kind) {
  Color color = with(with(Color{1}, static_cast<Color>(kind.communicator)), static_cast<Color>(kind.call));
  color = with(with(color, static_cast<Color>(kind.first_stage)), static_cast<Color>(kind.end_stage));
  color = with(color, static_cast<Color>(kind.length) * 2 + (kind.reduce ? 1 : 0));
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
