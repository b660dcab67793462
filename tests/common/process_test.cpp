#include "common/process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "support/errors.hpp"

namespace ganymede {
namespace {

using testing::HasSubstr;
using Kind = ChildOutcome::Kind;

TEST(RunChildren, AnswersInOrderWhateverTheNumberAtOnce) {
  for (const int jobs : {1, 2, 3, 4, 50}) {
    // The first child ends last.
    const auto outcomes = run_children(8, jobs, [](std::size_t i) {
      if (i == 0) ::usleep(20'000);
      return "child " + std::to_string(i);
    });
    ASSERT_EQ(outcomes.size(), 8U);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      EXPECT_EQ(outcomes[i].kind, Kind::ok);
      EXPECT_EQ(outcomes[i].text, "child " + std::to_string(i)) << jobs;
    }
  }
}

TEST(RunChildren, EachIsAProcessOfItsOwn) {
  int touched = 0;
  const auto outcomes = run_children(2, 2, [&](std::size_t) {
    ++touched;
    return std::to_string(::getpid());
  });
  EXPECT_EQ(touched, 0);
  EXPECT_NE(outcomes[0].text, outcomes[1].text);
  EXPECT_NE(outcomes[0].text, std::to_string(::getpid()));
}

TEST(RunChildren, AnExceptionLeavesNoChildBehind) {
  const auto landed = [](std::size_t, const ChildOutcome&) { throw Failure("the disk is full"); };
  const auto work = [](std::size_t i) {
    if (i > 0) ::usleep(30'000'000);
    return std::string();
  };
  EXPECT_THROW(run_children(2, 2, work, {}, ChildUse::once, landed), Failure);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // neither running nor waiting to be reaped
  EXPECT_EQ(errno, ECHILD);
}

TEST(RunChildren, AReusedChildKeepsWhatItLearnedAndACrashLosesOnePiece) {
  for (const int jobs : {1, 3}) {
    int done = 0;
    std::size_t landed = 0;
    const auto outcomes = run_children(
        20, jobs,
        [&](std::size_t i) {
          if (i == 7) ::raise(SIGKILL);  // a sanitizer takes other signals for itself
          if (i == 9) ::_exit(3);
          return std::to_string(++done);
        },
        {}, ChildUse::reused, [&](std::size_t, const ChildOutcome&) { ++landed; });
    EXPECT_EQ(landed, 20U);
    EXPECT_EQ(done, 0);
    int most = 0;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (i == 7 || i == 9) continue;
      ASSERT_EQ(outcomes[i].kind, Kind::ok) << i;
      most = std::max(most, std::stoi(outcomes[i].text));
    }
    EXPECT_GT(most, 1);
    EXPECT_EQ(outcomes[7].kind, Kind::failure);
    EXPECT_THAT(outcomes[7].text, testing::HasSubstr("crashed"));
    EXPECT_EQ(outcomes[9].text, "the simulation ended with exit status 3");
  }
}

TEST(RunChildren, NothingToDoIsDone) {
  EXPECT_TRUE(run_children(0, 4, [](std::size_t) { return std::string(); }).empty());
}

TEST(RunChildren, ExceptionsComeBackAsTheirKind) {
  const auto outcomes = run_children(6, 2, [](std::size_t i) -> std::string {
    switch (i) {
      case 0:
        throw ConfigError("bad file");
      case 1:
        throw Infeasible("too large");
      case 2:
        throw Failure("went wrong");
      case 3:
        throw std::out_of_range("a bug");
      case 4:
        throw 42;
      default:
        return "fine";
    }
  });
  EXPECT_EQ(outcomes[0].kind, Kind::config_error);
  EXPECT_EQ(outcomes[0].text, "bad file");
  EXPECT_EQ(outcomes[1].kind, Kind::infeasible);
  EXPECT_EQ(outcomes[1].text, "too large");
  EXPECT_EQ(outcomes[2].kind, Kind::failure);
  EXPECT_EQ(outcomes[2].text, "went wrong");
  EXPECT_EQ(outcomes[3].kind, Kind::failure);
  EXPECT_EQ(outcomes[3].text, "a bug");
  EXPECT_EQ(outcomes[4].kind, Kind::failure);
  EXPECT_EQ(outcomes[5].kind, Kind::ok);
  EXPECT_EQ(outcomes[5].text, "fine");
}

TEST(RunChildren, ACrashIsNamedAndDoesNotLoseTheOthers) {
  const auto outcomes = run_children(5, 2, [](std::size_t i) -> std::string {
    // A sanitizer's own handler would turn the signal into an exit.
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGABRT, SIG_DFL);
    if (i == 1) std::abort();
    if (i == 2) std::raise(SIGSEGV);
    if (i == 3) ::_exit(7);
    return "fine";
  });
  EXPECT_EQ(outcomes[0].text, "fine");
  EXPECT_EQ(outcomes[1].kind, Kind::failure);
  EXPECT_THAT(outcomes[1].text, HasSubstr(::strsignal(SIGABRT)));
  EXPECT_EQ(outcomes[2].kind, Kind::failure);
  EXPECT_THAT(outcomes[2].text, HasSubstr(::strsignal(SIGSEGV)));
  EXPECT_EQ(outcomes[3].kind, Kind::failure);
  EXPECT_THAT(outcomes[3].text, HasSubstr("exit status 7"));
  EXPECT_EQ(outcomes[4].text, "fine");
}

