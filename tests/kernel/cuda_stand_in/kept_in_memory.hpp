#pragma once
// For the tests: what trainings keep for later ones, in memory.

#include <map>
#include <string>
#include <vector>

#include "kernel/ops/cuda/cuda_backend.hpp"

namespace ganymede::kernel::stand_in {

class ChoicesInMemory final : public AlgorithmChoices {
 public:
  std::vector<TimedAlgorithm> find(const std::string& key) override {
    const auto found = all.find(key);
    return found != all.end() ? found->second : std::vector<TimedAlgorithm>();
  }
  void keep(const std::string& key, const std::vector<TimedAlgorithm>& timed) override { all[key] = timed; }
  std::map<std::string, std::vector<TimedAlgorithm>> all;
};

class PlansInMemory final : public KeptPlans {
 public:
  std::string find(const std::string& key) override {
    const auto found = all.find(key);
    return found != all.end() ? found->second : std::string();
  }
  void keep(const std::string& key, const std::string& text) override { all[key] = text; }
  std::map<std::string, std::string> all;
};

}  // namespace ganymede::kernel::stand_in
