#include <cmath>
#include <exception>
#include <simgrid/s4u.hpp>

#include "common/errors.hpp"
#include "sim/engine/simgrid_flows.hpp"
#include "sim/engine/simgrid_messages.hpp"
#include "sim/engine/simgrid_module.hpp"

namespace ganymede::sim {
namespace {

constexpr int kLimits = 8;  // different limits of flows: those of the protocols of all jobs
constexpr double kDiskUnitsPerSecond = 1e9;

namespace s4u = simgrid::s4u;

class DiskRead final : public LiveSimulation::Read {
 public:
  explicit DiskRead(s4u::IoPtr io) : io_(std::move(io)) {}
  double wait() override {
    io_->wait();
    return io_->get_finish_time();
  }

 private:
  s4u::IoPtr io_;
};

class SimGridLive final : public LiveSimulation {
 public:
  SimGridLive(const Network& network, std::size_t stores)
      : flows_(network, kLimits, stores), engine_(network, &flows_), news_(s4u::Semaphore::create(0)) {}

  Process spawn(int endpoint, std::function<void()> code) override {
    const auto run = [this, code = std::move(code)] {
      try {
        code();
      } catch (const simgrid::ForcefulKillException&) {
        throw;
      } catch (...) {
        if (!failure_) failure_ = std::current_exception();
        s4u::Actor::kill_all();
      }
    };
    return s4u::Actor::create("process", flows_.host(endpoint), run)->get_pid();
  }

  void kill(Process process) override {
    if (const auto actor = s4u::Actor::by_pid(process)) actor->kill();
  }

  void run() override {
    try {
      flows_.run();
    } catch (const Failure&) {  // flows that never end, because a process threw
      if (!failure_) throw;
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  double now() const override { return s4u::Engine::get_clock(); }
  double messages() const override { return messages_; }

  void sleep_until(double at_s) override {
    if (at_s > now()) s4u::this_actor::sleep_until(at_s);
  }

  void compute(double seconds) override {
    if (seconds > 0) s4u::this_actor::execute(seconds);
  }

  std::vector<CollectiveTimes> communicate(Communicator communicator) override {
    struct UnderWay {  // outlives the process if that is killed
      Communicator communicator;
      std::vector<CollectiveTimes> times;
      s4u::SemaphorePtr done = s4u::Semaphore::create(0);
    };
    const auto all = std::make_shared<UnderWay>();
    all->communicator = std::move(communicator);
    engine_.start(all->communicator, [all](std::vector<CollectiveTimes> times) {
      all->times = std::move(times);
      all->done->release();
    });
    all->done->acquire();
    for (const CollectiveTimes& call : all->times) messages_ += static_cast<double>(call.messages);
    return std::move(all->times);
  }

  std::shared_ptr<Read> start_read(std::size_t store, double seconds) override {
    const auto units = static_cast<sg_size_t>(std::llround(std::max(1.0, seconds * kDiskUnitsPerSecond)));
    return std::make_shared<DiskRead>(flows_.disk(store)->read_async(units));
  }

  void listen(double until_s) override {
    if (std::isinf(until_s))
      news_->acquire();
    else if (until_s > now())
      news_->acquire_timeout(until_s - now());
    while (!news_->would_block()) news_->acquire();
  }

  void tell() override { news_->release(); }

 private:
  SimGridFlows flows_;
  SimGridMessages engine_;
  s4u::SemaphorePtr news_;
  std::exception_ptr failure_;
  double messages_ = 0;
};

std::unique_ptr<CommunicationEngine> make_engine(const Network& fabric) {
  return std::make_unique<SimGridMessages>(fabric);
}

std::unique_ptr<LiveSimulation> make_live(const Network& network, std::size_t stores) {
  return std::make_unique<SimGridLive>(network, stores);
}

}  // namespace
}  // namespace ganymede::sim

extern "C" const ganymede::sim::SimGridModule ganymede_simgrid_module = {
    GANYMEDE_VERSION, ganymede::sim::make_engine, ganymede::sim::make_live, ganymede::sim::read_simgrid_platform};
