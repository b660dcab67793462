#include "sim/engine/network.hpp"

#include <fmt/format.h>

#include <cassert>

#include "common/units.hpp"

namespace ganymede::sim {

JoinedNetwork::JoinedNetwork(std::vector<const Network*> places, const std::vector<SiteLink>& between)
    : places_(std::move(places)), gateway_paths_(places_.size() * places_.size()) {
  for (const Network* place : places_) {
    first_endpoint_.push_back(static_cast<int>(endpoints_.size()));
    first_link_.push_back(static_cast<int>(links_.size()));
    endpoints_.insert(endpoints_.end(), place->endpoints().begin(), place->endpoints().end());
    // Each place numbers its links from 0, and SimGrid wants names that differ.
    for (const DirectedLink& link : place->links())
      links_.push_back({fmt::format("place_{}.{}", first_link_.size() - 1, link.name), link.bandwidth});
  }
  first_endpoint_.push_back(static_cast<int>(endpoints_.size()));
  endpoints_.resize(endpoints_.size() + places_.size());
  for (const SiteLink& link : between) {
    for (const auto& [from, to] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      Path& path = gateway_paths_[from * places_.size() + to];
      path.links = {static_cast<int>(links_.size())};
      path.latency = link.latency;
      path.between_nodes = true;
      links_.push_back({fmt::format("between.{}-{}", from, to), link.bandwidth});
    }
  }
}

int JoinedNetwork::max_paths() const {
  int largest = 1;
  for (const Network* place : places_) largest = std::max(largest, place->max_paths());
  return largest;
}

std::vector<BytesPerSecond> JoinedNetwork::connection_limits() const {
  std::vector<BytesPerSecond> limits;
  for (const Network* place : places_) {
    const auto own = place->connection_limits();
    limits.insert(limits.end(), own.begin(), own.end());
  }
  return limits;
}

void JoinedNetwork::paths(int source, int destination, std::vector<Path>& paths) const {
  const int gateways = first_endpoint_.back();
  if (source >= gateways) {
    assert(destination >= gateways);
    const auto from = static_cast<std::size_t>(source - gateways),
               to = static_cast<std::size_t>(destination - gateways);
    paths.assign(1, gateway_paths_[from * places_.size() + to]);
    assert(!paths.front().links.empty());
    return;
  }
  std::size_t place = 0;
  while (first_endpoint_[place + 1] <= source) ++place;
  assert(destination >= first_endpoint_[place] && destination < first_endpoint_[place + 1]);
  places_[place]->paths(source - first_endpoint_[place], destination - first_endpoint_[place], paths);
  for (Path& path : paths)
    for (int& link : path.links) link += first_link_[place];
}

NetworkPart::NetworkPart(const Network& whole, const std::vector<std::vector<int>>& sets) : whole_(whole) {
  std::vector<Path> paths;
  for (const std::vector<int>& set : sets) {
    for (const int member : set) {
      if (!endpoint_.try_emplace(member, static_cast<int>(of_whole_.size())).second) continue;
      of_whole_.push_back(member);
      endpoints_.push_back(whole.endpoints()[static_cast<std::size_t>(member)]);
    }
    for (const int source : set)
      for (const int destination : set) {
        if (source == destination) continue;
        whole.paths(source, destination, paths);
        for (const Path& path : paths)
          for (const int link : path.links)
            if (link_.try_emplace(link, static_cast<int>(links_.size())).second)
              links_.push_back(whole.links()[static_cast<std::size_t>(link)]);
      }
  }
}

void NetworkPart::paths(int source, int destination, std::vector<Path>& paths) const {
  whole_.paths(of_whole_[static_cast<std::size_t>(source)], of_whole_[static_cast<std::size_t>(destination)], paths);
  for (Path& path : paths)
    for (int& link : path.links) link = link_.at(link);
}

}  // namespace ganymede::sim
