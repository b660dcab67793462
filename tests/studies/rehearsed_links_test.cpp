#include <gtest/gtest.h>

#include <cmath>

#include "calibration/interval_classes.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "studies/rehearsed_study.hpp"

namespace ganymede::studies {
namespace {
/// A rehearsal whose communication took `factor` of what was predicted.
documents::ValidatedStudy rehearsal(const std::string& links, double factor) {
  documents::ValidatedStudy study;
  study.links = links;
  study.cells.resize(2);
  study.cells[0].measured = 9, study.cells[0].predicted = 3, study.cells[0].tags = {"rehearsed"};
  study.cells[1].measured = factor, study.cells[1].predicted = 1;
  study.cells[1].tags = {"rehearsed", "communication"};
  return study;
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
  const auto kinds = links.kinds();
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds[0].rehearsals, 2);
  EXPECT_NEAR(kinds[0].mean_error, 0, 1e-9);
}

TEST(RehearsedLinks, RefuseWhatIsNoRehearsalOrSaysNothingOfLinks) {
  RehearsedLinks links;
  documents::ValidatedStudy other = rehearsal("played", 1);
  other.links.clear();
  EXPECT_THROW(links.add(other, "a.json"), ConfigError);
  documents::ValidatedStudy hidden = rehearsal("played", 1);
  hidden.cells.pop_back();
  EXPECT_THROW(links.add(hidden, "a.json"), ConfigError);
}

}  // namespace
}  // namespace ganymede::studies
