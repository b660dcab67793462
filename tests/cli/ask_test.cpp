// The three questions of the program without arguments, and what it says about a long training.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program.hpp"
#include "cli/progress.hpp"
#include "common/errors.hpp"

namespace ganymede::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Gives the answers one after the other, and keeps the questions.
struct Answers {
  std::vector<std::string> answers;
  std::vector<std::string> questions;
  std::vector<std::string> plan() {
    return ask_for_plan([this](const std::string& question) -> std::optional<std::string> {
      questions.push_back(question);
      return questions.size() > answers.size() ? std::nullopt : std::optional(answers[questions.size() - 1]);
    });
  }
};

TEST(Asking, TakesThreeAnswers) {
  Answers deadline{{"biggan", "50M", "60h"}, {}};
  EXPECT_THAT(deadline.plan(), ElementsAre("plan", "--model", "biggan", "--images", "50M", "--deadline", "60h"));
  EXPECT_EQ(deadline.questions.size(), 3U);
  Answers money{{"mlp-gan", "5e6", "$500"}, {}};
  EXPECT_THAT(money.plan(), ElementsAre("plan", "--model", "mlp-gan", "--images", "5e6", "--budget", "$500"));
  Answers until{{"mlp-gan", "5e6", "2026-12-01T18:00+01:00"}, {}};
  EXPECT_EQ(until.plan().back(), "2026-12-01T18:00+01:00");
}

TEST(Asking, AnEmptyAnswerTakesWhatTheQuestionShows) {
  Answers none{{"", "", ""}, {}};
  const auto words = none.plan();
  ASSERT_EQ(words.size(), 5U) << "neither a deadline nor a budget";
  EXPECT_THAT(none.questions[0], HasSubstr("[" + words[2] + "]"));
  EXPECT_THAT(none.questions[1], HasSubstr("[" + words[4] + "]"));
}

TEST(Asking, AsksAgainAndSaysWhatWasWrong) {
  Answers wrong{{"bigan", "biggan", "many", "0", "1M", "60", "soon", "3d"}, {}};
  EXPECT_THAT(wrong.plan(), ElementsAre("plan", "--model", "biggan", "--images", "1M", "--deadline", "3d"));
  EXPECT_THAT(wrong.questions[1], HasSubstr("did you mean biggan?"));
  EXPECT_THAT(wrong.questions[3], HasSubstr("\"many\" is no number of images: write for example 50M"));
  EXPECT_THAT(wrong.questions[6], HasSubstr("\"60\" is neither a duration nor an amount: write for example 60h"));
}

TEST(Asking, EndsWithTheInput) {
  Answers ended{{"biggan"}, {}};
  EXPECT_THROW(ended.plan(), ConfigError);
}

// Steps of half a second: the first three, slower ones are not counted.
TEST(TrainingEstimate, ComesAfterTheFirstSteps) {
  TrainingEstimate estimate(1000, false);
  const auto at = [](int step) { return 6 + 0.5 * (step - 3); };
  for (int step = 1; step <= 8; ++step) EXPECT_THAT(estimate.after_step(step, at(step)), IsEmpty()) << step;
  // Three seconds of them: step 9. Then 991 of 0.5 s are left, and 9 s have passed.
  EXPECT_EQ(estimate.after_step(9, at(9)), "1000 steps take about 8.408 min here (500 ms a step, by the first 9)");
  EXPECT_THAT(estimate.after_step(10, at(10)), IsEmpty()) << "said once";
}

TEST(TrainingEstimate, IsLeftOutOfShortTrainings) {
  TrainingEstimate estimate(1000, false);
  for (int step = 1; step <= 30; ++step) EXPECT_THAT(estimate.after_step(step, 0.01 * step), IsEmpty()) << step;
}

TEST(TrainingEstimate, OfAGrowingModelIsALowerBound) {
  TrainingEstimate estimate(100'000, true);
  std::string said;
  for (int step = 1; step <= 20; ++step) said += estimate.after_step(step, 0.1 * step);
  EXPECT_THAT(said, HasSubstr("take more than 2.778 h here"));
  EXPECT_THAT(said, HasSubstr("steps get longer as the images grow"));
}

}  // namespace
}  // namespace ganymede::cli
