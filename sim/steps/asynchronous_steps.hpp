#pragma once
// Workers that do not reduce gradients in every step: each steps on its own, and what they exchange is between steps.

#include <memory>
#include <vector>

#include "calibration/step_model.hpp"
#include "common/units.hpp"
#include "sim/steps/step_process.hpp"
#include "sim/steps/synchronous_step.hpp"

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

/// What the transfers between workers and the servers of the weights ask of the links on their way.
struct ServerTraffic {
  /// A push or a fetch, to or from all servers at once. Each of its links carries its part when it has carried those
  /// that came before; the transfer has ended when the last of its links is done, and `latency` later.
  struct Transfer {
    struct Use {
      std::size_t link;
      Seconds busy;  ///< for this transfer
    };
    std::vector<Use> uses;  ///< empty: the worker holds all weights itself
    Seconds alone;          ///< at least so long, however free the links are: what one connection reaches
    Seconds latency;
  };
  std::size_t links = 0;
  std::vector<Transfer> push, fetch;  ///< by worker
};

/// Asynchronous parameter server (Dean et al., NIPS 2012): a worker pushes its gradients, fetches the weights and goes
/// on, waiting for no other but where their transfers share links. A step is as many updates as there are workers, so
/// that it trains as many images as a synchronous one.
class AsyncServerSteps : public StepProcess {
 public:
  AsyncServerSteps(const std::vector<const StepModel*>& models, int prefetch_depth, ServerTraffic traffic);
  void record(std::vector<StepSpan>* spans) override {
    StepProcess::record(spans);
    lone_.record(spans);
  }
  StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) override;
  double staleness() const override;

 private:
  struct Worker {
    Seconds clock;             // when its fetch has ended and it starts the next update
    Seconds push;              // when it has computed that, and starts to push
    Seconds pushed;            // when the servers have it, and it starts to fetch
    std::int64_t version = 0;  // updates of the servers when it fetched
    WorkerStep parts;          // of the update under way
    enum class State { idle, pushing, fetching } state = State::idle;
    Seconds at() const { return state == State::fetching ? pushed : push; }  // its next transfer starts
  };
  Seconds carry(const ServerTraffic::Transfer& transfer, Seconds start);
  void fetch(std::size_t who, StepOutcome& step);

  LoneWorkers lone_;
  ServerTraffic traffic_;
  std::vector<Worker> workers_;
  std::vector<Seconds> free_;  // by link: when it has carried what came so far
  Seconds now_;
  std::int64_t updates_ = 0;
  double stale_ = 0;
};

}  // namespace ganymede
