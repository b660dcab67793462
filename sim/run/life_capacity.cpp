// Recorded capacity: how many nodes of a pool there may be. A recording says when nodes were gone; their notice came
// before that. So whoever plays the provider here looks as far ahead in it as the notice is long, and the policy hears
// of no more than the notices.

#include <algorithm>

#include "sim/run/life.hpp"

namespace ganymede {
namespace {

/// Rows beyond what the clock can count never come.
Nanoseconds comes(const Series::Row& row) { return row.at.si < 9e9 ? to_nanoseconds(row.at) : kNever; }

std::size_t nodes_of(const Series::Row& row) { return static_cast<std::size_t>(row.value); }

const Series::Row* first_after(const Series& series, Nanoseconds time) {
  const Series::Row* rows = series.rows.data();
  return std::upper_bound(rows, rows + series.rows.size(), time,
                          [](Nanoseconds when, const Series::Row& row) { return when < comes(row); });
}

}  // namespace

/// The row that holds now, and those that come within a notice.
std::span<const Series::Row> Life::known_rows(std::size_t p) const {
  const ScenarioPool& pool = scenario_.pools[p];
  const Series::Row* first = first_after(*pool.capacity, now_);
  const Series::Row* end = first_after(*pool.capacity, now_ + to_nanoseconds(pool.notice));
  return {first == pool.capacity->rows.data() ? first : first - 1, end};
}

/// For one node more.
bool Life::has_room(std::size_t p) const {
  const std::span<const Series::Row> rows = known_rows(p);
  if (rows.empty() || comes(rows.front()) > now_) return false;
  std::size_t held = 0, least = nodes_of(rows.front());
  for (const std::size_t index : fleet_.alive()) held += fleet_[index].pool == p && fleet_[index].held() ? 1 : 0;
  if (held >= least) return false;
  for (const Series::Row& row : rows) least = std::min(least, nodes_of(row));
  // One that gets its notice with its grant fills a gap, but replaces none that has its notice too: else each would be
  // replaced at once by the next, as long as there are any.
  return held < least || held < static_cast<std::size_t>(decision_.nodes[p]);
}

/// At the start, and when a row of a recording comes, or a notice before it.
void Life::capacity_changed(std::size_t p) {
  const ScenarioPool& pool = scenario_.pools[p];
  const Nanoseconds notice = to_nanoseconds(pool.notice);
  const Series::Row* end = pool.capacity->rows.data() + pool.capacity->rows.size();
  const Series::Row* next = first_after(*pool.capacity, now_);
  const Series::Row* foreseen = first_after(*pool.capacity, now_ + notice);
  Nanoseconds at = next == end ? kNever : comes(*next);
  if (foreseen != end && comes(*foreseen) != kNever) at = std::min(at, comes(*foreseen) - notice);
  post(at, Event::Kind::capacity, p);
  take_back(p);
  if (now_ > 0) grant_waiting(p);
}

/// Nodes for which a row that is known leaves no room get their notice, and go when it comes.
void Life::take_back(std::size_t p) {
  bool news = false;
  for (const Series::Row& row : known_rows(p)) {
    const Nanoseconds at = std::max(now_, comes(row));
    // Those that will go anyway, but later, before those that nobody has told anything.
    std::vector<std::size_t> told, others;
    for (const std::size_t index : fleet_.alive()) {
      const Node& node = fleet_[index];
      if (node.pool == p && node.held() && node.leaves > at) (node.noticed ? told : others).push_back(index);
    }
    while (told.size() + others.size() > nodes_of(row)) {
      std::vector<std::size_t>& from = told.empty() ? others : told;
      const auto pick = from.begin() + static_cast<std::ptrdiff_t>(picks_.below(from.size()));
      news = warn(*pick, at) || news;
      from.erase(pick);
    }
  }
  if (news) look();
}

}  // namespace ganymede
