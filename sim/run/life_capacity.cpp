// Capacity that comes and goes: how many nodes of a pool there may be, as recorded or as drawn by the model of spot
// capacity. Both say when nodes were gone; their notice came before that. So whoever plays the provider here looks as
// far ahead as the notice is long, and the policy hears of no more than the notices.

#include <algorithm>

#include "sim/run/life.hpp"

namespace ganymede {

/// The capacity that holds now, and each that is to come within a notice.
std::vector<Life::CapacityFrom> Life::known_capacity(std::size_t p) {
  const auto from = [&](Nanoseconds at) { return CapacityFrom{at, static_cast<std::size_t>(capacity_[p].at(at))}; };
  const Nanoseconds horizon = now_ + to_nanoseconds(scenario_.pools[p].notice);
  std::vector<CapacityFrom> known{from(now_)};
  for (Nanoseconds at = capacity_[p].next_after(now_); at <= horizon; at = capacity_[p].next_after(at))
    known.push_back(from(at));
  return known;
}

/// For one node more.
bool Life::has_room(std::size_t p) {
  const std::vector<CapacityFrom> known = known_capacity(p);
  std::size_t held = 0, least = known.front().nodes;
  for (const std::size_t index : fleet_.alive()) held += fleet_[index].pool == p && fleet_[index].held() ? 1 : 0;
  if (held >= least) return false;
  for (const CapacityFrom& row : known) least = std::min(least, row.nodes);
  // A node that gets its notice with its grant fills a gap, but it replaces none that has its notice too: else each
  // would be replaced at once by the next, as long as there are any.
  return held < least || held < static_cast<std::size_t>(decision_.nodes[p]);
}

/// At the start, and when capacity changes, or a notice before it does.
void Life::capacity_changed(std::size_t p) {
  const Nanoseconds notice = to_nanoseconds(scenario_.pools[p].notice);
  Nanoseconds at = capacity_[p].next_after(now_);
  if (const Nanoseconds foreseen = capacity_[p].next_after(now_ + notice); foreseen != kNever)
    at = std::min(at, foreseen - notice);
  post(at, Event::Kind::capacity, p);
  take_back(p);
  if (now_ > 0) grant_waiting(p);
}

/// Nodes for which capacity that is known leaves no room get their notice, and go when it falls.
void Life::take_back(std::size_t p) {
  bool news = false;
  for (const CapacityFrom& row : known_capacity(p)) {
    // Those that will go anyway, but later, before those that nobody has told anything.
    std::vector<std::size_t> told, others;
    for (const std::size_t index : fleet_.alive()) {
      const Node& node = fleet_[index];
      if (node.pool == p && node.held() && node.leaves > row.at) (node.noticed ? told : others).push_back(index);
    }
    while (told.size() + others.size() > row.nodes) {
      std::vector<std::size_t>& from = told.empty() ? others : told;
      const auto pick = from.begin() + static_cast<std::ptrdiff_t>(picks_.below(from.size()));
      news = warn(*pick, row.at) || news;
      from.erase(pick);
    }
  }
  if (news) look();
}

}  // namespace ganymede
