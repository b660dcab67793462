#include "common/budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "support/errors.hpp"
#include "support/when.hpp"

namespace ganymede {
namespace {

using testing::HasSubstr;

TEST(Budget, WorkBeyondItIsRefusedByFileAndKey) {
  EXPECT_THAT(message_of<BudgetExceeded>([] {
                run_child([] {
                  set_work_budget(3);
                  Work work;
                  for (int i = 0; i < 3; ++i) work.spend("a.json", "/jobs");
                  Work().spend("a.json", "/jobs");  // another simulation has a bound of its own
                  work.spend("a.json", "/faults");
                  return std::string("done");
                });
              }),
              "a.json: /faults: more than 3 events would be simulated; --max-work allows more");
}

// A child has the bound, and so have its children, each for itself; a training is not held to it by the system.
TEST(Budget, MemoryBeyondItIsRefused) {
  NOT_SANITIZED("the sanitizers reserve terabytes");
  const auto takes = [](bool trains, std::size_t bytes) {
    return run_child([=] {
      set_memory_budget(Bytes{256e6});
      begin_memory_budget(trains);
      return run_child([&] { return std::to_string(std::vector<char>(bytes, 1).size()); });
    });
  };
  EXPECT_EQ(takes(false, 100'000'000), "100000000");
  EXPECT_EQ(takes(true, 400'000'000), "400000000");
  EXPECT_EQ(run_child([] {
              set_memory_budget(Bytes{256e6});
              begin_memory_budget(false);
              reserve_beyond_budget(Bytes{300e6});
              return std::to_string(std::vector<char>(400'000'000, 1).size());
            }),
            "400000000");
  EXPECT_THAT(message_of<BudgetExceeded>([&] { takes(false, 400'000'000); }),
              testing::AllOf(HasSubstr("more than 2"), HasSubstr("memory would be needed; --max-memory allows more")));
}

}  // namespace
}  // namespace ganymede
