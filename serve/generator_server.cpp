#include "serve/generator_server.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/printable.hpp"
#include "report/forecasts.hpp"
#include "serve/timed_server.hpp"

namespace ganymede::serve {
namespace {

constexpr std::string_view kScheme = "models:/";

/// One server of MLflow, below the path of its address.
class Registry {
 public:
  Registry(const std::string& server, const std::string& authorization) : server_(server) {
    const std::size_t host = std::string_view(server.starts_with("https://") ? "https://" : "http://").size();
    const std::size_t path = server.find('/', host);
    if (!(server.starts_with("http://") || server.starts_with("https://")) || server.size() == host || path == host)
      throw ConfigError(fmt::format(
          "MLFLOW_TRACKING_URI: found \"{}\", expected the address of MLflow's server, such as http://localhost:5000",
          server));
    client_ = std::make_unique<httplib::Client>(server.substr(0, path));
    prefix_ = path == std::string::npos ? "" : server.substr(path);
    while (prefix_.ends_with('/')) prefix_.pop_back();
    client_->set_connection_timeout(10);
    client_->set_read_timeout(10);
    if (!authorization.empty()) client_->set_default_headers({{"Authorization", authorization}});
  }

  /// The answer to a question of the REST interface. `what` is what was asked for, for messages.
  Json ask(const std::string& route, const httplib::Params& parameters, const std::string& what) const {
    const std::string text = get("/api/2.0/mlflow/" + route, parameters, what);
    try {
      return Json::parse(text);
    } catch (const JsonError&) {
      throw Failure(fmt::format("{}: the answer is not of MLflow's server", server_));
    }
  }

  std::string get(const std::string& route, const httplib::Params& parameters, const std::string& what) const {
    const httplib::Result answer = client_->Get(prefix_ + route, parameters, httplib::Headers{});
    if (!answer) throw Failure(fmt::format("{}: gave no answer ({})", server_, httplib::to_string(answer.error())));
    if (answer->status == 200) return answer->body;
    std::string why = fmt::format("status {}", answer->status);
    try {
      why = Json::parse(answer->body).at("message").get<std::string>();
    } catch (const JsonError&) {  // no message: the status has to do
    }
    if (answer->status == 404 || answer->status == 400)
      throw ConfigError(fmt::format("--generator: {}: {} says: {}", what, server_, why));
    throw Failure(fmt::format("{}: {}", server_, why));
  }

 private:
  std::string server_, prefix_;
  std::unique_ptr<httplib::Client> client_;
};

std::string text_of(const Json& object, const char* key, const std::string& what) {
  if (!object.is_object() || !object.contains(key) || !object.at(key).is_string())
    throw Failure(fmt::format("{}: MLflow's answer has no \"{}\"", what, key));
  return object.at(key).get<std::string>();
}

/// "digits/3" or "digits@best" as the registry knows it.
Json version_of(const Registry& registry, const std::string& generator) {
  const std::string_view rest = std::string_view(generator).substr(kScheme.size());
  const std::size_t at = rest.find_last_of("/@");
  if (at == std::string_view::npos || at == 0 || at + 1 == rest.size())
    throw ConfigError(
        fmt::format("--generator: found \"{}\", expected models:/NAME/VERSION or models:/NAME@ALIAS", generator));
  const std::string name(rest.substr(0, at)), which(rest.substr(at + 1));
  const bool by_alias = rest[at] == '@';
  if (!by_alias && which.find_first_not_of("0123456789") != std::string::npos)
    throw ConfigError(fmt::format("--generator: {}: found \"{}\", expected a version's number", generator, which));
  const Json answer = registry.ask(by_alias ? "registered-models/alias" : "model-versions/get",
                                   {{"name", name}, {by_alias ? "alias" : "version", which}}, generator);
  if (!answer.is_object() || !answer.contains("model_version"))
    throw Failure(fmt::format("{}: MLflow's answer has no \"model_version\"", generator));
  return answer.at("model_version");
}

/// The name that `python -m ganymede mlflow` has noted of the checkpoint.
std::string file_of(const Json& version, const std::string& generator) {
  if (version.contains("tags") && version.at("tags").is_array())
    for (const Json& tag : version.at("tags"))
      if (text_of(tag, "key", generator) == "ganymede.file") {
        std::string file = text_of(tag, "value", generator);
        if (file.find('/') == std::string::npos) return file;
      }
  throw ConfigError(
      fmt::format("--generator: {}: has no tag ganymede.file, expected a version that `python -m ganymede mlflow "
                  "--checkpoint` registered",
                  generator));
}

}  // namespace

bool is_registered(std::string_view generator) { return generator.starts_with(kScheme); }

RegisteredModel fetch_model(const std::string& generator, const std::string& server, const std::string& authorization) {
  const Registry registry(server, authorization);
  const Json version = version_of(registry, generator);
  RegisteredModel out;
  out.name = text_of(version, "name", generator);
  out.file = file_of(version, generator);
  const std::string number = text_of(version, "version", generator);
  std::from_chars(number.data(), number.data() + number.size(), out.version);
  std::string place =
      text_of(registry.ask("model-versions/get-download-uri", {{"name", out.name}, {"version", number}}, generator),
              "artifact_uri", generator);
  while (place.ends_with('/')) place.pop_back();
  constexpr std::string_view kProxied = "mlflow-artifacts:", kFile = "file://";
  if (place.starts_with(kProxied)) {
    std::string path = place.substr(kProxied.size());
    if (path.starts_with("//")) path.erase(0, std::min(path.find('/', 2), path.size()));
    out.bytes = registry.get("/api/2.0/mlflow-artifacts/artifacts" + path + "/" + out.file, {}, generator);
  } else if (place.starts_with('/') || place.starts_with(kFile)) {
    out.bytes =
        read_file(std::filesystem::path(place.starts_with('/') ? place : place.substr(kFile.size())) / out.file);
  } else {
    throw ConfigError(
        fmt::format("--generator: {}: its file is in {}, which MLflow's own client fetches: mlflow artifacts download "
                    "--artifact-uri {} --dst-path DIR, then --generator DIR",
                    generator, place, place));
  }
  return out;
}

std::string authorization_of_environment() {
  const auto value = [](const char* name) {
    const char* found = std::getenv(name);
    return std::string(found == nullptr ? "" : found);
  };
  if (const std::string token = value("MLFLOW_TRACKING_TOKEN"); !token.empty()) return "Bearer " + token;
  const std::string user = value("MLFLOW_TRACKING_USERNAME");
  if (user.empty()) return "";
  return httplib::make_basic_authentication_header(user, value("MLFLOW_TRACKING_PASSWORD")).second;
}

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
