#include "serve/generator_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/printable.hpp"
#include "report/forecasts.hpp"
#include "serve/timed_server.hpp"

namespace ganymede::serve {
namespace {

std::chrono::steady_clock::duration as_duration(Seconds seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds.si));
}

}  // namespace

class GeneratorServer::Impl {
 public:
  Impl(GeneratorOptions options, Draw draw) : options_(std::move(options)), draw_(std::move(draw)) {
    http_.new_task_queue = [threads = static_cast<std::size_t>(options_.queue + options_.largest_batch + 8)] {
      return new httplib::ThreadPool(threads);
    };
    constexpr std::size_t kMostBody = 4096;
    http_.set_payload_max_length(kMostBody);
    http_.Post("/generate", [this](const httplib::Request& request, httplib::Response& response) {
      const auto since = Clock::now();
      generate(request, response);
      if (response.status == -1 || response.status == 200)  // -1: the library has not set it yet
        note_latency(std::chrono::duration<double>(Clock::now() - since).count());
    });
    // Before an answer leaves, so that whoever has read it finds it in /metrics.
    http_.set_post_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      if (request.path != "/generate") return;
      const std::lock_guard lock(mutex_);
      ++counts_.answers[response.status];
    });
    http_.Get("/health", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(about(), "application/json");
    });
    http_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(metrics(), report::kPrometheusType);
    });
    // Nothing is secret, and a service has the names that its users give it.
    http_.listen_at(options_.listen, {.any_name = true});
    address_ = http_.address();
    drawer_ = std::thread([this] { draw_batches(); });
    listener_ = std::thread([this] { http_.listen_after_bind(); });
  }

  ~Impl() {
    http_.stop();
    listener_.join();
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    drawer_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::string& address() const { return address_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// A request that waits for its image.
  struct Waiting {
    std::uint64_t seed;
    Clock::time_point since;
    std::promise<std::string> image;  ///< empty: it was given up
  };

  /// Counts for Prometheus. Buckets of latency are those of its client libraries.
  struct Counts {
    static constexpr std::array<double, 12> kBuckets_s = {0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                                          0.25,  0.5,  0.75,  1,    2.5,   5};
    std::array<std::int64_t, kBuckets_s.size() + 1> latencies = {};  ///< not added up; the last is beyond the others
    double latency_s = 0, busy_s = 0;
    std::int64_t batches = 0, images = 0;
    std::map<int, std::int64_t> answers;  ///< by status
  };

  static void refuse(httplib::Response& response, int status, const std::string& message) {
    response.status = status;
    response.set_content(OrderedJson{{"error", printable(message)}}.dump() + "\n", "application/json");
  }

  std::string about() const {
    return OrderedJson{{"status", "ok"},
                       {"model", options_.model},
                       {"version", options_.version},
                       {"largest_batch", options_.largest_batch}}
               .dump() +
           "\n";
  }

  /// The seed that the body states; without one the next of a count. Throws ConfigError for another body, and for a
  /// model or version that is not this one.
  std::uint64_t seed_of(const std::string& body) {
    std::uint64_t seed = ++counted_;
    if (body.find_first_not_of(" \t\r\n") == std::string::npos) return seed;
    JsonObject in(JsonNode::parse(body, "the request"));
    if (const auto stated = in.optional("seed")) seed = stated->as_seed();
    if (const auto model = in.optional("model")) model->as_choice({options_.model});
    if (const auto version = in.optional("version"); version && version->as_integer(0, INT64_MAX) != options_.version)
      version->expected(std::to_string(options_.version));
    in.finish();
    return seed;
  }

  void generate(const httplib::Request& request, httplib::Response& response) {
    std::future<std::string> image;
    std::uint64_t seed = 0;
    try {
      seed = seed_of(request.body);
    } catch (const ConfigError& error) {
      return refuse(response, 400, error.what());
    }
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= static_cast<std::size_t>(options_.queue)) {
        response.set_header("Retry-After", "1");
        return refuse(response, 503, fmt::format("{} requests wait already", options_.queue));
      }
      waiting_.push_back({seed, Clock::now(), {}});
      image = waiting_.back().image.get_future();
    }
    changed_.notify_all();
    try {
      std::string png = image.get();
      if (png.empty()) return refuse(response, 504, fmt::format("waited for {}", to_string(options_.timeout)));
      response.set_header("X-Seed", std::to_string(seed));
      response.set_header("X-Model", fmt::format("{} {}", options_.model, options_.version));
      response.set_content(std::move(png), "image/png");
    } catch (const std::exception& error) {
      refuse(response, 500, error.what());
    }
  }

  /// Takes batches by the rule of the simulated service (sim/service/service_simulation.hpp) until the server ends.
  void draw_batches() {
    const auto largest = static_cast<std::size_t>(options_.largest_batch);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const auto begins = waiting_.front().since + as_duration(options_.window);
      changed_.wait_until(lock, begins, [&] { return ending_ || waiting_.size() >= largest; });
      std::vector<Waiting> batch;
      std::vector<std::uint64_t> seeds;
      for (; !waiting_.empty() && batch.size() < largest; waiting_.pop_front()) {
        Waiting& first = waiting_.front();
        if (Clock::now() - first.since > as_duration(options_.timeout)) {
          first.image.set_value("");
          continue;
        }
        seeds.push_back(first.seed);
        batch.push_back(std::move(first));
      }
      if (batch.empty()) continue;
      lock.unlock();
      const auto since = Clock::now();
      std::vector<std::string> images;
      std::exception_ptr failure;
      try {
        images = draw_(seeds);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      ++counts_.batches;
      counts_.images += static_cast<std::int64_t>(batch.size());
      counts_.busy_s += std::chrono::duration<double>(Clock::now() - since).count();
      for (std::size_t i = 0; i < batch.size(); ++i)
        failure ? batch[i].image.set_exception(failure) : batch[i].image.set_value(std::move(images[i]));
    }
  }

  void note_latency(double seconds) {
    const std::lock_guard lock(mutex_);
    const auto bucket = std::lower_bound(Counts::kBuckets_s.begin(), Counts::kBuckets_s.end(), seconds);
    ++counts_.latencies[static_cast<std::size_t>(bucket - Counts::kBuckets_s.begin())];
    counts_.latency_s += seconds;
  }

  std::string metrics() {
    const std::lock_guard lock(mutex_);
    constexpr const char* kPrefix = "ganymede_generator_";
    std::string text =
        fmt::format("# HELP {0}requests_total Requests by status.\n# TYPE {0}requests_total counter\n", kPrefix);
    for (const auto& [status, count] : counts_.answers)
      text += fmt::format("{}requests_total{{code=\"{}\"}} {}\n", kPrefix, status, count);
    for (const auto& [name, help, value] :
         {std::tuple("batches_total", "Batches that were drawn.", static_cast<double>(counts_.batches)),
          {"images_total", "Images that were drawn.", static_cast<double>(counts_.images)},
          {"busy_seconds_total", "Time of drawing.", counts_.busy_s}})
      text += fmt::format("# HELP {0}{1} {2}\n# TYPE {0}{1} counter\n{0}{1} {3}\n", kPrefix, name, help, value);
    text += fmt::format("# HELP {0}waiting Requests that wait.\n# TYPE {0}waiting gauge\n{0}waiting {1}\n", kPrefix,
                        waiting_.size());
    text += fmt::format("# HELP {0}latency_seconds Time to an image.\n# TYPE {0}latency_seconds histogram\n", kPrefix);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < Counts::kBuckets_s.size(); ++i)
      text += fmt::format("{}latency_seconds_bucket{{le=\"{}\"}} {}\n", kPrefix, Counts::kBuckets_s[i],
                          sum += counts_.latencies[i]);
    sum += counts_.latencies.back();
    return text + fmt::format(
                      "{0}latency_seconds_bucket{{le=\"+Inf\"}} {1}\n{0}latency_seconds_sum {2}\n"
                      "{0}latency_seconds_count {1}\n",
                      kPrefix, sum, counts_.latency_s);
  }

  GeneratorOptions options_;
  Draw draw_;
  TimedServer http_;
  std::string address_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  Counts counts_;
  std::atomic<std::uint64_t> counted_ = 0;
  bool ending_ = false;
  std::thread drawer_, listener_;
};

GeneratorServer::GeneratorServer(GeneratorOptions options, Draw draw)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(draw))) {}
GeneratorServer::~GeneratorServer() = default;
const std::string& GeneratorServer::address() const { return impl_->address(); }

}  // namespace ganymede::serve
