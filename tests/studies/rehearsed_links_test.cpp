#include "studies/rehearsed_links.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "calibration/interval_classes.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"

namespace ganymede::studies {
namespace {
/// A rehearsal whose communication took `factor` of what was predicted.
OrderedJson rehearsal(const std::string& links, double factor) {
  return {{"links", links},
          {"cells",
           {{{"what", "step"}, {"measured", 9}, {"predicted", 3}, {"tags", {"rehearsed"}}},
            {{"what", "waiting"}, {"measured", factor}, {"predicted", 1}, {"tags", {"rehearsed", "communication"}}}}}};
}

TEST(RehearsedLinks, NarrowTheirKindIfTheyWereAsPredicted) {
  RehearsedLinks links;
  EXPECT_EQ(links.factor("played"), 1);
  links.add(rehearsal("played", 1), "a.json");
  // The class counts for five rehearsals, and this one was off by nothing.
  EXPECT_NEAR(links.factor("played"), std::sqrt(5.0 / 6), 1e-12);
  EXPECT_EQ(links.factor("measured"), 1);
  EXPECT_EQ(links.factor(LinkEvidence::datasheet), 1);
  EXPECT_LT(half_width_of_rehearsal("played", links.factor("played")), half_width_of_rehearsal("played", 1));
}

TEST(RehearsedLinks, WidenTheirKindIfTheyWereOffByMoreThanTheClassSays) {
  const double width = calibration::half_width_of_collective(LinkEvidence::measured, true);
  RehearsedLinks links;
  links.add(rehearsal("measured", std::exp(2 * width)), "a.json");
  links.add(rehearsal("measured", std::exp(-2 * width)), "b.json");
  const double squared = std::pow(1.6449 * 2, 2);  // each is two half-widths off
  EXPECT_NEAR(links.factor("measured"), std::sqrt((5 + 2 * squared) / 7), 1e-9);
  EXPECT_EQ(links.factor(LinkEvidence::fitted), links.factor("measured"));
  EXPECT_EQ(links.factor(LinkEvidence::assumed), 1);
  const OrderedJson kinds = links.json();
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds[0]["rehearsals"], 2);
  EXPECT_NEAR(kinds[0]["mean_error"].get<double>(), 0, 1e-9);
}

TEST(RehearsedLinks, RefuseWhatIsNoRehearsalOrSaysNothingOfLinks) {
  RehearsedLinks links;
  OrderedJson other = rehearsal("played", 1);
  other.erase("links");
  EXPECT_THROW(links.add(other, "a.json"), ConfigError);
  OrderedJson hidden = rehearsal("played", 1);
  hidden["cells"].erase(1);
  EXPECT_THROW(links.add(hidden, "a.json"), ConfigError);
}

}  // namespace
}  // namespace ganymede::studies
