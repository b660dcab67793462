#include "rehearsal/local_hosts.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "rehearsal/host_connections.hpp"

namespace ganymede::rehearsal {
std::string run_on_hosts(int hosts, Shaping shaping, bool name_spaces,
                         const std::function<std::string(kernel::Messenger&)>& work) {
  assert(hosts >= 2 && hosts <= kMaxLocalHosts);
  const EndSignals signals;
  std::optional<NameSpaces> spaces;
  if (name_spaces) spaces.emplace(hosts, shaping.rate);
  shaping.is_paced = !name_spaces;
  std::vector<int> all(static_cast<std::size_t>(hosts));
  std::iota(all.begin(), all.end(), 0);
  HostConnections connections(all, spaces ? &*spaces : nullptr);
  std::optional<std::size_t> failed;  // the first host that did; a death comes before what it causes
  bool died = false;
  const auto landed = [&](std::size_t host, ChildOutcome& outcome) {
    connections.end(host);
    const bool is_death = outcome.kind == ChildOutcome::Kind::failure && outcome.text.starts_with("the simulation ");
    if (outcome.kind == ChildOutcome::Kind::ok || (failed && (died || !is_death))) return;
    if (is_death)
      outcome.text = fmt::format("rank {} has died: {}", host, outcome.text.substr(std::strlen("the simulation ")));
    died = is_death;
    failed = host;
  };
  const auto stopped = [&] {
    if (!EndSignals::asked()) return false;
    for (std::size_t host = 0; host < static_cast<std::size_t>(hosts); ++host) connections.end(host);
    return true;
  };
  const auto outcomes = run_children(
      static_cast<std::size_t>(hosts), hosts,
      [&](std::size_t host) {
        const BeforeOthers before_others;
        if (spaces) spaces->enter(static_cast<int>(host));
        SocketMessenger messenger(static_cast<int>(host), connections.take(host), shaping);
        return work(messenger);
      },
      {}, ChildUse::once, landed, stopped);
  if (EndSignals::asked()) throw Failure("interrupted; all hosts have ended");
  if (failed) rethrow(outcomes[*failed]);
  return outcomes[0].text;
}

}  // namespace ganymede::rehearsal
