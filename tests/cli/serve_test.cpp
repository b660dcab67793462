// ganymede serve as a browser uses it, and as callers without permission find it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <csignal>
#include <thread>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "serve_client.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
TEST(Serve, EveryRequestNeedsTheToken) {
  const Scratch scratch;
  const Server server(scratch);
  EXPECT_GE(server.token.size(), 32U);
  httplib::Client stranger("127.0.0.1", server.port);
  for (const std::string path : {"/api/choices", "/api/jobs", "/api/jobs/1", "/jobs/1/result.json", "/nowhere"}) {
    EXPECT_EQ(stranger.Get(path)->status, 403) << path;
    EXPECT_EQ(stranger.Get(path + "?token=" + std::string(server.token.size(), '0'))->status, 403) << path;
    EXPECT_EQ(stranger.Get(path + "?key=" + std::string(server.token.size(), '0'))->status, 403) << path;
    EXPECT_EQ(stranger.Get(path, {{"Cookie", "ganymede-" + std::to_string(server.port) + "=" + server.token}})->status,
              403)
        << path;
  }
  EXPECT_EQ(stranger.Post("/api/jobs", comparison(1).dump(), "application/json")->status, 403);
  EXPECT_EQ(stranger.Post("/api/jobs/1/cancel", "{}", "application/json")->status, 403);
  EXPECT_EQ(stranger.Post("/", "{}", "application/json")->status, 403);
}

TEST(Serve, OtherHostsAndOriginsAreRefused) {
  const Scratch scratch;
  const Server server(scratch);
  const std::string port = std::to_string(server.port);
  EXPECT_EQ(server.get("/api/jobs", {{"Host", "localhost:" + port}})->status, 200);
  EXPECT_EQ(server.get("/api/jobs", {{"Host", "rebound.example:" + port}})->status, 403);
  EXPECT_EQ(server.get("/api/jobs", {{"Host", "127.0.0.1"}})->status, 403);
  const auto post_from = [&](const std::string& origin) {
    return server.client().Post("/api/jobs", {{"Origin", origin}}, comparison(1).dump(), "application/json")->status;
  };
  EXPECT_EQ(post_from("http://example.com"), 403);
  EXPECT_EQ(post_from("null"), 403);
  EXPECT_EQ(post_from("http://127.0.0.1:" + port), 201);
}

