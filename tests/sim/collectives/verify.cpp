#include "verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

namespace ganymede::sim {
namespace {

std::string describe(const Transfer& t, std::int64_t round) {
  return fmt::format("round {}: {} -> {}, bytes [{}, {}){}", round, t.source, t.destination, t.offset,
                     t.offset + t.length, t.reduce ? ", reduced" : "");
}

/// Says what is wrong with a transfer by itself; "": nothing.
std::string fault_of(const Schedule& schedule, const Transfer& t) {
  const auto exists = [&](int endpoint) { return 0 <= endpoint && endpoint < schedule.endpoints(); };
  if (!exists(t.source) || !exists(t.destination))
    return fmt::format("has an end outside the {} endpoints", schedule.endpoints());
  if (t.source == t.destination) return "sends to itself";
  if (t.length <= 0) return "carries nothing";
  if (t.offset < 0 || t.offset > schedule.bytes() - t.length) {
    return fmt::format("leaves the buffer of {} bytes", schedule.bytes());
  }
  return "";
}

/// The contributions that each endpoint holds, for each range of bytes that the schedule treats alike.
class Holdings {
 public:
  using Count = std::uint32_t;  ///< how many times a contribution is in a sum

  /// At first each rank holds its own contribution once, and switches hold nothing.
  Holdings(const Schedule& schedule, std::vector<std::int64_t> boundaries)
      : ranks_(schedule.ranks()), endpoints_(schedule.endpoints()), boundaries_(std::move(boundaries)) {
    counts_.resize(static_cast<std::size_t>(endpoints_) * ranges() * static_cast<std::size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      for (std::size_t range = 0; range < ranges(); ++range) at(rank, range)[static_cast<std::size_t>(rank)] = 1;
    }
  }

  std::size_t ranges() const { return boundaries_.size() - 1; }
  std::int64_t boundary(std::size_t index) const { return boundaries_[index]; }
  std::size_t range_at(std::int64_t offset) const {
    return static_cast<std::size_t>(std::lower_bound(boundaries_.begin(), boundaries_.end(), offset) -
                                    boundaries_.begin());
  }

  /// The counts of a range at an endpoint, one for each contributing rank.
  std::span<Count> at(int endpoint, std::size_t range) {
    const auto ranks = static_cast<std::size_t>(ranks_);
    return {&counts_[(static_cast<std::size_t>(endpoint) * ranges() + range) * ranks], ranks};
  }

  /// Applies a round, in which all transfers carry what their sources held before it. Returns the first race; "": none.
  std::string apply(const std::vector<Transfer>& transfers, std::int64_t round);

 private:
  int ranks_;
  int endpoints_;
  std::vector<std::int64_t> boundaries_;  // where ranges begin: ascending, from 0 to the number of bytes
  std::vector<Count> counts_;
};

std::string Holdings::apply(const std::vector<Transfer>& transfers, std::int64_t round) {
  struct Delivery {
    const Transfer* transfer;
    std::size_t range;
    std::vector<Count> counts;
  };
  std::vector<Delivery> deliveries;
  for (const Transfer& t : transfers) {
    for (std::size_t range = range_at(t.offset); range < range_at(t.offset + t.length); ++range) {
      const std::span<const Count> sent = at(t.source, range);
      deliveries.push_back({&t, range, {sent.begin(), sent.end()}});
    }
  }

  // Two additions commute. Any other double write depends on which message arrives first.
  std::vector<const Transfer*> written(static_cast<std::size_t>(endpoints_) * ranges(), nullptr);
  for (const auto& [transfer, range, sent] : deliveries) {
    const Transfer*& earlier = written[static_cast<std::size_t>(transfer->destination) * ranges() + range];
    if (earlier != nullptr && !(earlier->reduce && transfer->reduce)) {
      return describe(*transfer, round) + ": races with " + describe(*earlier, round);
    }
    earlier = transfer;
    const std::span<Count> held = at(transfer->destination, range);
    for (std::size_t i = 0; i < held.size(); ++i) held[i] = transfer->reduce ? held[i] + sent[i] : sent[i];
  }
  return "";
}

/// Collects the distinct offsets at which transfers begin or end, and checks each transfer by itself.
Completeness find_boundaries(const Schedule& schedule, std::vector<std::int64_t>& boundaries) {
  std::vector<Transfer> transfers;
  boundaries = {0, schedule.bytes()};
  for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
    schedule.round(round, transfers);
    for (const Transfer& t : transfers) {
      if (const std::string fault = fault_of(schedule, t); !fault.empty()) return {describe(t, round) + ": " + fault};
      boundaries.push_back(t.offset);
      boundaries.push_back(t.offset + t.length);
    }
    std::sort(boundaries.begin(), boundaries.end());
    boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  }
  return {};
}

Completeness check_sums(const Schedule& schedule, Holdings& holdings) {
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for (std::size_t range = 0; range < holdings.ranges(); ++range) {
      const auto counts = holdings.at(rank, range);
      const auto wrong = std::find_if(counts.begin(), counts.end(), [](Holdings::Count count) { return count != 1; });
      if (wrong == counts.end()) continue;
      return {fmt::format(
          "after the last round rank {} holds rank {}'s contribution to bytes [{}, {}) {} times, expected once", rank,
          wrong - counts.begin(), holdings.boundary(range), holdings.boundary(range + 1), *wrong)};
    }
  }
  return {};
}

