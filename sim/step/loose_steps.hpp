#pragma once
// Workers that do not reduce gradients in every step: each steps on its own, and what they exchange is between steps.

#include <memory>
#include <vector>

#include "common/units.hpp"
#include "sim/step/step_model.hpp"
#include "sim/step/step_process.hpp"
#include "sim/step/synchronous_step.hpp"

namespace ganymede {

/// Workers on their own: a synchronous step of one each.
class LoneWorkers {
 public:
  LoneWorkers(const std::vector<const StepModel*>& models, int prefetch_depth);
  std::size_t size() const { return workers_.size(); }
  /// Its spans, if any are wanted, begin at `start`.
  StepOutcome next(std::size_t worker, std::size_t row, double extra_s, Seconds start);
  void record(std::vector<StepSpan>* spans) { spans_ = spans; }

 private:
  std::vector<SynchronousStep> workers_;
  std::vector<Seconds> own_clock_;  // by worker: the steps it has made, without what came between them
  std::vector<StepSpan>* spans_ = nullptr;
};

/// Local SGD, or federated averaging (McMahan et al., AISTATS 2017): `local_steps` steps each, then the weights of all
/// are averaged in `averaging` seconds from the last arrival on.
class LocalSteps : public StepProcess {
 public:
  LocalSteps(const std::vector<const StepModel*>& models, int prefetch_depth, int local_steps, Seconds averaging);
  void record(std::vector<StepSpan>* spans) override {
    StepProcess::record(spans);
    workers_.record(spans);
  }
  StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) override;
  int cycle() const override { return local_steps_; }

 private:
  LoneWorkers workers_;
  int local_steps_;
  Seconds averaging_;
  int done_ = 0;                // of the round
  std::vector<Seconds> clock_;  // by worker
  Seconds now_;                 // up to which steps have been reported
};

/// Gossip averaging: after its step a worker averages weights with one neighbour on a ring, left and right in turns,
/// and waits for nobody else (Lian et al., NeurIPS 2017). An exchange takes `exchange` seconds from the later of the
/// two on.
class GossipSteps : public StepProcess {
 public:
  GossipSteps(const std::vector<const StepModel*>& models, int prefetch_depth, Seconds exchange);
  void record(std::vector<StepSpan>* spans) override {
    StepProcess::record(spans);
    workers_.record(spans);
  }
  StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) override;

 private:
  LoneWorkers workers_;
  Seconds exchange_;
  bool odd_ = false;
  std::vector<Seconds> clock_;
  Seconds now_;
};

/// Asynchronous parameter server (Dean et al., NIPS 2012): a worker pushes its gradients, fetches the weights and goes
/// on, waiting for no other. The server's link is the shared resource: pushes queue on its way in, fetches on its way
/// out, `transfer` seconds each. A step is as many updates as there are workers, so that it trains as many images as a
/// synchronous one.
class AsyncServerSteps : public StepProcess {
 public:
  AsyncServerSteps(const std::vector<const StepModel*>& models, int prefetch_depth, Seconds transfer);
  void record(std::vector<StepSpan>* spans) override {
    StepProcess::record(spans);
    lone_.record(spans);
  }
  StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) override;
  double staleness() const override;

 private:
  struct Worker {
    Seconds clock;             // when its fetch has ended and it starts the next update
    Seconds push;              // when it will have computed that, and wants to push
    std::int64_t version = 0;  // updates of the server when it fetched
    WorkerStep parts;          // of the update under way
    bool computing = false;
  };
  LoneWorkers lone_;
  Seconds transfer_;
  std::vector<Worker> workers_;
  Seconds in_free_, out_free_;
  Seconds now_;
  std::int64_t updates_ = 0;
  double stale_ = 0;
};

}  // namespace ganymede
