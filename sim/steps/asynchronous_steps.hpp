#pragma once
// Workers that do not reduce gradients in every step: each steps on its own, and they exchange weights between steps.
// The modes are local SGD, gossip averaging and the asynchronous parameter server.

#include <vector>

#include "calibration/step_model.hpp"
#include "common/units.hpp"
#include "sim/steps/step_process.hpp"
#include "sim/steps/synchronous_step.hpp"

namespace ganymede::sim {

/// Workers that step on their own: each is a synchronous step of one worker.
class IndependentWorkers {
 public:
  IndependentWorkers(const std::vector<const calibration::StepModel*>& models, int prefetch_depth);
  std::size_t size() const { return workers_.size(); }
  /// The next step of a worker, which repeats the recorded step `row`; recorded spans begin at `start`.
  StepOutcome next(std::size_t worker, std::size_t row, double extra_s, Seconds start);
  void record(std::vector<StepSpan>* spans) { spans_ = spans; }

 private:
  std::vector<SynchronousStep> workers_;
  std::vector<Seconds> own_clock_;  // by worker: the sum of its steps, without the time between them
  std::vector<StepSpan>* spans_ = nullptr;
};

/// Local SGD, or federated averaging (McMahan et al., AISTATS 2017): each worker makes `local_steps` steps, then the
/// weights of all are averaged, which takes `averaging` from the last arrival on.
class LocalSteps : public StepProcess {
 public:
  LocalSteps(const std::vector<const calibration::StepModel*>& models, int prefetch_depth, int local_steps,
             Seconds averaging);
  void record(std::vector<StepSpan>* spans) override {
    StepProcess::record(spans);
    workers_.record(spans);
  }
  StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) override;
  int cycle() const override { return local_steps_; }

 private:
  IndependentWorkers workers_;
  int local_steps_;
  Seconds averaging_;
  int done_ = 0;                // steps of the current round
  std::vector<Seconds> clock_;  // by worker
  Seconds now_;                 // time up to which steps have been reported
};

/// Gossip averaging (Lian et al., NeurIPS 2017): after its step a worker averages weights with one neighbour on a ring,
/// left and right in turn, and waits for no other worker. An exchange takes `exchange` from the later arrival on.
class GossipSteps : public StepProcess {
 public:
  GossipSteps(const std::vector<const calibration::StepModel*>& models, int prefetch_depth, Seconds exchange);
  void record(std::vector<StepSpan>* spans) override {
    StepProcess::record(spans);
    workers_.record(spans);
  }
  StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) override;

 private:
  IndependentWorkers workers_;
  Seconds exchange_;
  bool odd_ = false;
  std::vector<Seconds> clock_;
  Seconds now_;
};

/// Transfers between workers and the servers that hold the weights, and the links on their way.
struct ServerTraffic {
  /// A push to, or a fetch from, all servers at once. Each link carries its part after those of earlier transfers; the
  /// transfer ends `latency` after the last of its links is done.
  struct Transfer {
    struct Use {
      std::size_t link;
      Seconds busy;  ///< How long this transfer keeps the link busy.
    };
    std::vector<Use> uses;  ///< Empty: the worker holds all weights itself.
    Seconds alone;          ///< The shortest possible time: at the rate that one connection reaches on free links.
    Seconds latency;
  };
  std::size_t links = 0;
  std::vector<Transfer> push, fetch;  ///< One entry for each worker.
};

/// Asynchronous parameter server (Dean et al., NIPS 2012): a worker pushes its gradients, fetches the weights and goes
/// on; it delays others only where their transfers share links. A step consists of as many updates as there are
/// workers, whichever workers make them, so that it trains as many images as a synchronous step.
class AsyncServerSteps : public StepProcess {
 public:
  AsyncServerSteps(const std::vector<const calibration::StepModel*>& models, int prefetch_depth, ServerTraffic traffic);
  void record(std::vector<StepSpan>* spans) override {
    StepProcess::record(spans);
    independent_.record(spans);
  }
  StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) override;
  double staleness() const override;

 private:
  struct Worker {
    Seconds clock;             // when its fetch ended and the next update begins
    Seconds push;              // when the update is computed and the push begins
    Seconds pushed;            // when the servers have received it and the fetch begins
    std::int64_t version = 0;  // number of updates that the servers had when it fetched
    WorkerStep parts;          // where the time of the current update went
    enum class State { idle, pushing, fetching } state = State::idle;
    Seconds next_transfer() const { return state == State::fetching ? pushed : push; }
  };
  Seconds carry(const ServerTraffic::Transfer& transfer, Seconds start);
  void fetch(std::size_t who, StepOutcome& step);

  IndependentWorkers independent_;
  ServerTraffic traffic_;
  std::vector<Worker> workers_;
  std::vector<Seconds> free_;  // by link: when it has carried all transfers so far
  Seconds now_;
  std::int64_t updates_ = 0;
  double stale_ = 0;  // sum of the updates' staleness
};

}  // namespace ganymede::sim
