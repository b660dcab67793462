// ganymede watch: a training under way beside its plan.

#include "plan/watch.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <mutex>
#include <thread>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/forecasts.hpp"
#include "report/numbers.hpp"
#include "report/prometheus.hpp"
#include "serve/timed_server.hpp"

namespace ganymede::cli {
namespace {

struct WatchOptions {
  std::string plan, log, listen, every = "10s";
  bool follow = false;
};

struct HostPort {
  std::string host;
  int port = 0;
};

/// Reads "127.0.0.1:9464"; the host may be left out, and an IPv6 address stands in brackets.
HostPort read_address(const std::string& text) {
  const auto colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  HostPort out{colon == std::string::npos || colon == 0 ? "127.0.0.1" : text.substr(0, colon), 0};
  if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']')
    out.host = out.host.substr(1, out.host.size() - 2);
  const auto read = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (read.ec != std::errc() || read.ptr != port.data() + port.size() || out.port < 0 || out.port > 65535)
    throw ConfigError(fmt::format("--listen: found \"{}\", expected an address such as 127.0.0.1:9464", text));
  return out;
}

double read_every(const std::string& text) {
  try {
    const auto every = parse_quantity<Seconds>(text);
    if (every.si >= 0.1 && every.si <= 86400) return every.si;
  } catch (const std::invalid_argument& error) {
    throw ConfigError(fmt::format("--every {}: {}", text, error.what()));
  }
  throw ConfigError(fmt::format("--every {}: expected a duration from 100ms to 24h", text));
}

/// Serves the metrics of the last forecast at /metrics as long as it lives.
class MetricsServer {
 public:
  explicit MetricsServer(const std::string& address) {
    const HostPort at = read_address(address);
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      const std::lock_guard lock(mutex_);
      response.set_content(text_, report::kPrometheusType);
    });
    int port = at.port;
    if (port == 0)
      port = server_.bind_to_any_port(at.host);
    else if (!server_.bind_to_port(at.host, port))
      port = -1;
    if (port < 0) throw ConfigError(fmt::format("--listen: {}: cannot listen there: is the port in use?", address));
    address_ = fmt::format("http://{}:{}/metrics", at.host, port);
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
  }
  ~MetricsServer() { server_.stop(); }

  const std::string& address() const { return address_; }
  void show(const std::string& text) {
    const std::lock_guard lock(mutex_);
    text_ = text;
  }

 private:
  serve::TimedServer server_;
  std::mutex mutex_;
  std::string text_, address_;
  std::jthread thread_;  // declared last, because the thread uses the other members
};

/// Says once that a run which is not at its end has written nothing for long: it may be dead.
class Silence {
 public:
  void check(const plan::RunLog& log, const Shared& shared) {
    const double silent_s = static_cast<double>(stated_now()) - log.last_unix_s;
    const double usual_s =
        (log.last_unix_s - log.begin_unix_s) / static_cast<double>(std::max<std::size_t>(1, log.steps.size()));
    const bool silent = log.end.empty() && silent_s > std::max(60.0, 20 * usual_s);
    if (silent && !said_)
      remark(shared, fmt::format("the log's last line is {} old; the run may have stopped, and its nodes still cost",
                                 report::clock(silent_s)));
    said_ = silent;
  }

 private:
  bool said_ = false;
};

/// The run misses its deadline, or is less sure to meet it than the plan asked for.
bool endangered(const OrderedJson& forecast) {
  const auto& deadline = forecast.at("deadline");
  return deadline.at("probability").is_number() &&
         deadline.at("probability").get<double>() < deadline.at("certainty").get<double>();
}

void run_watch(const WatchOptions& options, Shared& shared) {
  check_output(shared);
  for (const std::string& input : {options.plan, options.log}) keep_input(shared, input);
  const double every_s = read_every(options.every);
  const plan::WatchedPlan plan = plan::load_watched_plan(options.plan);
  std::unique_ptr<MetricsServer> server;
  if (!options.listen.empty()) {
    server = std::make_unique<MetricsServer>(options.listen);
    remark(shared, "metrics: " + server->address());
  }
  plan::RunLogReader reader(options.log);
  Silence silence;
  reader.read();
  for (bool first = true;; first = false) {
    if (first || reader.read() > 0) {
      const auto forecast = plan::watch_json(plan, reader.log(), options.log);
      if (server) server->show(report::forecast_metrics(forecast));
      shared.exit_code = endangered(forecast) ? ExitCode::goal_missed : ExitCode::done;
      emit(shared, shared.format == "json" ? forecast.dump(options.follow ? -1 : 2) + "\n"
                                           : report::forecast_text(forecast, result_width(shared)));
    }
    silence.check(reader.log(), shared);
    if (!(options.follow || server) || !reader.log().end.empty()) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(every_s));
  }
}

void declare_watch(Parser command, Shared& shared) {
  auto options = std::make_shared<WatchOptions>();
  command.add_option("--plan", options->plan, "the plan that the run follows, as `ganymede plan --save` writes it")
      .required()
      .check(suggest("@files"));
  command
      .add_option("--log", options->log,
                  "what the run writes: `ganymede train --metrics`, or the recorder of the Python package")
      .required()
      .check(suggest("@files"));
  command.add_flag("--follow", options->follow, "go on as the log grows, until the run's end");
  command.add_option("--listen", options->listen,
                     "follow, and serve the forecast as Prometheus metrics, for example at 127.0.0.1:9464");
  command.add_option("--every", options->every, "how often the log is read while it is followed").capture_default_str();
  add_format(command, shared, {"table", "json"});
  add_output(command, shared);
  command.callback([options, &shared] { run_watch(*options, shared); });
}

}  // namespace

Command watch_command() {
  return {.name = "watch",
          .summary = "a run under way beside its plan: end, bill and deadline as they now look",
          .examples =
              "  ganymede plan --model dcgan-64 --images 20M --deadline 10h --save plan.json\n"
              "  ganymede train --model dcgan-64 --steps 1000 --metrics run.jsonl &\n"
              "  ganymede watch --plan plan.json --log run.jsonl                     how it stands\n"
              "  ganymede watch --plan plan.json --log run.jsonl --follow\n"
              "  ganymede watch --plan plan.json --log run.jsonl --listen 127.0.0.1:9464\n",
          .about =
              "Reads how far the run is and says what that means: time and bill at its end with an interval, what is\n"
              "spent, the probability to meet the deadline, and what the plan's policy would do now. The exit code\n"
              "is 4 if the deadline is less sure than the plan asked for.",
          .declare = declare_watch};
}

}  // namespace ganymede::cli
