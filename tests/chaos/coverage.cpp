// Measures on random scenarios how often the stated 95 % sampling interval contains the time that message fidelity
// gives. Some have autocorrelated traces, some rare stalls.
//
//   coverage [SCENARIOS] [JOBS] [FIRST-SEED]
//
// Each scenario is simulated twice: message by message with a seed of its own, and sampled. Exits with 1 if less than
// 93 % of the intervals hold.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/random.hpp"
#include "sim/run/simulate.hpp"
#include "support/made_up.hpp"

namespace ganymede::chaos {
namespace {
struct Case {
  std::string kind;
  traces::StepTrace trace;
  Json scenario;
};

Case random_case(std::uint64_t seed) {
  RandomStream random(seed, "bench/coverage");
  Case made;
  const double spread = 0.02 + 0.2 * random.uniform();
  constexpr double kCorrelations[] = {0, 0.4, 0.8};
  const double correlation = kCorrelations[random.below(3)];
  const bool stalls = random.below(3) == 0;
  made.kind = fmt::format("AR(1) {}{}", correlation, stalls ? ", rare stalls" : "");
  std::vector<double> scale;
  double state = random.normal();
  const std::uint64_t samples = 100 + random.below(300);
  for (std::uint64_t i = 0; i < samples; ++i) {
    double factor = std::max(0.3, 1 + spread * state);
    if (stalls && random.uniform() < 0.006) factor += 5 + 10 * random.uniform();
    scale.push_back(1e-3 * factor);
    state = correlation * state + std::sqrt(1 - correlation * correlation) * random.normal();
  }
  made.trace = made_up_trace(scale);
  const auto nodes = static_cast<int>(1 + random.below(4));
  made.scenario = {
      {"schema", "ganymede.scenario/1"},
      {"workload",
       {{"trace", "t.json"}, {"batch_per_gpu", 64}, {"steps", static_cast<std::int64_t>(100 + random.below(2000))}}},
      {"platform", {{"catalog", "lab.json"}, {"region", "room-1"}, {"instance", "one"}, {"nodes", nodes}}},
      {"synchronization",
       {{"scheme", random.below(2) == 0 ? "ring" : "recursive-doubling"}, {"overlap", random.below(2) == 0}}},
      {"seed", seed}};
  return made;
}

/// The difference of both times, in half-widths of the interval; at most 1 in absolute value if the interval holds.
double deviation(std::uint64_t seed, const std::filesystem::path& folder) {
  const Case made = random_case(seed);
  const auto here = folder / std::to_string(seed);
  std::filesystem::create_directories(here);
  const auto put = [&](const char* name, const std::string& text) {
    FILE* file = std::fopen((here / name).c_str(), "w");
    std::fputs(text.c_str(), file);
    std::fclose(file);
  };
  put("t.json", traces::write_step_trace(made.trace));
  put("lab.json", made_up_platform());
  put("scenario.json", made.scenario.dump());
  const sim::Result message =
      sim::simulate(sim::load_scenario(here / "scenario.json", {{"/fidelity/mode", "message"}}));
  const sim::Result sampled = sim::simulate(sim::load_scenario(here / "scenario.json"));
  std::filesystem::remove_all(here);
  const double half = (sampled.sampling_interval_s.high - sampled.sampling_interval_s.low) / 2;
  const double off = message.total.si - sampled.total.si;
  return half > 0 ? off / half : 0;
}

int measure(int count, int jobs, std::uint64_t first) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("coverage-{}", first);
  const auto outcomes = run_children(static_cast<std::size_t>(count), jobs,
                                     [&](std::size_t i) { return fmt::format("{}", deviation(first + i, folder)); });
  std::filesystem::remove_all(folder);
  std::map<std::string, std::pair<int, int>> by_kind;
  int held = 0;
  double sum = 0, square = 0;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    rethrow(outcomes[i], fmt::format("seed {}: ", first + i));
    const double off = std::strtod(outcomes[i].text.c_str(), nullptr);
    const bool inside = std::abs(off) <= 1;
    held += inside;
    sum += off;
    square += off * off;
    auto& [of_kind, all] = by_kind[random_case(first + i).kind];
    of_kind += inside;
    ++all;
  }
  for (const auto& [kind, counts] : by_kind)
    fmt::print("{:<28} {:>5} of {:>5}  {:.1f} %\n", kind, counts.first, counts.second,
               100.0 * counts.first / counts.second);
  fmt::print("{:<28} {:>5} of {:>5}  {:.1f} %\n", "all", held, count, 100.0 * held / count);
  fmt::print("message less sampled, in half-widths: mean {:.3f}, root mean square {:.3f} (0.51 if exact)\n",
             sum / count, std::sqrt(square / count));
  return held >= 0.93 * count ? 0 : 1;
}

}  // namespace
}  // namespace ganymede::chaos

int main(int argc, char** argv) {
  const auto number = [&](int at, long default_value) {
    return argc > at ? std::strtol(argv[at], nullptr, 10) : default_value;
  };
  return ganymede::chaos::measure(static_cast<int>(number(1, 2000)), static_cast<int>(number(2, 2)),
                                  static_cast<std::uint64_t>(number(3, 1)));
}
