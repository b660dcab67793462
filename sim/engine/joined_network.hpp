#pragma once
// Networks of several places as one, with a gateway in each place and links between the gateways; and parts of one.

#include <cstddef>
#include <map>
#include <vector>

#include "sim/engine/network.hpp"

namespace ganymede::sim {

/// A full-duplex link between two places.
struct SiteLink {
  std::size_t a = 0, b = 0;  ///< indices of the places
  BytesPerSecond bandwidth;  ///< of one direction
  Seconds latency;
};

/// The endpoints of all places one after the other, followed by a gateway for each place. Messages go from endpoint to
/// endpoint of one place, or from gateway to gateway. A gateway adds and forwards without taking time.
class JoinedNetwork : public Network {
 public:
  /// `places` must outlive this; `between` has a link for each pair of them.
  JoinedNetwork(std::vector<const Network*> places, const std::vector<SiteLink>& between);

  int first_endpoint(std::size_t place) const { return first_endpoint_[place]; }
  int gateway(std::size_t place) const { return first_endpoint_.back() + static_cast<int>(place); }

  const std::vector<DirectedLink>& links() const override { return links_; }
  const std::vector<Endpoint>& endpoints() const override { return endpoints_; }
  int max_paths() const override;
  std::vector<BytesPerSecond> connection_limits() const override;
  void paths(int source, int destination, std::vector<Path>& paths) const override;

 private:
  std::vector<const Network*> places_;
  std::vector<int> first_endpoint_;  // by place; the last entry is the first gateway
  std::vector<int> first_link_;      // by place
  std::vector<DirectedLink> links_;
  std::vector<Endpoint> endpoints_;
  std::vector<Path> gateway_paths_;  // by source and destination place
};

/// Some endpoints of a network, numbered anew, with the links between those of a set.
class NetworkPart : public Network {
 public:
  /// Messages go between the endpoints of a set alone. `whole` must outlive this.
  NetworkPart(const Network& whole, const std::vector<std::vector<int>>& sets);

  /// The number here of an endpoint of the whole.
  int endpoint(int of_whole) const { return endpoint_.at(of_whole); }
  const std::vector<DirectedLink>& links() const override { return links_; }
  const std::vector<Endpoint>& endpoints() const override { return endpoints_; }
  int max_paths() const override { return whole_.max_paths(); }
  std::vector<BytesPerSecond> connection_limits() const override { return whole_.connection_limits(); }
  void paths(int source, int destination, std::vector<Path>& paths) const override;

 private:
  const Network& whole_;
  std::map<int, int> endpoint_, link_;  // by their numbers in the whole
  std::vector<int> of_whole_;           // by endpoint
  std::vector<DirectedLink> links_;
  std::vector<Endpoint> endpoints_;
};

}  // namespace ganymede::sim
