#include "sim/ledger/ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/errors.hpp"
#include "common/units.hpp"

namespace ganymede::sim {
namespace {

using namespace ganymede::literals;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr GpuNanoseconds kSecond = 1'000'000'000;

TEST(Ledger, WhatIsNotAddedIsIdle) {
  Ledger ledger;
  ledger.add(GpuUse::compute, 4, 100_s);
  ledger.add(GpuUse::exposed_communication, 4, 5_s);
  ledger.add(GpuUse::provisioning, 8, 2.5_s);
  const GpuSeconds account = ledger.close(8, 110_s);

  EXPECT_EQ(account.nanoseconds(GpuUse::compute), 400 * kSecond);
  EXPECT_EQ(account.nanoseconds(GpuUse::exposed_communication), 20 * kSecond);
  EXPECT_EQ(account.nanoseconds(GpuUse::provisioning), 20 * kSecond);
  EXPECT_EQ(account.nanoseconds(GpuUse::idle), (8 * 110 - 400 - 20 - 20) * kSecond);
  EXPECT_EQ(account.total_nanoseconds(), 8 * 110 * kSecond);
  EXPECT_DOUBLE_EQ(account.hours(), 880.0 / 3600);
  EXPECT_DOUBLE_EQ(account.share(GpuUse::compute), 400.0 / 880);
}

TEST(Ledger, AddsUpEntriesOfOneUse) {
  Ledger ledger;
  ledger.add(GpuUse::straggler, 1, 250_ms);
  ledger.add(GpuUse::straggler, 3, 250_ms);
  EXPECT_EQ(ledger.close(3, 1_s).nanoseconds(GpuUse::straggler), kSecond);
}

TEST(Ledger, AnEmptyAccountIsAllIdle) {
  EXPECT_EQ(Ledger().close(4, 10_s).nanoseconds(GpuUse::idle), 40 * kSecond);
  EXPECT_EQ(Ledger().close(0, 10_s).share(GpuUse::idle), 0);
}

TEST(Ledger, HoldsAYearOfAllTheGpusOfTheLargestCluster) {
  constexpr std::int64_t kGpus = 65'536;
  const Seconds year{365.0 * 24 * 3600};
  Ledger ledger;
  ledger.add(GpuUse::compute, kGpus, year);
  const GpuSeconds account = ledger.close(kGpus, year);
  EXPECT_EQ(account.total_nanoseconds(), GpuNanoseconds{kGpus} * 365 * 24 * 3600 * kSecond);
  EXPECT_EQ(account.nanoseconds(GpuUse::idle), 0);
}

TEST(Ledger, RefusesMoreThanWasHeld) {
  Ledger ledger;
  ledger.add(GpuUse::compute, 2, 10_s);
  EXPECT_THAT([&] { ledger.close(2, 9.99_s); }, ThrowsMessage<Failure>(HasSubstr("more than were held")));
  EXPECT_THAT([&] { ledger.close(1, 10_s); }, ThrowsMessage<Failure>(HasSubstr("more than were held")));
}

TEST(Ledger, SaysHowMuchMoreThanWasHeld) {
  Ledger ledger;
  ledger.add(GpuUse::compute, 2, 10_s);
  EXPECT_THAT([&] { ledger.close(2, 9.5_s); },
              ThrowsMessage<Failure>(HasSubstr("accounts for 20 GPU-seconds, 1 more than were held")));
}

// A time that is added and held in whole nanoseconds is exact: nothing is put down to rounding.
TEST(Ledger, OfWholeNanosecondsIsExact) {
  Ledger ledger;
  ledger.hold(2, 100);
  ledger.hold(1, 50);
  ledger.add(GpuUse::compute, GpuNanoseconds{150});
  ledger.add(GpuUse::lost, GpuNanoseconds{40});
  ledger.add(GpuUse::lost, GpuNanoseconds{20});
  ledger.add(GpuUse::lost, GpuNanoseconds{0});
  ledger.add(GpuUse::lost, 0, 1_s);
  EXPECT_EQ(ledger.close().nanoseconds(GpuUse::compute), 150);
  EXPECT_EQ(ledger.close().nanoseconds(GpuUse::lost), 60);
  EXPECT_EQ(ledger.close().nanoseconds(GpuUse::idle), 40);
  ledger.add(GpuUse::compute, GpuNanoseconds{40});
  EXPECT_EQ(ledger.close().nanoseconds(GpuUse::idle), 0);
  ledger.add(GpuUse::compute, GpuNanoseconds{1});
  EXPECT_THROW(ledger.close(), Failure);
  EXPECT_THROW(ledger.add(GpuUse::compute, GpuNanoseconds{-1}), Failure);
}

// Three GPUs for 10 ns, held for 8 ns: 6 ns too much, a nanosecond for each GPU of the entry and of what was held. The
// next one is a mistake.
TEST(Ledger, PutsANanosecondPerGpuAndEntryDownToRounding) {
  Ledger ledger;
  ledger.add(GpuUse::compute, 2, Seconds{10e-9});
  ledger.add(GpuUse::straggler, 1, Seconds{10e-9});
  const GpuSeconds account = ledger.close(3, Seconds{8e-9});
  EXPECT_EQ(account.nanoseconds(GpuUse::compute), 14);  // which had the most
  EXPECT_EQ(account.nanoseconds(GpuUse::straggler), 10);
  EXPECT_EQ(account.nanoseconds(GpuUse::idle), 0);
  ledger.add(GpuUse::compute, GpuNanoseconds{1});
  EXPECT_THROW(ledger.close(3, Seconds{8e-9}), Failure);
}

// 4,000 s are 4e12 ns, of which 4 are rounding; one more is that of the GPU that is held.
TEST(Ledger, PutsABillionthOfAThousandthDownToRounding) {
  Ledger ledger;
  ledger.add(GpuUse::compute, GpuNanoseconds{4'000'000'000'005});
  EXPECT_EQ(ledger.close(1, 4000_s).nanoseconds(GpuUse::compute), 4000 * kSecond);
  ledger.add(GpuUse::compute, GpuNanoseconds{1});
  EXPECT_THROW(ledger.close(1, 4000_s), Failure);
}

TEST(Ledger, TakesNoMoreFromAUseThanItHas) {
  Ledger ledger;
  ledger.add(GpuUse::compute, 1, Seconds{0.6e-9});
  EXPECT_EQ(ledger.close(0, 0_s).total_nanoseconds(), 0);
  ledger.add(GpuUse::straggler, 1, Seconds{0.6e-9});  // two of 1 ns, but nothing was held
  EXPECT_THAT([&] { ledger.close(0, 0_s); }, ThrowsMessage<Failure>(HasSubstr("rounding exceeds all")));
}

TEST(GpuSeconds, AreAddedUseByUse) {
  std::vector<GpuNanoseconds> expected(kGpuUseNames.size());
  GpuSeconds sum;
  for (const std::int64_t factor : {1, 10}) {
    Ledger ledger;
    for (std::size_t use = 0; use < kGpuUseNames.size(); ++use) {
      const auto time = GpuNanoseconds{static_cast<std::int64_t>(use) + 1} * factor;
      ledger.hold(1, static_cast<std::int64_t>(time));
      if (static_cast<GpuUse>(use) != GpuUse::idle) ledger.add(static_cast<GpuUse>(use), time);
      expected[use] += time;
    }
    sum += ledger.close();
  }
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use)
    EXPECT_EQ(sum.nanoseconds(static_cast<GpuUse>(use)), expected[use]) << kGpuUseNames[use];
}

TEST(GpuSeconds, AreSecondsAndShares) {
  Ledger ledger;
  ledger.hold(1, 4 * static_cast<std::int64_t>(kSecond));
  ledger.add(GpuUse::compute, GpuNanoseconds{1'500'000'000});
  EXPECT_EQ(ledger.close().seconds(GpuUse::compute), 1.5);
  EXPECT_EQ(ledger.close().total_seconds(), 4);
  EXPECT_EQ(ledger.close().share(GpuUse::compute), 0.375);
  Ledger shortest;
  shortest.hold(1, 1);
  EXPECT_EQ(shortest.close().share(GpuUse::idle), 1);
}

TEST(Ledger, RefusesTimesThatAreNone) {
  Ledger ledger;
  EXPECT_THROW(ledger.add(GpuUse::compute, 1, Seconds{-1e-3}), Failure);
  EXPECT_THROW(ledger.add(GpuUse::compute, 1, Seconds{std::numeric_limits<double>::quiet_NaN()}), Failure);
  EXPECT_THROW(ledger.add(GpuUse::compute, 1, Seconds{std::numeric_limits<double>::infinity()}), Failure);
  EXPECT_THROW(ledger.add(GpuUse::compute, -1, 1_s), Failure);
  EXPECT_THROW(ledger.close(1, Seconds{-1}), Failure);
}

// Each entry is rounded to whole nanoseconds, so entries may add up to more than the time that was held. Idle time must
// not become negative.
TEST(Ledger, RoundingNeverMakesIdleNegative) {
  Ledger ledger;
  for (int i = 0; i < 10; ++i) ledger.add(GpuUse::compute, 2, Seconds{0.6e-9});
  const GpuSeconds account = ledger.close(2, Seconds{6e-9});  // 10 entries of 1 ns after rounding
  EXPECT_EQ(account.nanoseconds(GpuUse::compute), 12);
  EXPECT_EQ(account.nanoseconds(GpuUse::idle), 0);
}

TEST(Ledger, NamesEveryUse) {
  for (const std::string_view name : kGpuUseNames) EXPECT_FALSE(name.empty());
  EXPECT_EQ(kGpuUseNames[static_cast<std::size_t>(GpuUse::compute)], "compute");
  EXPECT_EQ(kGpuUseNames[static_cast<std::size_t>(GpuUse::idle)], "idle");
}

// Random spells in sequence. Each splits the time of the held GPUs among uses whose sum is at most its length.
RC_GTEST_PROP(LedgerProperty, UsesSumToTheGpusHeldTimesTheMeteredTime, ()) {
  const auto gpus = *rc::gen::inRange<std::int64_t>(1, 65'537);
  const auto spells = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1'000'000'000));
  Ledger ledger;
  Seconds metered{0};
  std::size_t next = 0;
  for (const int spell : spells) {
    // A division by seven, so that neither the parts nor the sum are whole nanoseconds.
    const Seconds length{static_cast<double>(spell) / 7e3};
    // In half of the spells no GPU idles, so that rounding may exceed what was held.
    const auto busy = spell % 2 == 0 ? gpus : *rc::gen::inRange<std::int64_t>(0, gpus + 1);
    ledger.add(static_cast<GpuUse>(next % 7), busy, length / 3);
    ledger.add(static_cast<GpuUse>((next + 3) % 7), busy, 2 * length / 3);
    metered += length;
    ++next;
  }

  const GpuSeconds account = ledger.close(gpus, metered);
  GpuNanoseconds sum = 0;
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use) {
    RC_ASSERT(account.nanoseconds(static_cast<GpuUse>(use)) >= 0);
    sum += account.nanoseconds(static_cast<GpuUse>(use));
  }
  RC_ASSERT(sum == GpuNanoseconds{std::llround(metered.si * 1e9)} * gpus);
  RC_ASSERT(sum == account.total_nanoseconds());
}

}  // namespace
}  // namespace ganymede::sim
