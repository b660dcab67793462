#pragma once
// Network namespaces of Linux, one for each host of a rehearsal, joined by a switch. Needs root, and `ip` and `tc` of
// iproute2.

#include <string>

#include "common/units.hpp"

namespace ganymede::rehearsal {

/// Why this process cannot make name spaces: "not root", "no `tc` here (Debian: iproute2)"; "": it can.
std::string why_no_name_spaces();

/// Removes name spaces that programs left behind which are gone, and ends the processes in them; returns how many.
int remove_left_over_name_spaces();

/// Hosts 0 to hosts - 1 with the addresses 10.0.0.1 and so on. Each is joined to the switch by a veth pair, on both
/// ends of which a token bucket (tbf) sends at `rate`. Where the kernel has netem, it delays what a host sends by
/// `latency` and loses the share `loss` of its packets. The switch is in a name space of its own: the machine's own
/// network stays as it is. The destructor ends the processes that are still in one of them, and removes all with their
/// interfaces.
class NameSpaces {
 public:
  /// Throws Failure with what `ip` or `tc` said.
  NameSpaces(int hosts, BytesPerSecond rate, Seconds latency, double loss);
  ~NameSpaces();
  NameSpaces(const NameSpaces&) = delete;
  NameSpaces& operator=(const NameSpaces&) = delete;

  /// From now on all hosts send at that rate. Throws Failure with what `tc` said.
  void set_rate(BytesPerSecond rate) const;
  bool has_netem() const { return has_netem_; }  ///< otherwise nothing here delays or loses packets
  static std::string address_of(int host);
  std::string name_of(int host) const;
  void enter(int host) const;  ///< from then on, this process opens its sockets in the host's name space
  void leave() const;          ///< back to where the process was

 private:
  void remove() const;

  std::string prefix_;
  int hosts_;
  int mtu_;       // large packets at high rates, because each costs the processor as much as a small one
  int own_ = -1;  // the name space of this process
  bool has_netem_ = false;
};

}  // namespace ganymede::rehearsal