TEST(Serve, PagesCarryTheirPolicies) {
  const Scratch scratch;
  const Server server(scratch);
  for (const char* path : {"/", "/page.js", "/api/jobs", "/nowhere"}) {
    const auto answer = server.get(path);
    EXPECT_THAT(answer->get_header_value("Content-Security-Policy"), HasSubstr("default-src 'none'; script-src 'self'"))
        << path;
    EXPECT_EQ(answer->get_header_value("X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(answer->get_header_value("Cache-Control"), "no-store") << path;
  }
  // All files that the page loads exist; none is from another site, and no script is inline.
  const std::string page = server.get("/")->body;
  for (const char* file : {"/page.css", "/page.js", "/dom.js", "/api.js", "/forms.js", "/workload.js", "/platforms.js",
                           "/uploads.js", "/jobs.js", "/training.js"})
    EXPECT_EQ(server.get(file)->status, 200) << file;
  EXPECT_EQ(page.find("https:"), std::string::npos);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
}

TEST(Serve, NoPathLeavesTheJobs) {
  const Scratch scratch;
  const Server server(scratch);
  const int id = server.submit(comparison(1));
  server.wait_end(id);
  const std::string job = "/jobs/" + std::to_string(id);
  EXPECT_EQ(server.get(job + "/result.json")->status, 200);
  for (const std::string up : {"../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..%252f", "..\\", "%00"})
    for (const std::string& start :
         std::vector<std::string>{"/", "/jobs/", "/api/", "/api/jobs/", job + "/", "/api" + job + "/"}) {
      std::string path = start;
      for (int i = 0; i < 10; ++i) path += up;
      EXPECT_THAT(server.get(path + "etc/passwd")->status, testing::AnyOf(400, 404)) << path;
    }
  // Files of the job's folder that the table does not list, and other spellings of a job's path.
  for (const std::string& path : std::vector<std::string>{
           job + "/job.json", job + "/", job, job + "/result.json.partial", job + "/./result.json",
           "/jobs/0/result.json", "/jobs/-1/result.json", "/jobs/01x/result.json", "/jobs/99999999999/result.json",
           "/lock", "/checkpoints", "/jobs/2/result.json", job + "/resultXjson", "/index.html"})
    EXPECT_EQ(server.get(path)->status, 404) << path;
  EXPECT_EQ(server.client().Delete(job)->status, 405);
  EXPECT_EQ(server.get("/" + std::string(5000, 'a'))->status, 404);
}

TEST(Serve, BodiesAreBounded) {
  const Scratch scratch;
  const Server server(scratch);
  EXPECT_EQ(server.post("/api/jobs", std::string((1 << 20) + 1, ' '))->status, 413);
  EXPECT_EQ(server.client().Post("/api/jobs", comparison(1).dump(), "text/plain")->status, 415);
  EXPECT_EQ(server.client().Post("/api/jobs", {{"Content-Encoding", "gzip"}}, "x", "application/json")->status, 415);
  const auto chunks = [](std::size_t, httplib::DataSink& sink) {
    sink.done();
    return true;
  };
  EXPECT_EQ(server.client().Post("/api/jobs", chunks, "application/json")->status, 411);
  EXPECT_EQ(server.get("/page.js", {{"Range", "bytes=0-9"}})->status, 206);
  EXPECT_EQ(server.get("/page.js", {{"Range", "bytes=0-9,0-9"}})->status, 416);
}

TEST(Serve, BadValuesGetALocatedMessage) {
  const Scratch scratch;
  const Server server(scratch);
  const auto refused = [&](const std::string& body) {
    const auto answer = server.post("/api/jobs", body);
    EXPECT_EQ(answer->status, 400) << body;
    return Json::parse(answer->body).value("error", "");
  };
  EXPECT_THAT(refused(""), HasSubstr("form: "));
  EXPECT_THAT(refused("{"), HasSubstr("form: "));
  EXPECT_THAT(refused(std::string(100'000, '[')), HasSubstr("200 levels"));
  Json form = comparison(1);
  form["workload"]["trace"] = "/etc/passwd";
  EXPECT_THAT(refused(form.dump()), HasSubstr("form: /workload/trace: found \"/etc/passwd\""));
  form = comparison(1);
  form["policies"] = {{{"name", "external"}, {"command", {"touch", "owned"}}}};
  EXPECT_THAT(refused(form.dump()), HasSubstr("form: /policies/0"));

  // A value that only the program can check gets the program's message: no GPU holds such a batch.
  form = comparison(1);
  form["workload"]["batch_per_gpu"] = 1 << 24;
  const Json job = server.wait_end(server.submit(form));
  EXPECT_EQ(job["state"], "failed");
  EXPECT_EQ(job["exit_code"], 3);
  EXPECT_THAT(job["message"].get<std::string>(), testing::StartsWith("input.json: batch 16777216 of mlp-gan needs"));
}

TEST(Serve, AComparisonRunsToItsEndAndIsThereAfterARestart) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  std::string result;
  {
    Server server(scratch);
    const int id = server.submit(comparison(3));
    const Json job = server.wait_end(id);
    EXPECT_EQ(job["state"], "done") << job.dump();
    EXPECT_EQ(job["exit_code"], 0);
    EXPECT_GT(job["peak_memory_bytes"], 0);
    result = server.get("/jobs/1/result.json")->body;
    EXPECT_EQ(Json::parse(result)["runs"].size(), 3U);
    EXPECT_THAT(server.get("/jobs/1/table.txt")->body, HasSubstr("aws us-east-1"));
    EXPECT_EQ(Json::parse(server.get("/jobs/1/input.json")->body)["schema"], "ganymede.study/1");
    EXPECT_EQ(server.post("/api/jobs/1/cancel")->status, 400);
    EXPECT_EQ(server.post("/api/jobs/1/again")->status, 400);
    EXPECT_EQ(server.end(SIGTERM), 0);
  }
  const Server server(scratch);
  const Json jobs = Json::parse(server.get("/api/jobs")->body);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0]["state"], "done");
  EXPECT_EQ(server.get("/jobs/1/result.json")->body, result);
  EXPECT_EQ(server.submit(comparison(1)), 2);
}

TEST(Serve, APlanThatNothingMeetsStillHasItsResult) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  const Server server(scratch);
  const Json job = server.wait_end(server.submit(Json::parse(R"({
    "kind": "plan", "workload": { "trace": "recorded:dcgan-28-cpu", "batch_per_gpu": 64, "images": 1000000 },
    "deadline": "1s", "catalogs": ["aws"], "gpus": ["V100"], "markets": ["on-demand"], "max_gpus": 1, "seed": 1 })")));
  EXPECT_EQ(job["state"], "done") << job.dump();
  EXPECT_EQ(job["exit_code"], 3);
  EXPECT_THAT(job["message"].get<std::string>(), HasSubstr("nothing meets the goals"));
  EXPECT_THAT(job["files"], testing::Contains("result.json"));
}

TEST(Serve, ProgressAndCancel) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  const Server server(scratch);
  const int id = server.submit(long_comparison());
  const Json running = server.wait(id, [](const Json& job) {
    return job["state"] != "running" ? job["state"] != "queued"
                                     : job.contains("progress") && job["progress"]["done"] > 0;
  });
  ASSERT_EQ(running["state"], "running") << running.dump();
  EXPECT_GT(running["progress"]["count"], 10'000);
  EXPECT_EQ(running["progress"]["what"], "runs");
  const auto metrics = server.get("/metrics");
  EXPECT_THAT(metrics->get_header_value("Content-Type"), HasSubstr("version=0.0.4"));
  EXPECT_THAT(metrics->body, HasSubstr("\nganymede_serve_jobs{state=\"running\"} 1\n"));
  EXPECT_THAT(metrics->body, HasSubstr("\nganymede_serve_jobs{state=\"failed\"} 0\n"));
  EXPECT_THAT(
      metrics->body,
      HasSubstr(fmt::format("\nganymede_serve_job_count{{job=\"1\",kind=\"compare\",name=\"\",unit=\"runs\"}} {}\n",
                            running["progress"]["count"].get<int>())));
  EXPECT_EQ(server.post("/api/jobs/1/cancel")->status, 200);
  EXPECT_EQ(server.wait_end(id)["state"], "cancelled");
  // The finished runs are kept, and the next run of the job uses them.
  EXPECT_TRUE(std::filesystem::exists(scratch / "data/jobs/1/result.json.partial"));
  EXPECT_EQ(server.post("/api/jobs/1/again")->status, 200);
  const Json again =
      server.wait(id, [](const Json& job) { return job.contains("progress") && job["progress"]["done"] > 0; });
  EXPECT_GE(again["progress"]["done"], running["progress"]["done"]);
}

TEST(Serve, TheQueueIsBounded) {
  const Scratch scratch;
  const Server server(scratch, {"--queue", "1", "--short", "1h"});
  EXPECT_EQ(server.wait_running(server.submit(long_comparison()))["state"], "running");
  const int waits = server.submit(long_comparison());
  EXPECT_EQ(server.job(waits)["state"], "queued");
  const auto refused = server.post("/api/jobs", comparison(1).dump());
  EXPECT_EQ(refused->status, 429);
  EXPECT_THAT(refused->body, HasSubstr("--queue"));
  server.post("/api/jobs/" + std::to_string(waits) + "/cancel");
  EXPECT_EQ(server.job(waits)["state"], "cancelled");
  EXPECT_EQ(server.submit(comparison(1)), 3);  // a refused job uses no id
}

TEST(Serve, TheTimeLimitEndsAJob) {
  const Scratch scratch;
  const Server server(scratch, {"--limit", "1s"});
  const Json job = server.wait_end(server.submit(long_comparison()));
  EXPECT_EQ(job["state"], "failed");
  EXPECT_THAT(job["message"].get<std::string>(), HasSubstr("--limit"));
}

TEST(Serve, SeveralJobsAtOnce) {
  const Scratch scratch;
  const Server server(scratch, {"--jobs", "2", "--queue", "0", "--short", "1h"});
  for (const int id : {1, 2}) {
    EXPECT_EQ(server.submit(long_comparison()), id);
    EXPECT_EQ(server.wait_running(id)["state"], "running");
  }
  EXPECT_EQ(server.job(1)["state"], "running");
  EXPECT_EQ(server.post("/api/jobs", comparison(1).dump())->status, 429);
}

TEST(Serve, EndingItInterruptsItsJobs) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  {
    Server server(scratch);
    server.wait_running(server.submit(long_comparison()));
    server.submit(comparison(1));
    EXPECT_EQ(server.end(SIGINT), 130);
  }
  {
    Server server(scratch);
    EXPECT_EQ(server.job(1)["state"], "interrupted");
    EXPECT_EQ(server.job(2)["state"], "interrupted");
    EXPECT_EQ(server.post("/api/jobs/2/again")->status, 200);
    EXPECT_EQ(server.wait_end(2)["state"], "done");
    server.post("/api/jobs/1/again");
    server.wait_running(1);
    server.end(SIGKILL);  // after SIGKILL the server cannot record anything
  }
  // An incomplete record, as after a power failure during a write: the job is left out, and its id is not used again.
  std::filesystem::create_directories(scratch / "data/jobs/7");
  scratch.write("data/jobs/7/job.json", "{ \"schema\": ");
  const Server server(scratch);
  EXPECT_EQ(server.job(1)["state"], "interrupted");
  EXPECT_EQ(Json::parse(server.get("/api/jobs")->body).size(), 2U);
  EXPECT_EQ(server.submit(comparison(1)), 8);
}

TEST(Serve, GeneratesImagesFromACheckpoint) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  const Outcome trained =
      run_program("train --model mlp-gan --steps 2 --batch 4 --checkpoint " + (scratch / "run").string());
  ASSERT_EQ(trained.code, 0) << trained.err;
  std::filesystem::create_directories(scratch / "data/checkpoints");
  std::filesystem::copy(scratch / "run", scratch / "data/checkpoints/mine");
  const Server server(scratch, {"--checkpoint", (scratch / "run").string()});
  EXPECT_EQ(Json::parse(server.get("/api/choices")->body)["checkpoints"], Json::parse(R"(["mine", "run"])"));
  for (const char* name : {"run", "mine"}) {
    const int id = server.submit({{"kind", "generate"}, {"checkpoint", name}, {"count", 9}, {"seed", 3}});
    const Json job = server.wait_end(id);
    ASSERT_EQ(job["state"], "done") << job.dump();
    EXPECT_EQ(job["result"]["images"], 9);
    EXPECT_GT(job["result"]["total_s"], 0);
    EXPECT_GT(job["result"]["memory_bytes"], 0);
    const auto png = server.get("/jobs/" + std::to_string(id) + "/images.png");
    EXPECT_EQ(png->get_header_value("Content-Type"), "image/png");
    EXPECT_THAT(png->body, testing::StartsWith("\x89PNG"));
  }
  EXPECT_EQ(server.post("/api/jobs", R"({"kind":"generate","checkpoint":"../run","count":9,"seed":3})")->status, 400);
}

TEST(Serve, WhatItCannotServeItRefuses) {
  const Scratch scratch;
  const Server server(scratch);
  const auto refused = [&](const std::string& arguments, const std::vector<std::string>& parts) {
    const Outcome outcome = run_program("serve " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    for (const std::string& part : parts) EXPECT_THAT(outcome.err, HasSubstr(part)) << arguments;
  };
  const std::string other = " --data " + (scratch / "other").string();
  refused("--port " + std::to_string(server.port) + other, {std::to_string(server.port), "--port 0"});
  refused("--port 70000" + other, {"--port"});
  refused("--port 0 --data " + (scratch / "data").string(), {"another ganymede serve"});
  refused("--port 0 --data /dev/null/x", {"--data"});
  refused("--port 0 --limit soon" + other, {"--limit"});
  refused("--port 0 --limit 0s" + other, {"--limit"});
  refused("--port 0 --short 0s" + other, {"--short"});
  refused("--port 0 --jobs 0" + other, {"--jobs"});
  refused("--port 0 --checkpoint " + (scratch / "none").string() + other, {"--checkpoint", "none"});
}

}  // namespace
}  // namespace ganymede::cli
