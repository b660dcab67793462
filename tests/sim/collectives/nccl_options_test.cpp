// What variants of the scheme "nccl" name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/nccl_tuner.hpp"

namespace ganymede::sim {
namespace {

TEST(NcclOptions, VariantsAreVersionsAndWhatIsForced) {
  const auto options = parse_nccl_options("2.9.9/RING/Simple");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->version, (NcclVersion{2, 9}));
  EXPECT_EQ(options->algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(options->protocol, NcclProtocol::simple);
  for (const char* bad : {"2", "2.", "ring/fast", "2.9.9.9", "x.1", "2.9x", "ring/LL/simple", "ring/tree", "2.8/2.9"})
    EXPECT_FALSE(parse_nccl_options(bad)) << bad;
}

// A month names the newest version in it, in whatever order it stands beside what is forced.
TEST(NcclOptions, AMonthIsTheNewestVersionInIt) {
  for (const auto& [month, minor] :
       {std::pair{"2019-01", 4}, {"2021-03", 8}, {"2021-04", 9}, {"2025-01", 25}, {"2026-11", 32}}) {
    const auto options = parse_nccl_options(std::string("ring/") + month);
    ASSERT_TRUE(options) << month;
    EXPECT_EQ(options->version, (NcclVersion{2, minor})) << month;
    EXPECT_EQ(options->algorithm, NcclAlgorithm::ring);
    EXPECT_THAT(nccl_version_note(*options), testing::HasSubstr(month));
  }
  using testing::HasSubstr;
  EXPECT_THAT(nccl_version_note(*parse_nccl_options("2026-11")), HasSubstr("the newest known in 2026-11"));
  for (const char* taken : {"2025-12", "2027-03", "2.99"})
    EXPECT_EQ(why_no_version(*parse_nccl_options(taken)), "") << taken;
  EXPECT_EQ(nccl_version_note(*parse_nccl_options("2025-12")), "NCCL 2.28, the newest in 2025-12");
  EXPECT_EQ(nccl_version_note(*parse_nccl_options("2026-03")),
            "NCCL 2.29, the newest in 2026-03; its constants are not known, the nearest known were used");
  for (const char* bad : {"2018-12", "2021-00", "2021-13", "2021-3", "2021-03/2.8", "2021/03", "20x1-03", "2021-03-01"})
    EXPECT_FALSE(parse_nccl_options(bad)) << bad;
}

// A scheme and a platform refuse a month long after the newest version that is known, and say which that is.
TEST(NcclOptions, AMonthToComeIsRefusedEverywhere) {
  using testing::HasSubstr;
  for (const char* month : {"2099-01", "2027-04"}) {
    EXPECT_THAT(why_no_version(*parse_nccl_options(month)), HasSubstr("known up to 2026-09")) << month;
    const PlanRequest request{.topology = clustered(2, 2), .bytes = 8, .variant = month};
    EXPECT_EQ(find_scheme("nccl").why_not(request), why_no_version(*parse_nccl_options(month)));
  }
}

}  // namespace
}  // namespace ganymede::sim
