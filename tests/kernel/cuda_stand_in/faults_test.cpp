// Every call of CUDA's libraries fails once: the training must end with an error, give everything back, and not wait
// for ever.

#include "common/errors.hpp"
#include "kept_in_memory.hpp"
#include "small_training.hpp"

namespace ganymede::kernel::stand_in {
namespace {

constexpr int kSteps = 3;  // one call by call, one captured, one replayed

TEST(Faults, OfEveryCallEndTheTrainingAndLeaveNothing) {
  PlansInMemory plans;
  const CudaOptions options{.precision = Precision::bf16, .plans = &plans};
  int before_end = 0, all = 0;
  {
    const Session session;
    {
      SmallTraining training(options, nullptr);
      training.run(kSteps);
      before_end = calls(0);
    }
    all = calls(0);
  }
  EXPECT_GT(before_end, 100);
  for (int failing = 1; failing <= all; ++failing) {
    SCOPED_TRACE(failing);
    plans.all.clear();
    const Session session({.failing_call = failing});
    bool threw = false;
    try {
      SmallTraining(options, nullptr).run(kSteps);
    } catch (const Failure&) {
      threw = true;
    }
    // Errors of what gives memory back, or ends, are ignored. Where cuDNN has no plan for a convolution and what
    // follows, whatever the reason, two kernels stand in.
    const std::string name = failed_call();
    EXPECT_FALSE(name.empty());
    const bool gives_back = name.find("Free") != name.npos || name.find("Destroy") != name.npos;
    const bool at_planning =
        name.starts_with("cudnnBackend") && name != "cudnnBackendExecute" && name.find("variant pack") == name.npos;
    EXPECT_EQ(threw, failing <= before_end && !gives_back && !at_planning) << name;
  }
}

TEST(Faults, OfMemorySayHowMuchIsFreeAndClearTheError) {
  const Session session({.memory_bytes = std::size_t{64} << 20});
  const auto backend = open({});
  EXPECT_THAT([&] { backend->ops->allocate(std::size_t{64} << 20); },
              testing::ThrowsMessage<Infeasible>(testing::HasSubstr("a smaller --batch would fit")));
  const Buffer memory = backend->ops->allocate(64);
  EXPECT_NO_THROW(backend->ops->fill({memory.floats(), 4, 4}, 1));
}

}  // namespace
}  // namespace ganymede::kernel::stand_in
