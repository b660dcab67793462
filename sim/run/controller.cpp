#include "sim/run/controller.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/errors.hpp"

namespace ganymede {
namespace {

using OrderedJson = nlohmann::ordered_json;

class OwnPolicy : public Controller {
 public:
  explicit OwnPolicy(const Scenario& scenario)
      : Controller(scenario), random_(scenario.seed, std::string("policy/") + std::string(choice().policy->name)) {}

 private:
  const PolicyChoice& choice() const { return scenario_.policy; }
  Decision ask(const Observation& seen) override {
    const Observation shown = choice().blind ? blinded(seen) : seen;
    return choice().policy->decide({shown, choice().settings, memory_, random_, choice().table.get()});
  }
  PolicyMemory memory_;
  RandomStream random_;
};

/// A child process: a line out, a line in.
class ExternalPolicy : public Controller {
 public:
  explicit ExternalPolicy(const Scenario& scenario) : Controller(scenario) { start(); }
  ~ExternalPolicy() override { stop(); }

 private:
  Decision ask(const Observation& seen) override {
    send(observation_json(scenario_, scenario_.policy.blind ? blinded(seen) : seen) + "\n");
    return parse(receive());
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Failure(fmt::format("{}: the external policy {} {}", scenario_.file, scenario_.policy.command.front(), why));
  }

  void start() {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) fail("cannot be given a pipe");
    std::vector<std::string> words = scenario_.policy.command;
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::signal(SIGPIPE, SIG_IGN);  // a policy that died is told by the write's error
    pid_ = ::fork();
    if (pid_ < 0) fail("cannot be started");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::signal(SIGPIPE, SIG_DFL);
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    in_ = to[1];
    out_ = from[0];
  }

  void stop() {
    ::close(in_);
    ::close(out_);
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  /// Its end of the pipe is closed; its exit status follows shortly.
  std::string death() const {
    for (int tries = 0; tries < 100; ++tries) {
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_) {
        if (info.si_code != CLD_EXITED) return fmt::format("was ended by signal {}", info.si_status);
        if (info.si_status == 127) return "could not be started: is it there, and executable?";
        return fmt::format("ended with exit status {} before it had answered", info.si_status);
      }
      ::usleep(2000);
    }
    return "closed its output before it had answered";
  }

  void send(const std::string& line) {
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t wrote = ::write(in_, line.data() + done, line.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) fail(death());
      done += static_cast<std::size_t>(wrote);
    }
  }

  std::string receive() {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(scenario_.policy.limit.si);
    for (;;) {
      if (const auto newline = buffer_.find('\n'); newline != std::string::npos) {
        std::string line = buffer_.substr(0, newline);
        buffer_.erase(0, newline + 1);
        return line;
      }
      if (buffer_.size() > 1 << 20) fail("wrote more than 1 MiB without the end of a line");
      const double left = std::chrono::duration<double>(end - Clock::now()).count();
      pollfd polled{out_, POLLIN, 0};
      const int got = left <= 0 ? 0 : ::poll(&polled, 1, static_cast<int>(std::min(left * 1000 + 1, 1e9)));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) fail(fmt::format("gave no answer within {}", to_string(scenario_.policy.limit)));
      char bytes[4096];
      const ssize_t count = ::read(out_, bytes, sizeof bytes);
      if (count <= 0) fail(death());
      buffer_.append(bytes, static_cast<std::size_t>(count));
    }
  }

  Decision parse(const std::string& line) const {
    const std::string shown = line.size() > 200 ? line.substr(0, 200) + "..." : line;
    const auto expected = [&](const std::string& what) {
      fail(fmt::format("answered {}, expected {}", shown.empty() ? "an empty line" : shown, what));
    };
    const OrderedJson answer = OrderedJson::parse(line, nullptr, false);
    if (!answer.is_object() || !answer.contains("nodes"))
      expected("one line such as {\"nodes\": {\"pool's name\": 2}}");
    Decision decision{.nodes = std::vector<int>(scenario_.pools.size(), 0)};
    if (!answer["nodes"].is_object()) expected("\"nodes\" as an object from a pool's name to a count");
    for (const auto& [name, count] : answer["nodes"].items()) {
      const auto pool = std::find_if(scenario_.pools.begin(), scenario_.pools.end(),
                                     [&, wanted = name](const ScenarioPool& p) { return p.name == wanted; });
      if (pool == scenario_.pools.end()) expected(fmt::format("a pool that exists instead of \"{}\"", name));
      if (!count.is_number_integer() || count.get<std::int64_t>() < 0 || count.get<std::int64_t>() > 65536)
        expected(fmt::format("a whole number of nodes of \"{}\"", name));
      decision.nodes[static_cast<std::size_t>(pool - scenario_.pools.begin())] = count.get<int>();
    }
    for (const auto& [key, flag] : {std::pair{"elastic", &decision.elastic}, std::pair{"pause", &decision.pause}})
      if (answer.contains(key)) {
        if (!answer[key].is_boolean()) expected(fmt::format("\"{}\" as true or false", key));
        *flag = answer[key].get<bool>();
      }
    for (const auto& [key, share] : {std::pair{"cpus", &decision.cpus}, std::pair{"memory", &decision.memory}})
      if (answer.contains(key)) {
        if (!answer[key].is_number() || !(answer[key].get<double>() > 0 && answer[key].get<double>() <= 1))
          expected(fmt::format("\"{}\" as a share above 0, at most 1", key));
        *share = answer[key].get<double>();
      }
    return decision;
  }

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1;
  std::string buffer_;
};

}  // namespace

