#pragma once
// Endpoints, the links between them and the paths over these links: what a simulation of messages needs to know.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include "common/units.hpp"
#include "sim/collectives/schedule.hpp"
#include "sim/engine/node_wiring.hpp"

namespace ganymede::sim {

/// Properties that paths over different links may have in common.
struct PathKind {
  Seconds latency;  ///< the sum along the path
  BytesPerSecond flow_limit{
      std::numeric_limits<double>::infinity()};  ///< highest rate of one flow, such as a TCP connection
  /// Highest rate of one of the connections over which a protocol splits a message (ProtocolCost::connections).
  BytesPerSecond connection_limit{std::numeric_limits<double>::infinity()};
  double share = 1;  ///< part of a message's bytes; the paths of a pair sum to 1
  bool between_nodes = false;

  /// The highest rate of one message.
  BytesPerSecond limit(int connections = 1) const { return std::min(flow_limit, connections * connection_limit); }
};

/// A path from one endpoint to another. The rate of a flow on it is the flow's max-min fair share of all its links, and
/// at most limit().
struct Path : PathKind {
  std::vector<int> links;  ///< indices into Network::links()
};

/// The latency of a message on a path, including the latency that the protocol adds (negative: takes away); at least
/// zero.
inline Seconds latency_of(const PathKind& path, const ProtocolCost& cost) {
  return cost.stretch * std::max(Seconds{0}, path.latency + (path.between_nodes ? cost.between : cost.inside));
}

/// The costs of an endpoint in a collective, besides its links. Switches add in passing and launch nothing.
struct Endpoint {
  BytesPerSecond memory_bandwidth{std::numeric_limits<double>::infinity()};  ///< a reduced byte moves 3 bytes
  Seconds launch{0};  ///< time to launch the collective's kernel, once for each rank and collective
};

class Network {
 public:
  virtual ~Network() = default;

  virtual const std::vector<DirectedLink>& links() const = 0;
  virtual const std::vector<Endpoint>& endpoints() const = 0;

  /// The largest number of paths between two endpoints.
  virtual int max_paths() const = 0;

  /// The different limits of connections that paths may have.
  virtual std::vector<BytesPerSecond> connection_limits() const = 0;

  /// Replaces `paths` by those from one endpoint to another, which must differ; reuses its memory. There are several
  /// paths, which share a message, if links of different kinds are used together. Takes O(length) time.
  virtual void paths(int source, int destination, std::vector<Path>& paths) const = 0;
};

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
