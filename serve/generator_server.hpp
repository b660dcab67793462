#pragma once
// Answers requests for images over HTTP: batches of a generator that stays in memory. docs/serving.md describes the
// routes.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede::serve {

struct GeneratorOptions {
  std::string listen = "127.0.0.1:8080";
  std::string model = {};    ///< its name
  std::int64_t version = 0;  ///< steps of training
  int largest_batch = 8;
  Seconds window{0};    ///< how long the first of a batch waits for others while nothing is drawn
  int queue = 200;      ///< requests that may wait, at most kernel::kMostWaiting; more are refused
  Seconds timeout{30};  ///< a request that has waited for so long is given up
};

class GeneratorServer {
 public:
  /// Draws a PNG for each seed; called by one thread.
  using Draw = std::function<std::vector<std::string>(std::span<const std::uint64_t> seeds)>;

  /// Throws ConfigError, which names --listen, if nothing can listen there.
  GeneratorServer(GeneratorOptions options, Draw draw);
  /// Answers what waits, and ends.
  ~GeneratorServer();
  GeneratorServer(const GeneratorServer&) = delete;
  GeneratorServer& operator=(const GeneratorServer&) = delete;

  const std::string& address() const;  ///< "http://127.0.0.1:8080"

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ganymede::serve