bool is_sum(std::span<const Holdings::Count> counts) {
  return std::all_of(counts.begin(), counts.end(), [](Holdings::Count count) { return count == 1; });
}

/// Returns the rank whose contribution alone is held; -1 if not exactly one contribution is held once.
int sole_owner(std::span<const Holdings::Count> counts) {
  int owner = -1;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] == 0) continue;
    if (counts[rank] > 1 || owner >= 0) return -1;
    owner = static_cast<int>(rank);
  }
  return owner;
}

Completeness check_shares(const Schedule& schedule, const std::vector<std::int64_t>& shares, const char* what) {
  for (std::size_t rank = 0; rank < shares.size(); ++rank)
    if (shares[rank] != schedule.bytes() / schedule.ranks())
      return {fmt::format("after the last round rank {} {} {} bytes, expected {}", rank, what, shares[rank],
                          schedule.bytes() / schedule.ranks())};
  return {};
}

Completeness check_scattered(const Schedule& schedule, Holdings& holdings) {
  std::vector<std::int64_t> shares(static_cast<std::size_t>(schedule.ranks()));
  for (std::size_t range = 0; range < holdings.ranges(); ++range) {
    bool somewhere = false;
    for (int rank = 0; rank < schedule.ranks(); ++rank) {
      if (!is_sum(holdings.at(rank, range))) continue;
      somewhere = true;
      shares[static_cast<std::size_t>(rank)] += holdings.boundary(range + 1) - holdings.boundary(range);
    }
    if (!somewhere)
      return {fmt::format("after the last round nobody holds the sum of bytes [{}, {})", holdings.boundary(range),
                          holdings.boundary(range + 1))};
  }
  return check_shares(schedule, shares, "holds the sum of");
}

Completeness check_copies(const Schedule& schedule, Holdings& holdings, bool from_root) {
  std::vector<std::int64_t> shares(static_cast<std::size_t>(schedule.ranks()));
  for (std::size_t range = 0; range < holdings.ranges(); ++range) {
    const int owner = sole_owner(holdings.at(0, range));
    for (int rank = 0; rank < schedule.ranks(); ++rank) {
      const int held = sole_owner(holdings.at(rank, range));
      if (held < 0 || held != owner || (from_root && held != 0))
        return {fmt::format("after the last round rank {} does not hold one rank's bytes [{}, {}) as all should", rank,
                            holdings.boundary(range), holdings.boundary(range + 1))};
    }
    shares[static_cast<std::size_t>(owner)] += holdings.boundary(range + 1) - holdings.boundary(range);
  }
  return from_root ? Completeness{} : check_shares(schedule, shares, "gave");
}

}  // namespace

Completeness is_complete(const Schedule& schedule, Collective collective) {
  if (schedule.bytes() == 0 && schedule.rounds() == 0) return {};
  std::vector<std::int64_t> boundaries;
  if (Completeness verdict = find_boundaries(schedule, boundaries); !verdict) return verdict;
  if (schedule.bytes() == 0) return {};  // rounds without transfers

  Holdings holdings(schedule, std::move(boundaries));
  std::vector<Transfer> transfers;
  for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
    schedule.round(round, transfers);
    if (std::string race = holdings.apply(transfers, round); !race.empty()) return {std::move(race)};
  }
  switch (collective) {
    case Collective::all_reduce:
      return check_sums(schedule, holdings);
    case Collective::reduce_scatter:
      return check_scattered(schedule, holdings);
    case Collective::all_gather:
      return check_copies(schedule, holdings, false);
    case Collective::broadcast:
      return check_copies(schedule, holdings, true);
    default:
      return {};  // of sends and receives only races are found
  }
}

}  // namespace ganymede::sim
