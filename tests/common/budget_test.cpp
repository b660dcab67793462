#include "common/budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/errors.hpp"
#include "common/json_parse.hpp"
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

// A mebibyte of members of objects is estimated before it is read: {"a":1}, is 618 bytes with the 6 of each character.
TEST(Budget, ADocumentThatWouldTakeMoreIsNotRead) {
  std::string text = "[";
  while (text.size() < (1U << 20U)) text += R"({"a":1},)";
  text.back() = ']';
  const double objects = static_cast<double>(text.size() - 1) / 8;
  EXPECT_NEAR(memory_to_read(text).si, objects * (8 * 6 + 160 + 2 * 55 + 200 + 100), 200);
  EXPECT_EQ(memory_to_read(R"("a,[{:\",")").si, 10 * 6 + 2 * 55) << "what stands in a text is no value";
  const auto reads = [&](double bound) {
    return run_child([&] {
      set_memory_budget(Bytes{bound});
      begin_memory_budget(/*trains=*/true);
      return std::to_string(parse_document(text, "a.json").size());
    });
  };
  EXPECT_EQ(reads(90e6), std::to_string(static_cast<int>(objects)));
  EXPECT_THAT(message_of<BudgetExceeded>([&] { reads(70e6); }),
              testing::AllOf(HasSubstr("a.json: reading it would take about "), HasSubstr("--max-memory allows more")));
}

}  // namespace
}  // namespace ganymede
