#pragma once
// A service that generates images with a trained generator, `ganymede.service/1`.

#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "platforms/platform.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// Seconds of a forward pass for 1, 2, ... images: as expected, and at the ends of the 90 % interval.
struct GeneratorTimes {
  std::vector<double> central_s, low_s, high_s;
  std::string how;  ///< where they come from, in words for people
};

/// Reads "generator": { "trace": NAME } or { "recipe": NAME }, perhaps with "network", or { "measured": { "1": "4ms",
/// "16": "30ms" } }, between which times lie on straight lines. Batches that no trace has recorded lie between those of
/// the powers of two. Throws ConfigError, located, for a trace without such a network and for times that fall.
GeneratorTimes read_generator(const JsonNode& node, const platforms::Gpu& gpu, const platforms::Link* host_link,
                              int largest_batch);

inline constexpr std::string_view kServiceSchema = "ganymede.service/1";

/// When requests arrive, each for one image.
struct Arrivals {
  double per_second = 0;                ///< on average
  bool even = false;                    ///< at equal distances; else as a Poisson process
  double swing = 0;                     ///< of a day: the rate runs from 1 - swing to 1 + swing times the mean
  Seconds period{86400};                ///< of a day
  std::vector<double> recorded_s = {};  ///< in place of all these: the times of requests
};

/// Kubernetes' HorizontalPodAutoscaler, autoscaling/v2 (kubernetes.io, "Horizontal Pod Autoscaling"): every `every`,
/// ceil(replicas x metric / target) replicas are wanted, unless the ratio is within `tolerance` of 1. The least that
/// was wanted in the last `up_window` and the most in the last `down_window` hold, where those of the first look count
/// as wanted; at most 4 replicas, or as many as there are, are added at a time.
struct Autoscaling {
  enum class Metric { utilization, queue };
  Metric metric = Metric::utilization;
  double target = 0.7;  ///< share of the GPUs' time, or requests that wait for each replica
  int least = 1, most = 1;
  Seconds every{15}, up_window{0}, down_window{300};
  double tolerance = 0.1;
};

struct Service {
  Scenario scenario;  ///< its seed, and the pool of nodes; a replica is a node, of which each GPU serves
  GeneratorTimes times;
  Arrivals arrivals;
  int largest_batch = 1;
  Seconds window{0};           ///< how long the first of a batch waits for others while a GPU is free
  int queue = 1000;            ///< requests that may wait; others fail
  Seconds timeout{30};         ///< a request that has waited for so long fails
  Seconds overhead{0};         ///< of each request beside the GPU: network, decoding, encoding
  double bytes_per_image = 0;  ///< that leave the provider
  Seconds load{0};             ///< from a running container to the first request: reading weights, warming up
  std::optional<Autoscaling> autoscaling;
  Seconds duration{3600};
  std::optional<Seconds> p95;    ///< goal
  std::optional<double> failed;  ///< goal: the largest share of requests that may fail
};

/// Reads and checks a service. Throws ConfigError, located.
Service read_service(const JsonNode& root);

/// True for a document with that schema.
bool is_service(const Json& document);

}  // namespace ganymede::sim
