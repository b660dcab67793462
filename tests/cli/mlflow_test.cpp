// ganymede export mlflow with a server that answers, refuses, breaks, hangs or does not exist.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "fake_mlflow.hpp"
#include "report/results.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

Json result_of_seed(int seed) {
  Json result = report::a_result();
  result["provenance"]["seed"] = seed;
  return result;
}

class Mlflow : public testing::Test {
 protected:
  Outcome run(const std::string& arguments, const std::string& environment = "") const {
    return run_program("export mlflow " + arguments, "env -u MLFLOW_TRACKING_URI " + environment);
  }
  Outcome send(const std::string& arguments, const std::string& environment = "") const {
    return run(arguments + " --tracking-uri " + server.uri(), environment);
  }
  /// The number of requests in a file, which is its number of lines without the head.
  static std::size_t open_in(const std::string& file) {
    const std::string text = content_of(file);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) - 1;
  }
  /// Expects everything that an export of two runs creates, and each thing once.
  void expect_two_whole_runs() const {
    ASSERT_THAT(server.runs, SizeIs(2));
    for (const auto& [id, of] : server.runs) {
      EXPECT_EQ(of.status, "FINISHED");
      EXPECT_THAT(of.params, AllOf(Contains(Pair("pool.instance", "p3.8xlarge")), Contains(Pair("scheme", "ring"))));
      EXPECT_THAT(of.metrics,
                  AllOf(Contains(Pair("cost.total_usd", 7.35)), Contains(Pair("time.interval_s.high", 3700)),
                        Contains(Pair("gpu_seconds.compute", 20000.5))));
      EXPECT_THAT(of.tags, Contains(Pair("ganymede.warnings", "first warning\nsecond warning")));
    }
  }

  const Scratch scratch;
  FakeMlflow server;
  const std::string result = scratch.write("result.json", result_of_seed(7).dump());
  const std::string sweep = scratch.write("sweep.json", report::a_sweep({result_of_seed(1), result_of_seed(2)}).dump());
  const std::string kept = sweep + ".mlflow.jsonl";
};

TEST_F(Mlflow, ASweepBecomesRunsAndTwiceMakesThemOnce) {
  for (int times = 0; times < 2; ++times) {
    const Outcome outcome = send(sweep + " --experiment 'a \"b\" & c'");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(kept));
    EXPECT_THAT(server.experiments, SizeIs(1));
    EXPECT_EQ(server.experiments.count("a \"b\" & c"), 1U);
    expect_two_whole_runs();
  }
  // Another result of the same scenario and seed is another run.
  Json changed = result_of_seed(1);
  changed["time"]["total_s"] = 1.0;
  EXPECT_EQ(send(scratch.write("changed.json", changed.dump()) + " --experiment 'a \"b\" & c'").code, 0);
  EXPECT_THAT(server.runs, SizeIs(3));
  EXPECT_EQ(send(sweep + " --run 1 --experiment other").code, 0);
  EXPECT_THAT(server.runs, SizeIs(4));
}

TEST_F(Mlflow, OfAPlanItsCandidates) {
  Json plan = report::a_plan(), other = plan["simulated"][0];
  other["chosen"] = false;
  plan["simulated"].push_back(other);
  const std::string file = scratch.write("plan.json", plan.dump());
  EXPECT_EQ(send(file).code, 0);
  ASSERT_THAT(server.runs, SizeIs(1));
  EXPECT_THAT(server.runs.begin()->second.metrics, Contains(Pair("usd.median", 12.5)));
  EXPECT_THAT(server.runs.begin()->second.params, Contains(Pair("request.model", "dcgan-64")));
  EXPECT_EQ(send(file + " --all").code, 0);
  EXPECT_THAT(server.runs, SizeIs(2));
}