TEST(RunChildren, LargeAnswersArriveWhole) {
  const auto content = [](std::size_t i) { return std::string(5'000'000 + i, static_cast<char>('a' + i)); };
  const auto outcomes = run_children(3, 3, content);
  for (std::size_t i = 0; i < outcomes.size(); ++i) EXPECT_TRUE(outcomes[i].text == content(i)) << i;
}

TEST(RunChildren, AnAnswerMayBeEmptyOrBinary) {
  EXPECT_EQ(run_child([] { return std::string(); }), "");
  EXPECT_EQ(run_child([] { return std::string("a\0b", 3); }), std::string("a\0b", 3));
}

TEST(RunChildren, ReportsProgressInThisProcess) {
  std::vector<std::size_t> seen;
  run_children(
      5, 2, [](std::size_t) { return std::string(); }, [&](std::size_t done) { seen.push_back(done); });
  EXPECT_THAT(seen, testing::ElementsAre(1, 2, 3, 4, 5));
}

// Pieces in work are waited for, and their answers count; no further piece is begun.
TEST(RunChildren, StopWhenAsked) {
  for (const ChildUse use : {ChildUse::once, ChildUse::reused}) {
    std::vector<std::string> landed;
    run_children(
        1000, 2,
        [](std::size_t i) {
          ::usleep(1000);  // or a child has done all before this process asks
          return std::to_string(i);
        },
        {}, use,
        [&](std::size_t i, ChildOutcome& outcome) {
          EXPECT_EQ(outcome.text, std::to_string(i));
          landed.push_back(std::move(outcome.text));
        },
        [&] { return landed.size() >= 3; });
    EXPECT_GE(landed.size(), 3U);
    EXPECT_LT(landed.size(), 1000U);
  }
}

TEST(RunChild, ThrowsWhatWasThrown) {
  EXPECT_EQ(message_of<ConfigError>([] { run_child([]() -> std::string { throw ConfigError("x"); }); }), "x");
  EXPECT_EQ(message_of<Infeasible>([] { run_child([]() -> std::string { throw Infeasible("y"); }); }), "y");
  EXPECT_THROW(run_child([]() -> std::string { std::abort(); }), Failure);
}

TEST(Rethrow, PutsTheContextFirst) {
  rethrow({Kind::ok, "text"}, "run 1: ");
  EXPECT_EQ(message_of<Infeasible>([] { rethrow({Kind::infeasible, "too large"}, "run 1: "); }), "run 1: too large");
  EXPECT_EQ(message_of<BudgetExceeded>([] { rethrow({Kind::budget_exceeded, "much"}, "run 1: "); }), "run 1: much");
  EXPECT_EQ(message_of<Failure>([] { rethrow({Kind::failure, "z"}); }), "z");
}

TEST(UsableCores, AreAtLeastOne) { EXPECT_GE(usable_cores(), 1); }

}  // namespace
}  // namespace ganymede