Decision Controller::decide(const Observation& seen) {
  Decision decision = ask(seen);
  const auto& pools = scenario_.pools;
  if (decision.nodes.size() != pools.size())
    throw Failure(fmt::format("{}: the policy {} decided on {} pools, there are {}", scenario_.file,
                              scenario_.policy.policy->name, decision.nodes.size(), pools.size()));
  for (std::size_t p = 0; p < pools.size(); ++p)
    if (decision.nodes[p] < 0 || decision.nodes[p] > pools[p].most)
      throw Failure(fmt::format("{}: the policy {} asks for {} nodes of \"{}\", which has at most {}", scenario_.file,
                                scenario_.policy.policy->name, decision.nodes[p], pools[p].name, pools[p].most));
  return decision;
}

std::unique_ptr<Controller> make_controller(const Scenario& scenario) {
  if (!scenario.policy.policy->decide) return std::make_unique<ExternalPolicy>(scenario);
  return std::make_unique<OwnPolicy>(scenario);
}

Observation blinded(const Observation& seen) {
  Observation blind;
  blind.now = seen.now;
  blind.deadline = seen.deadline;
  blind.budget_usd = seen.budget_usd;
  for (const PoolView& pool : seen.pools) {
    PoolView& shown = blind.pools.emplace_back();
    shown.market = pool.market;
    shown.gpus_per_node = pool.gpus_per_node;
    shown.requested = pool.requested;
    shown.most = pool.most;
    shown.ready = pool.ready + pool.noticed;
    shown.starting = pool.starting;
    shown.waiting = pool.waiting;
  }
  return blind;
}

std::string observation_json(const Scenario& scenario, const Observation& seen) {
  OrderedJson out;
  out["now_s"] = seen.now.si;
  out["training"] = seen.training;
  out["done"] = seen.done;
  out["left"] = seen.left;
  out["unit"] = scenario.target == Target::steps ? "steps" : "images";
  out["rate_per_s"] = seen.rate;
  out["training_gpus"] = seen.training_gpus;
  out["step_s"] = seen.step_s;
  for (const auto& [name, share] :
       {std::pair{"gpu_busy", seen.gpu_busy}, std::pair{"exposed_communication", seen.exposed},
        std::pair{"straggler", seen.straggler}, std::pair{"input_stall", seen.input_stall}, std::pair{"cpu", seen.cpu},
        std::pair{"memory", seen.memory}, std::pair{"host_memory", seen.host_memory}})
    out[name] = share;
  out["restart_s"] = seen.restart.si;
  out["boot_s"] = seen.boot.si;
  out["since_durable_s"] = seen.since_durable.si;
  out["spent_usd"] = seen.spent_usd;
  out["deadline_s"] = seen.deadline ? OrderedJson(seen.deadline->si) : OrderedJson(nullptr);
  out["budget_usd"] = seen.budget_usd ? OrderedJson(*seen.budget_usd) : OrderedJson(nullptr);
  for (std::size_t p = 0; p < seen.pools.size(); ++p) {
    const PoolView& pool = seen.pools[p];
    out["pools"][scenario.pools[p].name] = {
        {"market", std::string(to_string(pool.market))},
        {"gpus_per_node", pool.gpus_per_node},
        {"requested", pool.requested},
        {"most", pool.most},
        {"ready", pool.ready},
        {"starting", pool.starting},
        {"waiting", pool.waiting},
        {"noticed", pool.noticed},
        {"refused_for_s", pool.refused_for.si},
        {"lost", pool.lost},
        {"usd_per_hour", pool.usd_per_hour},
        {"speed", pool.speed},
        {"g_per_kwh", pool.g_per_kwh ? OrderedJson(*pool.g_per_kwh) : OrderedJson(nullptr)},
        {"usd_to_enter", pool.usd_to_enter}};
  }
  return out.dump();
}

}  // namespace ganymede
