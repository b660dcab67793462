// The command line of `train --policy`: what it refuses. tests/cli runs it.

#include "rehearsal/elastic_training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"

namespace ganymede::rehearsal {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ElasticTraining, RefusesOptionsThatContradictEachOther) {
  const auto expect_refused = [](const auto& change, const std::string& words) {
    kernel::SessionOptions session;
    session.checkpoint = "run";
    ElasticOptions options;
    options.policy = "fixed";
    options.plan = "plan.json";
    change(session, options);
    EXPECT_THAT([&] { train_elastically(session, options, {}, "table", [](const std::string&) {}); },
                ThrowsMessage<ConfigError>(HasSubstr(words)));
  };
  expect_refused([](auto&, auto& o) { o.plan.clear(); }, "--policy, --plan: expected both");
  expect_refused([](auto& s, auto&) { s.checkpoint.clear(); }, "--policy: expected --checkpoint too");
  expect_refused([](auto& s, auto&) { s.resume = true; }, "--resume: found --policy too");
  expect_refused([](auto& s, auto&) { s.gpus = 2; }, "--gpus: found --policy too");
  expect_refused([](auto& s, auto&) { s.trace = "t.json"; }, "--trace: found --policy too");
  expect_refused([](auto&, auto& o) { o.launcher = "mpirun -n 2"; }, "--launcher: found \"mpirun -n 2\"");
  expect_refused([](auto&, auto&) {}, "plan.json");
}

}  // namespace
}  // namespace ganymede::rehearsal