TEST_F(Mlflow, WhatNobodyTakesIsKeptAndSentLater) {
  // The address of a port on which nobody listens any more.
  std::string gone;
  { gone = FakeMlflow().uri(); }
  const Outcome down = run(sweep + " --tracking-uri " + gone);
  EXPECT_EQ(down.code, 1);
  EXPECT_THAT(down.err,
              AllOf(HasSubstr("0 of 11 requests accepted"), HasSubstr("nothing answers there"),
                    HasSubstr("ganymede export mlflow --replay '" + kept + "' --tracking-uri '" + gone + "'")));
  EXPECT_EQ(open_in(kept), 11U);
  // Another export does not overwrite the file; the same export continues from it.
  EXPECT_THAT(send(sweep + " --experiment other").err, HasSubstr("of another export"));
  const Outcome replay = send("--replay " + kept);
  EXPECT_EQ(replay.code, 0) << replay.err;
  EXPECT_EQ(open_in(kept), 0U);
  expect_two_whole_runs();
  EXPECT_EQ(send("--replay " + kept).code, 0);
  EXPECT_EQ(send(sweep).code, 0);
  expect_two_whole_runs();
}

// Whichever request breaks, and whether or not the server carried it out, after the next try everything exists once.
TEST_F(Mlflow, AServerThatBreaksInTheMiddleLosesAndDoublesNothing) {
  NOT_SANITIZED("starts dozens of programs, and one starts slowly there");
  for (const bool done : {false, true}) {
    for (int broken = 0; broken < 14; ++broken) {
      FakeMlflow other;
      auto& fault = done ? other.lose : other.fault;
      fault = [&](int number, const std::string&) { return number == broken ? 500 : 0; };
      const std::string file = (scratch / ("kept" + std::to_string(broken))).string();
      const std::string flags =
          sweep + " --requests " + file + (done ? ".done" : "") + " --tracking-uri " + other.uri();
      const Outcome first = run(flags);
      ASSERT_EQ(first.code, 1) << broken;
      EXPECT_THAT(first.err, AllOf(HasSubstr("HTTP 500"), Not(HasSubstr("\x1b"))));
      const Outcome second = run(flags);
      ASSERT_EQ(second.code, 0) << broken << ": " << second.err;
      ASSERT_THAT(other.runs, SizeIs(2)) << broken;
      for (const auto& [id, of] : other.runs) {
        EXPECT_EQ(of.status, "FINISHED");
        EXPECT_THAT(of.metrics, Contains(Pair("cost.total_usd", 7.35)));
        EXPECT_EQ(of.params.count("scheme"), 1U);
      }
    }
  }
}

TEST_F(Mlflow, RefusedCredentialsEndItAtOnce) {
  server.fault = [](int, const std::string&) { return 403; };
  const Outcome outcome = send(sweep, "MLFLOW_TRACKING_TOKEN=s3cret");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("HTTP 403"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(server.paths, SizeIs(1));
  EXPECT_THAT(server.authorizations, Each("Bearer s3cret"));
  EXPECT_THAT(content_of(kept), Not(HasSubstr("s3cret")));
  server.fault = nullptr;
  EXPECT_EQ(send(sweep, "MLFLOW_TRACKING_USERNAME=a MLFLOW_TRACKING_PASSWORD=b MLFLOW_TRACKING_TOKEN=t").code, 0);
  EXPECT_EQ(server.authorizations.back(), "Basic YTpi");
  EXPECT_THAT(send(sweep, "MLFLOW_TRACKING_TOKEN=\"$(printf 'a\\r\\nX: y')\"").err, HasSubstr("control character"));
}

TEST_F(Mlflow, OneRequestThatIsRefusedDoesNotKeepTheOthers) {
  server.fault = [](int number, const std::string& path) {
    return number == 4 && path.ends_with("log-batch") ? 400 : 0;
  };
  const Outcome outcome = send(sweep);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("10 of 11 requests accepted"), HasSubstr("runs/log-batch: HTTP 400")));
  EXPECT_EQ(open_in(kept), 1U);
  EXPECT_EQ(send("--replay " + kept).code, 0);
  expect_two_whole_runs();
}

