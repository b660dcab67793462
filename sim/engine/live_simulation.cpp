#include "sim/engine/live_simulation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <simgrid/s4u.hpp>

#include "common/errors.hpp"
#include "sim/engine/communication_engine.hpp"
#include "sim/engine/simgrid_flows.hpp"

namespace ganymede::sim {
namespace {

constexpr int kLimits = 8;  // different limits of flows: those of the protocols of all jobs
constexpr double kDiskUnitsPerSecond = 1e9;

}  // namespace

class LiveSimulation::Read {
 public:
  explicit Read(simgrid::s4u::IoPtr io) : io_(std::move(io)) {}
  simgrid::s4u::IoPtr io_;
};

class LiveSimulation::Implementation {
 public:
  Implementation(const Network& network, std::size_t stores)
      : flows(network, kLimits, stores), engine(network, flows), news(simgrid::s4u::Semaphore::create(0)) {}

  SimGridFlows flows;
  CommunicationEngine engine;
  simgrid::s4u::SemaphorePtr news;
  std::exception_ptr failure;
};

LiveSimulation::LiveSimulation(const Network& network, std::size_t stores)
    : implementation_(std::make_unique<Implementation>(network, stores)) {}
LiveSimulation::~LiveSimulation() = default;

LiveSimulation::Process LiveSimulation::spawn(int endpoint, std::function<void()> code) {
  const auto run = [this, code = std::move(code)] {
    try {
      code();
    } catch (const simgrid::ForcefulKillException&) {
      throw;
    } catch (...) {
      if (!implementation_->failure) implementation_->failure = std::current_exception();
      simgrid::s4u::Actor::kill_all();
    }
  };
  return simgrid::s4u::Actor::create("process", implementation_->flows.host(endpoint), run)->get_pid();
}

void LiveSimulation::kill(Process process) {
  if (const auto actor = simgrid::s4u::Actor::by_pid(process)) actor->kill();
}

void LiveSimulation::run() {
  try {
    implementation_->flows.run();
  } catch (const Failure&) {  // flows that never end, because a process threw
    if (!implementation_->failure) throw;
  }
  if (implementation_->failure) std::rethrow_exception(implementation_->failure);
}

double LiveSimulation::now() const { return simgrid::s4u::Engine::get_clock(); }

void LiveSimulation::sleep_until(double at_s) {
  if (at_s > now()) simgrid::s4u::this_actor::sleep_until(at_s);
}

void LiveSimulation::compute(double seconds) {
  if (seconds > 0) simgrid::s4u::this_actor::execute(seconds);
}

std::vector<CollectiveTimes> LiveSimulation::communicate(Communicator communicator) {
  struct UnderWay {  // outlives the process if that is killed
    Communicator communicator;
    std::vector<CollectiveTimes> times;
    simgrid::s4u::SemaphorePtr done = simgrid::s4u::Semaphore::create(0);
  };
  const auto all = std::make_shared<UnderWay>();
  all->communicator = std::move(communicator);
  implementation_->engine.start(all->communicator, [all](std::vector<CollectiveTimes> times) {
    all->times = std::move(times);
    all->done->release();
  });
  all->done->acquire();
  for (const CollectiveTimes& call : all->times) messages_ += static_cast<double>(call.messages);
  if (messages_ > kMaxMessages)
    throw Infeasible(
        fmt::format("message fidelity has simulated {:g} messages until second {:g}, expected at most "
                    "{:g} in all: the jobs need fewer steps, or the mode \"sampled\"",
                    messages_, now(), kMaxMessages));
  return std::move(all->times);
}

std::shared_ptr<LiveSimulation::Read> LiveSimulation::start_read(std::size_t store, double seconds) {
  const auto units = static_cast<sg_size_t>(std::llround(std::max(1.0, seconds * kDiskUnitsPerSecond)));
  return std::make_shared<Read>(implementation_->flows.disk(store)->read_async(units));
}

double LiveSimulation::wait(Read& read) {
  read.io_->wait();
  return read.io_->get_finish_time();
}

void LiveSimulation::listen(double until_s) {
  if (std::isinf(until_s))
    implementation_->news->acquire();
  else if (until_s > now())
    implementation_->news->acquire_timeout(until_s - now());
  while (!implementation_->news->would_block()) implementation_->news->acquire();
}

void LiveSimulation::tell() { implementation_->news->release(); }

}  // namespace ganymede::sim
