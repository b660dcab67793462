#pragma once
// Starts ganymede serve as a child process of a test, and sends requests to it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {

/// The running program, which is ended with this object. `more` holds arguments besides --port and --data.
class Server {
 public:
  /// `prepare` is called in the child, before it becomes the program.
  Server(const Scratch& scratch, std::vector<std::string> more = {}, const std::function<void()>& prepare = {}) {
    std::vector<std::string> words = {GANYMEDE_BINARY, "serve", "--port", "0", "--data", (scratch / "data").string()};
    words.insert(words.end(), more.begin(), more.end());
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
      ::close(ends[0]);
      if (prepare) prepare();
      ::execv(GANYMEDE_BINARY, arguments.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    std::string line;
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
    ::close(ends[0]);
    const std::size_t colon = line.find(':', 7), slash = line.find('/', 7), sign = line.find('=');
    port = std::stoi(line.substr(colon + 1, slash - colon - 1));
    token = line.substr(sign + 1);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    if (pid_ > 0) end(SIGTERM);
  }

  /// Ends the program with a signal and returns its exit code.
  int end(int signal) {
    ::kill(pid_, signal);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  /// Opens a connection and sends nothing. The caller must close it.
  int connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return socket;
  }

  httplib::Client client() const {
    httplib::Client client("127.0.0.1", port);
    client.set_read_timeout(60);
    client.set_url_encode(false);  // paths are sent unchanged
    client.set_default_headers({{"Authorization", "Bearer " + token}});
    return client;
  }
  httplib::Result get(const std::string& path, const httplib::Headers& headers = {}) const {
    return client().Get(path, headers);
  }
  httplib::Result post(const std::string& path, const std::string& body = "{}") const {
    return client().Post(path, body, "application/json");
  }
  /// Submits a form and returns the job's id.
  int submit(const Json& form) const {
    const auto result = post("/api/jobs", form.dump());
    EXPECT_EQ(result->status, 201) << result->body;
    return Json::parse(result->body).value("id", 0);
  }
  Json job(int id) const { return Json::parse(get("/api/jobs/" + std::to_string(id))->body); }
  /// Waits until `is` accepts the job, and returns the job. The test fails after some minutes.
  Json wait(int id, const std::function<bool(const Json&)>& is) const {
    for (int i = 0; i < 6000; ++i) {
      Json now = job(id);
      if (is(now)) return now;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "job " << id << " stays " << job(id).dump();
    return job(id);
  }
  Json wait_end(int id) const {
    return wait(id, [](const Json& job) { return job["state"] != "queued" && job["state"] != "running"; });
  }
  Json wait_running(int id) const {
    return wait(id, [](const Json& job) { return job["state"] != "queued"; });
  }

  int port = 0;
  std::string token;

 private:
  pid_t pid_ = -1;
};

/// A form for a sweep of `seeds` runs.
inline Json comparison(int seeds) {
  return Json::parse(R"({
    "kind": "compare",
    "workload": { "trace": "recorded:mlp-gan-cpu", "batch_per_gpu": 64,
                  "dataset": { "name": "mnist", "images": 60000, "bytes_per_image": 784 }, "epochs": 1 },
    "platforms": [ { "catalog": "aws", "region": "us-east-1", "gpu": "V100", "market": "on-demand" } ],
    "gpus": [1], "schemes": ["ring"], "policies": ["fixed"],
    "seeds": { "first": 1, "count": )" +
                     std::to_string(seeds) + "} }");
}

/// A form for a sweep that takes at least minutes: many spot runs, each with its own faults.
inline Json long_comparison() {
  Json form = comparison(10'000);
  form["platforms"][0]["market"] = "spot";
  form["workload"]["epochs"] = 5000;
  form["gpus"] = {1, 2, 4};
  form["policies"] = {"fixed", "predictive", "spot-first", "deadline"};
  form["deadline"] = "20h";
  return form;
}

}  // namespace ganymede::cli
