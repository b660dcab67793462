// The spans of steps agree with the steps' accounts, and no worker does two things at once.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "common/units.hpp"
#include "sim/steps/asynchronous_steps.hpp"
#include "sim/steps/component_split.hpp"
#include "sim/steps/synchronous_step.hpp"

namespace ganymede::sim {
namespace {

using namespace literals;
using Kind = StepSpan::Kind;

/// A model with gaps, host work, a slow input and varying samples, so that every kind of span occurs.
calibration::StepModel model(double factor) {
  calibration::StepModel out;
  out.samples = 2;
  const auto add = [&](const char* name, const char* network, calibration::Stream stream, double gap_s,
                       double seconds) {
    out.phases.push_back(
        {name, network, stream, {gap_s, gap_s}, {factor * seconds, 1.5 * factor * seconds}, {0, 0}, 0});
  };
  add("load", "", calibration::Stream::input, 0, 0.022);
  add("discriminator.backward", "discriminator", calibration::Stream::compute, 0.001, 0.003);
  add("discriminator.update", "discriminator", calibration::Stream::compute, 0.0005, 0.001);
  add("generator.backward", "generator", calibration::Stream::compute, 0, 0.004);
  add("generator.update", "generator", calibration::Stream::compute, 0, 0.001);
  out.tail_s = {0.0003, 0.0003};
  out.buckets = {{"discriminator", 1'000'000, 1}, {"generator", 1'000'000, 3}};
  return out;
}

Reduce lasts(Seconds time) {
  return [=](std::span<const Reduction> reductions) {
    std::vector<std::vector<Seconds>> done;
    Seconds free;
    for (const auto& reduction : reductions) {
      free = std::max(free, *std::max_element(reduction.arrivals.begin(), reduction.arrivals.end())) + time;
      done.emplace_back(reduction.arrivals.size(), free);
    }
    return done;
  };
}

class Spans : public testing::Test {
 protected:
  /// Six steps of `process`, of which the last four are recorded.
  void record(StepProcess& process) {
    const std::size_t workers = 4;
    for (int step = 0; step < 6; ++step) {
      if (step == 2) process.record(&spans_);
      std::vector<std::size_t> rows;
      for (std::size_t w = 0; w < workers; ++w) rows.push_back((w + static_cast<std::size_t>(step)) % 2);
      const std::vector<double> extra_s = {0, step == 3 ? 0.002 : 0, 0, 0};
      const StepOutcome outcome = process.next(rows, extra_s);
      if (step < 2) continue;
      duration_ += outcome.duration.si;
      for (const WorkerStep& part : outcome.workers) {
        sums_[Kind::compute] += part.compute.si;
        sums_[Kind::exposed] += part.exposed_communication.si;
        sums_[Kind::straggler] += part.straggler.si;
        sums_[Kind::input_stall] += part.input_stall.si;
      }
    }
    process.record(nullptr);
    const std::size_t before = spans_.size();
    process.next(std::vector<std::size_t>(workers, 0));
    EXPECT_EQ(spans_.size(), before) << "recorded although nobody asked any more";
  }

  double sum(std::initializer_list<Kind> kinds) const {
    double out = 0;
    for (const StepSpan& span : spans_)
      if (std::find(kinds.begin(), kinds.end(), span.kind) != kinds.end()) out += (span.end - span.start).si;
    return out;
  }

  void expect_apart() const {
    std::map<std::pair<std::size_t, int>, std::vector<const StepSpan*>> tracks;
    for (const StepSpan& span : spans_) {
      EXPECT_LT(span.start, span.end);
      tracks[{span.worker, span.kind == Kind::communication ? 1 : span.kind == Kind::input ? 2 : 0}].push_back(&span);
    }
    EXPECT_GE(tracks.size(), 8U);
    for (auto& [where, of] : tracks) {
      std::sort(of.begin(), of.end(), [](auto* a, auto* b) { return a->start < b->start; });
      for (std::size_t i = 1; i < of.size(); ++i)
        EXPECT_LE(of[i - 1]->end.si, of[i]->start.si + 1e-12)
            << "worker " << where.first << ": " << of[i - 1]->name << ", " << of[i]->name;
    }
  }

  void expect_accounts() const {
    EXPECT_NEAR(sum({Kind::compute, Kind::host}), sums_.at(Kind::compute), 1e-9);
    EXPECT_NEAR(sum({Kind::exposed}), sums_.at(Kind::exposed), 1e-9);
    EXPECT_NEAR(sum({Kind::straggler}), sums_.at(Kind::straggler), 1e-9);
    EXPECT_NEAR(sum({Kind::input_stall}), sums_.at(Kind::input_stall), 1e-9);
    EXPECT_GT(sum({Kind::input_stall}), 0);
    EXPECT_GT(sum({Kind::communication}), 0);
    EXPECT_GT(sum({Kind::input}), 0);
  }

  calibration::StepModel fast_ = model(1), slow_ = model(1.2);
  std::vector<const calibration::StepModel*> models_ = {&fast_, &slow_, &fast_, &fast_};
  std::vector<StepSpan> spans_;
  std::map<Kind, double> sums_;
  double duration_ = 0;
};

TEST_F(Spans, OfSynchronousStepsFillThem) {
  SynchronousStep process(models_, flat(4), {}, lasts(5_ms));
  record(process);
  expect_apart();
  expect_accounts();
  EXPECT_NEAR(sum({Kind::compute, Kind::host, Kind::exposed, Kind::straggler, Kind::input_stall}), 4 * duration_, 1e-9);
}

TEST_F(Spans, OfLocalSteps) {
  LocalSteps process(models_, 2, 2, 3_ms);
  record(process);
  expect_apart();
  expect_accounts();
}

TEST_F(Spans, OfGossip) {
  GossipSteps process(models_, 2, 3_ms);
  record(process);
  expect_apart();
  expect_accounts();
}

TEST_F(Spans, OfAnAsynchronousServer) {
  ServerTraffic traffic{2, {}, {}};  // one server; what enters it takes 2 ms, and what leaves it
  traffic.push.assign(models_.size(), {{{0, 2_ms}}, {}, {}});
  traffic.fetch.assign(models_.size(), {{{1, 2_ms}}, {}, {}});
  AsyncServerSteps process(models_, 2, traffic);
  record(process);
  expect_apart();
  // Updates are under way when recording begins and ends, so only the sum over traffic between workers and server is
  // known: a push and a fetch for each update, at least 2 ms each and longer behind others, during which the worker
  // waits.
  EXPECT_GE(sum({Kind::communication}), 4 * 4 * 2 * 0.002);
  EXPECT_NEAR(sum({Kind::communication}), sum({Kind::exposed}), 1e-9);
}

TEST_F(Spans, OfSplitNetworks) {
  ComponentSplit process(models_, 2, 1_ms, {4_ms, 4_ms});
  record(process);
  EXPECT_GT(sum({Kind::compute}), 0);
  EXPECT_GT(sum({Kind::communication}), 0);
  for (const StepSpan& span : spans_) {
    if (span.kind == Kind::input) {
      EXPECT_EQ(span.worker % 2, 0U);
    }
    if (span.name.starts_with("generator.")) {
      EXPECT_EQ(span.worker % 2, 1U);
    }
  }
}

}  // namespace
}  // namespace ganymede::sim
