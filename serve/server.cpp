#include "serve/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "report/forecasts.hpp"
#include "serve/command_run.hpp"
#include "serve/doorkeeper.hpp"
#include "serve/job_answers.hpp"
#include "serve/timed_server.hpp"

namespace ganymede::serve {
namespace {
using httplib::Request;
using httplib::Response;
using Handled = httplib::Server::HandlerResponse;

constexpr std::size_t kThreads = 32;
constexpr std::size_t kMaxPathLength = 200;
constexpr std::size_t kMaxJobName = 200;  ///< bytes

// The page loads nothing from elsewhere; it shows reports in a frame.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-src "
    "'self'; "
    "form-action 'none'; frame-ancestors 'self'; base-uri 'none'";
// A report states a policy for its inline scripts itself. The sandbox gives it another origin, which cannot use the
// API.
constexpr const char* kReportPolicy =
    "sandbox allow-scripts allow-downloads allow-modals; form-action 'none'; frame-ancestors 'self'";

std::string content_type(std::string_view name) {
  return name.ends_with(".html")  ? "text/html; charset=utf-8"
         : name.ends_with(".css") ? "text/css; charset=utf-8"
                                  : "text/javascript; charset=utf-8";
}

void answer(Response& response, const OrderedJson& json, int status = 200) {
  response.status = status;
  response.set_content(json.dump_replacing(), "application/json");
}

void refuse(Response& response, int status, const std::string& message) {
  answer(response, {{"error", message}}, status);
}

/// Thrown for a body that is larger than such a request may have.
struct TooLarge : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Answers with the error of a form: also where it is, as a JSON pointer into the form, and what is wrong there, so
/// that the page can say it beside the field.
void refuse_form(Response& response, const std::string& message) {
  constexpr std::string_view kForm = "form: ";
  OrderedJson json = {{"error", message}};
  const std::size_t end = message.find(": ", kForm.size());
  if (message.starts_with(kForm) && end != std::string::npos) {
    json["at"] = message.substr(kForm.size(), end - kForm.size());
    json["problem"] = message.substr(end + 2);
  }
  answer(response, json, 400);
}

std::string parameter(const Request& request, const char* name) {
  return request.get_param_value_count(name) == 1 ? request.get_param_value(name) : "";
}

/// The header's value; a header that is given twice counts as a wrong one.
std::string header(const Request& request, const char* name) {
  const std::size_t count = request.get_header_value_count(name);
  return count == 0 ? "" : count == 1 ? request.get_header_value(name) : "(twice)";
}

/// Status and reason if the body of a request is refused; {0, null} if not. The library would read a body without a
/// stated length to its end, however long, and unpack a compressed one.
std::pair<int, const char*> body_objection(const Request& request) {
  if (request.has_header("Transfer-Encoding") || request.has_header("Content-Encoding"))
    return {415, "expected a body that is neither chunked nor compressed"};
  const std::string length = header(request, "Content-Length");
  if (length.empty() || !std::all_of(length.begin(), length.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return {411, "expected Content-Length"};
  const std::string type = header(request, "Content-Type");
  if (type != "application/json" && !type.starts_with("application/json;")) return {415, "expected application/json"};
  return {0, nullptr};
}

bool is_page(std::string_view path) {
  const auto& files = embedded_serve_page();
  return path == "/" || std::any_of(files.begin(), files.end(), [&](const EmbeddedText& file) {
           return file.name != "index.html" && path.starts_with('/') && path.substr(1) == file.name;
         });
}

const char* default_message(int status) {
  switch (status) {
    case 404:
      return "there is nothing here";
    case 413:
      return "the request is too large";
    case 414:
      return "the address is too long";
    default:
      return status < 500 ? "the request is not understood" : "the server has failed";
  }
}

}  // namespace

class Server::Impl {
 public:
  Impl(Jobs& jobs, const ServerOptions& options)
      : jobs_(jobs), max_body_(options.max_body), gate_("", 0), refusals_(jobs.options().data / "refused.log") {
    http_.admit_by([this](const Request& request, Response& response) { return admit(request, response); });
    const int port = http_.bind("127.0.0.1", options.port, {.one_range = true});
    if (port < 0)
      throw ConfigError(fmt::format("--port {}: in use, or not ours to use; --port 0 picks a free one", options.port));
    gate_ = Gate(random_token(), port);
    http_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    http_.set_payload_max_length(std::max(options.max_body, UploadStore::kMaxBytes));
    http_.set_logger([this](const Request& request, const Response& response) {
      if (response.status >= 400) refusals_.add(response.status, request.method, request.path);
    });
    http_.set_post_routing_handler([](const Request&, Response& response) { protect(response); });
    http_.set_error_handler([](const Request&, Response& response) {
      if (response.body.empty()) refuse(response, response.status, default_message(response.status));
    });
    http_.set_exception_handler(
        [](const Request&, Response& response, const std::exception_ptr& error) { explain(response, error); });
    add_page();
    add_jobs();
    add_uploads();
    add_files();
  }

  std::string address() const { return gate_.address(); }
  bool run() { return http_.listen_after_bind(); }
  void stop() { http_.stop(); }

 private:
  /// Decides whether a request is answered, before anything else of it, its body included, is read.
  Handled admit(const Request& request, Response& response) const {
    const Verdict verdict = gate_.judge({request.method, header(request, "Host"), header(request, "Origin"),
                                         header(request, "Authorization"), parameter(request, "token"), request.path,
                                         parameter(request, "key")});
    const bool reads = request.method == "GET" || request.method == "HEAD";
    // The files of the page hold no secret, and a browser that reloads the page sends no token.
    if (verdict != Verdict::welcome && !(verdict == Verdict::no_token && reads && is_page(request.path))) {
      refuse(response, 403,
             verdict == Verdict::wrong_origin ? "a page of another site has sent this"
                                              : "open the address that `ganymede serve` has printed: it has the token");
      return Handled::Handled;
    }
    if (!reads && request.method != "POST") {
      refuse(response, 405, "expected GET or POST");
      return Handled::Handled;
    }
    // Every address of the server is of this form; other paths never reach the handlers' regular expressions.
    const bool plain = request.path.size() <= kMaxPathLength &&
                       std::all_of(request.path.begin(), request.path.end(), [](unsigned char c) {
                         return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
                       });
    if (!plain) {
      refuse(response, 404, default_message(404));
      return Handled::Handled;
    }
    if (reads) return Handled::Unhandled;
    const auto [status, objection] = body_objection(request);
    if (objection == nullptr) return Handled::Unhandled;
    refuse(response, status, objection);
    return Handled::Handled;
  }

  static void protect(Response& response) {
    if (!response.has_header("Content-Security-Policy")) response.set_header("Content-Security-Policy", kPagePolicy);
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    response.set_header("Cache-Control", "no-store");
  }

  static void explain(Response& response, const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const ConfigError& wrong) {
      refuse_form(response, wrong.what());
    } catch (const NoSuchJob& none) {
      refuse(response, 404, none.what());
    } catch (const TooLarge& large) {
      refuse(response, 413, large.what());
    } catch (const NoSuchUpload& none) {
      refuse(response, 404, none.what());
    } catch (const QueueFull& full) {
      refuse(response, 429, full.what());
    } catch (const std::exception& failed) {
      refuse(response, 500, failed.what());
    }
  }

  JsonNode posted(const Request& request) const {
    if (request.body.size() > max_body_) throw TooLarge(default_message(413));
    return JsonNode::parse(request.body, "form");
  }

  void add_page() {
    for (const EmbeddedText& file : embedded_serve_page()) {
      const bool index = file.name == "index.html";
      http_.Get(index ? "/" : "/" + std::string(file.name), [file](const Request&, Response& response) {
        response.set_content(file.text.data(), file.text.size(), content_type(file.name));
      });
    }
  }

  void add_jobs() {
    http_.Get("/api/choices", [this](const Request&, Response& response) {
      OrderedJson options = form_options_json(jobs_.offer());
      const JobOptions& limits = jobs_.options();
      options["limits"] = {{"at_once", limits.at_once}, {"queue", limits.queue}, {"seconds", limits.limit.si}};
      answer(response, options);
    });
    http_.Get("/metrics", [this](const Request&, Response& response) {
      response.set_content(job_metrics(jobs_.list()), report::kPrometheusType);
    });
    http_.Get("/api/jobs", [this](const Request&, Response& response) { answer(response, jobs_.list()); });
    http_.Post("/api/jobs", [this](const Request& request, Response& response) {
      const int id = jobs_.submit(read_form(posted(request), jobs_.offer()));
      answer(response, described(id), 201);
    });
    http_.Post("/api/check", [this](const Request& request, Response& response) {
      const Form form = read_form(posted(request), jobs_.offer());
      answer(response, {{"title", form.title}});
    });
    http_.Get("/api/jobs/([0-9]{1,9})",
              [this](const Request& request, Response& response) { answer(response, described(id_of(request))); });
    http_.Post("/api/jobs/([0-9]{1,9})/cancel", [this](const Request& request, Response& response) {
      jobs_.cancel(id_of(request));
      answer(response, described(id_of(request)));
    });
    http_.Post("/api/jobs/([0-9]{1,9})/again", [this](const Request& request, Response& response) {
      jobs_.again(id_of(request));
      answer(response, described(id_of(request)));
    });
    http_.Post("/api/jobs/([0-9]{1,9})/name", [this](const Request& request, Response& response) {
      JsonObject in(posted(request));
      const JsonNode name = in.required("name");
      in.finish();
      if (!name.is_string() || name.value().as_string().size() > kMaxJobName)
        name.expected(fmt::format("a text of at most {} bytes", kMaxJobName));
      jobs_.name(id_of(request), name.value().get<std::string>());
      answer(response, described(id_of(request)));
    });
    http_.Post("/api/jobs/([0-9]{1,9})/forget", [this](const Request& request, Response& response) {
      jobs_.forget(id_of(request));
      answer(response, OrderedJson::object());
    });
    http_.Get("/api/jobs/([0-9]{1,9})/differences/([0-9]{1,9})", [this](const Request& request, Response& response) {
      answer(response, {{"text", jobs_.differences(id_of(request), id_of(request, 2))}});
    });
  }

  /// The body is the file itself; its kind, and the name that it has on the user's machine, stand in the address.
  void add_uploads() {
    http_.Post("/api/uploads", [this](const Request& request, Response& response) {
      const std::string kind = parameter(request, "kind"), name = parameter(request, "name");
      try_upload(kind, shown_name(name), request.body, jobs_.uploads().folder());
      const int id = jobs_.uploads().add(kind, name, request.body);
      answer(response, {{"id", id}, {"key", fmt::format("upload:{}", id)}}, 201);
    });
    http_.Post("/api/uploads/([0-9]{1,9})/forget", [this](const Request& request, Response& response) {
      jobs_.uploads().forget(id_of(request));
      answer(response, OrderedJson::object());
    });
  }

  void add_files() {
    http_.Get("/jobs/([0-9]{1,9})/samples-([0-9]{6,9})\\.png", [this](const Request& request, Response& response) {
      const auto path = jobs_.file(id_of(request), picture_file(id_of(request, 2)));
      if (!path) return refuse(response, 404, fmt::format("job {} has no such picture", id_of(request)));
      response.set_content(read_file(*path), "image/png");
    });
    for (const JobFile& file : job_files()) {
      std::string pattern = "/jobs/([0-9]{1,9})/" + std::string(file.name);
      pattern.insert(pattern.rfind('.'), "\\");
      http_.Get(pattern, [this, file](const Request& request, Response& response) {
        const auto path = jobs_.file(id_of(request), file.name);
        if (!path) return refuse(response, 404, fmt::format("job {} has no {}", id_of(request), file.name));
        if (file.name == "report.html") response.set_header("Content-Security-Policy", kReportPolicy);
        response.set_content(read_file(*path), std::string(file.content_type));
      });
    }
  }

  /// A job, and the addresses of its files with their keys, which work where no header can be sent.
  OrderedJson described(int id) const {
    OrderedJson job = jobs_.describe(id);
    job["links"] = OrderedJson::object();
    const auto add = [&](const std::string& file) {
      const std::string path = fmt::format("/jobs/{}/{}", id, file);
      job["links"][file] = path + "?key=" + gate_.key_of(path);
    };
    for (const auto& file : job["files"]) add(file.get<std::string>());
    if (job.contains("pictures"))
      for (const auto& step : job["pictures"]) add(picture_file(step.get<std::int64_t>()));
    return job;
  }

  /// The number that the address has in that place.
  static int id_of(const Request& request, std::size_t place = 1) {
    int id = 0;  // at most nine digits
    const std::string digits = request.matches[place];
    std::from_chars(digits.data(), digits.data() + digits.size(), id);
    return id;
  }

  Jobs& jobs_;
  std::size_t max_body_;
  Gate gate_;
  RefusalLog refusals_;
  TimedServer http_;
};

Server::Server(Jobs& jobs, const ServerOptions& options) : impl_(std::make_unique<Impl>(jobs, options)) {}
Server::~Server() = default;
std::string Server::address() const { return impl_->address(); }
bool Server::run() { return impl_->run(); }
void Server::stop() { impl_->stop(); }

}  // namespace ganymede::serve