TEST_F(Mlflow, AServerThatHangsIsGivenUp) {
  server.slow_s = 3;
  const Outcome outcome = send(result + " --timeout 1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("no whole answer within 1 s"));
  EXPECT_EQ(open_in(result + ".mlflow.jsonl"), 6U);
}

/// A server that answers a request of any kind with a head that lacks its length, and then with `piece` every so many
/// milliseconds until nobody reads.
class EndlessServer {
 public:
  EndlessServer(std::string piece, std::chrono::milliseconds pause) {
    server_.Get(".*", [=](const httplib::Request&, httplib::Response& response) {
      response.status = 400;
      response.set_content_provider("text/plain", [=](std::size_t, httplib::DataSink& sink) {
        std::this_thread::sleep_for(pause);
        return sink.write(piece.data(), piece.size());
      });
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~EndlessServer() {
    server_.stop();
    thread_.join();
  }
  std::string uri() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

// Neither the time nor the size of an answer was limited if its head did not state a length.
TEST_F(Mlflow, AnAnswerWithoutLengthAndEndIsGivenUp) {
  const EndlessServer slow("x", std::chrono::milliseconds(100)), large(std::string(1 << 20, 'x'), {});
  const Outcome after_time = run(result + " --timeout 1 --tracking-uri " + slow.uri());
  EXPECT_EQ(after_time.code, 1);
  EXPECT_THAT(after_time.err, HasSubstr("no whole answer within 1 s"));
  const Outcome after_size = run(result + " --timeout 60 --tracking-uri " + large.uri());
  EXPECT_EQ(after_size.code, 1);
  EXPECT_THAT(after_size.err, HasSubstr("an answer of more than 16 MiB"));
}

TEST_F(Mlflow, ATokenThatTheServerSendsBackIsNotPrinted) {
  server.fault = [](int, const std::string&) { return 403; };
  server.fault_message = "no access for s3cret-t0ken";
  const Outcome outcome = send(result, "MLFLOW_TRACKING_TOKEN=s3cret-t0ken");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out + outcome.err, AllOf(HasSubstr("no access for ***"), Not(HasSubstr("t0ken"))));
}

TEST_F(Mlflow, WithoutAServerRequestsAreOnlyWritten) {
  const std::string file = (scratch / "later.jsonl").string();
  const Outcome outcome = run(sweep + " --requests " + file + " --start 2026-12-01T09:00:00Z");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(open_in(file), 11U);
  const std::string first = content_of(file);
  EXPECT_EQ(run(sweep + " --requests " + file + " --start 2026-12-01T09:00:00Z").code, 0);
  EXPECT_EQ(content_of(file), first);
  EXPECT_EQ(run("--replay " + file, "MLFLOW_TRACKING_URI=" + server.uri()).code, 0);
  expect_two_whole_runs();
}

TEST_F(Mlflow, ACheckpointIsUploadedAndRegisteredOnce) {
  const std::string folder = (scratch / "run").string();
  ASSERT_EQ(run_program("train --model mlp-gan --steps 2 --batch 8 --checkpoint " + folder).code, 0);
  for (int times = 0; times < 2; ++times) {
    const Outcome outcome = send(result + " --checkpoint " + folder);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
  ASSERT_THAT(server.versions, SizeIs(1));
  const Json& version = server.versions[0];
  EXPECT_EQ(version["name"], "ganymede-mlp-gan");
  EXPECT_EQ(version["source"], "mlflow-artifacts:/1/run0/artifacts/checkpoint");
  EXPECT_EQ(version["run_id"], "run0");
  std::map<std::string, std::string> tags;
  for (const Json& tag : version["tags"]) tags[tag["key"]] = tag["value"];
  EXPECT_EQ(tags["ganymede.train.steps"], "2");
  EXPECT_THAT(tags["ganymede.compiler"], Not(""));
  ASSERT_THAT(server.artifacts, SizeIs(1));
  const std::string file = folder + "/step-000000000002.ckpt";
  EXPECT_EQ(server.artifacts.begin()->first, "1/run0/artifacts/checkpoint/step-000000000002.ckpt");
  EXPECT_EQ(server.artifacts.begin()->second, content_of(file));
  const std::string sum = (scratch / "sum").string();
  ASSERT_EQ(std::system(("sha256sum " + file + " > " + sum).c_str()), 0);
  EXPECT_EQ(tags["ganymede.sha256"], content_of(sum).substr(0, 64));
}

TEST_F(Mlflow, ArtifactsElsewhereAreSaidToBeAndNothingEmptyIsRegistered) {
  const std::string folder = (scratch / "run").string();
  ASSERT_EQ(run_program("train --model mlp-gan --steps 2 --batch 8 --checkpoint " + folder).code, 0);
  for (const char* root : {"s3://bucket/", "mlflow-artifacts://elsewhere/", "file:///mlruns/"}) {
    server.artifact_root = root;
    server.runs.clear();
    std::filesystem::remove(result + ".mlflow.jsonl");
    const Outcome outcome = send(result + " --checkpoint " + folder);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("the run's artifacts are at " + std::string(root)), HasSubstr("--checkpoint-uri")));
    EXPECT_THAT(server.versions, SizeIs(0));
  }
  const Outcome named =
      send(result + " --checkpoint " + folder + " --checkpoint-uri s3://b/run --model-name mine --requests " +
           (scratch / "named").string());
  EXPECT_EQ(named.code, 0) << named.err;
  ASSERT_THAT(server.versions, SizeIs(1));
  EXPECT_EQ(server.versions[0]["source"], "s3://b/run");
  EXPECT_EQ(server.versions[0]["name"], "mine");
}

TEST_F(Mlflow, HostileTextStaysText) {
  Json hostile = report::a_result();
  hostile["provenance"]["scenario_hash"] = "' or tags.x = '" + report::kHostile;
  hostile["provenance"]["warnings"] = {std::string(9000, 'w'), report::kHostile};
  hostile["run"]["policy"] = std::string(2000, 'p');
  hostile["run"][report::kHostile] = report::kHostile;
  hostile["run"]["platform"] = R"({"$id":"run-0"})";
  const std::string file = scratch.write("hostile.json", hostile.dump());
  for (int times = 0; times < 2; ++times) {
    const Outcome outcome = send(file);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    ASSERT_THAT(server.runs, SizeIs(1));
  }
  const auto& run = server.runs.begin()->second;
  EXPECT_EQ(run.params.at("policy").size(), 500U);
  EXPECT_EQ(run.params.at("platform"), R"({"$id":"run-0"})");
  EXPECT_EQ(run.tags.at("ganymede.warnings").size(), 5000U);
}

TEST_F(Mlflow, NamesWhatIsWrong) {
  const auto refused = [&](const std::string& arguments, const char* why) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << arguments;
  };
  refused("", "either a document to export or --replay");
  refused(result, "expected --tracking-uri or MLFLOW_TRACKING_URI");
  refused(result + " --tracking-uri sqlite:///x.db", "expected a server such as");
  refused(result + " --tracking-uri http://", "expected a server such as");
  refused(result + " --tracking-uri http://a:b@host", "has credentials, expected none");
  refused(result + " --tracking-uri http://h --start now", "--start now");
  refused(result + " --tracking-uri http://h --run 0", "is no sweep");
  refused(sweep + " --tracking-uri http://h --run 2", "expected 0 to 1");
  refused(result + " --tracking-uri http://h --checkpoint missing", "found no checkpoint");
  refused(result + " --tracking-uri http://h --model-name x", "expected --checkpoint");
  refused(result + " --requests " + result, "is the input too");
  refused(result + " --requests " + (scratch / "missing/x").string(), "missing/x");
  refused(scratch.write("new.json", R"({ "schema": "ganymede.result/2" })") + " --requests x", "newer");
  refused(scratch.write("empty.json", report::a_sweep(Json::array()).dump()) + " --requests x", "found no run");
  refused("--replay " + scratch.write("e", "") + " --tracking-uri http://h", "is empty");
  refused("--replay " + scratch.write("n", "{}\n") + " --tracking-uri http://h", "line 1");
  const std::string head = R"({"schema":"ganymede.mlflow-requests/1","export":"x","known":{}})"
                           "\n";
  for (const char* line :
       {"{", "5", "{}", R"({"path":"../../admin","body":{}})", R"({"path":"runs/create","body":5})",
        R"({"path":"runs/create","body":{},"gives":{"a":"b"}})", R"({"upload":"/etc/passwd"})",
        R"({"path":"runs/create","body":{},"find":{"path":"runs/search","body":{},"gives":{"a":5}}})"})
    refused("--replay " + scratch.write("r", head + line + "\n") + " --tracking-uri http://h", "line 2");
}

}  // namespace
}  // namespace ganymede::cli
