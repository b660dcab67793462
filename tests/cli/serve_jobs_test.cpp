// ganymede serve: jobs that give way, are named, compared and forgotten; trainings; files of the user's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <set>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "serve_client.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
std::string error_of(const httplib::Result& answer) { return Json::parse(answer->body).value("error", ""); }

TEST(ServeJobs, AFormIsCheckedWithoutAJob) {
  const Scratch scratch;
  const Server server(scratch);
  EXPECT_EQ(server.post("/api/check", comparison(1).dump())->status, 200);
  Json form = comparison(1);
  form["deadline"] = "60";
  const auto refused = server.post("/api/check", form.dump());
  EXPECT_EQ(refused->status, 400);
  const Json answer = Json::parse(refused->body);
  EXPECT_EQ(answer["at"], "/deadline");
  EXPECT_EQ(answer["error"], "form: /deadline: " + answer["problem"].get<std::string>());
  EXPECT_EQ(server.post("/api/jobs", form.dump())->body, refused->body);
  EXPECT_EQ(Json::parse(server.get("/api/jobs")->body).size(), 0U);
  EXPECT_EQ(Json::parse(server.post("/api/check", "{")->body).value("at", "none"), "line 1, column 2");
}

TEST(ServeJobs, ShortOnesDoNotWaitBehindLongOnes) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  const Server server(scratch, {"--short", "1s"});
  const auto in_lane = [&](int id, const std::string& lane) {
    return server.wait(id, [&](const Json& job) { return job.value("lane", "") == lane; })["state"];
  };
  const int first = server.submit(long_comparison());
  EXPECT_EQ(in_lane(first, "background"), "running");
  const int second = server.submit(long_comparison());
  EXPECT_EQ(in_lane(second, "held"), "running");
  EXPECT_EQ(server.wait_end(server.submit(comparison(1)))["state"], "done");
  EXPECT_EQ(server.job(first)["state"], "running");
  // The long ones take turns, and one that is held can be cancelled.
  EXPECT_EQ(in_lane(second, "background"), "running");
  EXPECT_EQ(in_lane(first, "held"), "running");
  EXPECT_EQ(in_lane(first, "background"), "running");
  EXPECT_EQ(in_lane(second, "held"), "running");
  server.post("/api/jobs/" + std::to_string(second) + "/cancel");
  EXPECT_EQ(server.wait_end(second)["state"], "cancelled");
  EXPECT_EQ(server.job(first)["state"], "running");
}

TEST(ServeJobs, HeldOnesCountAsWaiting) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  const Server server(scratch, {"--short", "1s", "--queue", "1"});
  const int first = server.submit(long_comparison());
  server.wait(first, [](const Json& job) { return job.value("lane", "") == "background"; });
  const int second = server.submit(long_comparison());
  server.wait(second, [](const Json& job) { return job.value("lane", "") == "held"; });
  const int third = server.submit(long_comparison());
  server.wait_running(third);
  EXPECT_EQ(server.post("/api/jobs", comparison(1).dump())->status, 429);
}

TEST(ServeJobs, AreNamedComparedAndForgotten) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  {
    const Server server(scratch);
    const int one = server.submit(comparison(2));
    Json longer = comparison(2);
    longer["workload"]["epochs"] = 2;
    const int two = server.submit(longer);
    for (const int id : {one, two}) EXPECT_EQ(server.wait_end(id)["state"], "done");
    const std::string hostile = "</script><img src=x onerror=alert(1)>\n\"";
    EXPECT_EQ(Json::parse(server.post("/api/jobs/1/name", Json{{"name", hostile}}.dump())->body)["name"], hostile);
    EXPECT_EQ(server.post("/api/jobs/1/name", Json{{"name", std::string(201, 'x')}}.dump())->status, 400);
    EXPECT_EQ(server.post("/api/jobs/1/name", R"({"name": 7})")->status, 400);
    EXPECT_EQ(server.post("/api/jobs/9/name", R"({"name": "x"})")->status, 404);

    const std::string text = Json::parse(server.get("/api/jobs/1/differences/2")->body)["text"];
    EXPECT_THAT(text, testing::AllOf(HasSubstr("aws us-east-1 on-demand"), HasSubstr("+"), HasSubstr(" %")));
    EXPECT_EQ(server.get("/api/jobs/1/differences/9")->status, 404);

    EXPECT_EQ(server.post("/api/jobs/2/forget")->status, 200);
    EXPECT_EQ(server.get("/api/jobs/2")->status, 404);
    EXPECT_EQ(server.post("/api/jobs/2/forget")->status, 404);
    EXPECT_FALSE(std::filesystem::exists(scratch / "data/jobs/2"));
    const int running = server.submit(long_comparison());
    server.wait_running(running);
    EXPECT_THAT(error_of(server.post("/api/jobs/3/forget")), HasSubstr("cancel it first"));
    EXPECT_THAT(error_of(server.get("/api/jobs/1/differences/3")), HasSubstr("no result to compare"));
  }
  const Server server(scratch);
  EXPECT_THAT(server.job(1)["name"].get<std::string>(), testing::StartsWith("</script>"));
}

TEST(ServeJobs, TwoPlansAreComparedAsDiffDoes) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  const Server server(scratch);
  Json plan = Json::parse(R"({
    "kind": "plan", "workload": { "trace": "recorded:dcgan-28-cpu", "batch_per_gpu": 64, "images": 1000000 },
    "catalogs": ["aws"], "gpus": ["V100"], "markets": ["on-demand"], "max_gpus": 1, "seed": 1 })");
  server.wait_end(server.submit(plan));
  plan["workload"]["images"] = 2'000'000;
  server.wait_end(server.submit(plan));
  const std::string text = Json::parse(server.get("/api/jobs/1/differences/2")->body)["text"];
  EXPECT_THAT(text, testing::AllOf(HasSubstr("before: job 1"), HasSubstr("/workload/images")));
  EXPECT_EQ(text.find((scratch / "data").string()), std::string::npos);  // folders of the machine are nobody's matter
  server.wait_end(server.submit(comparison(1)));
  EXPECT_THAT(error_of(server.get("/api/jobs/1/differences/3")), HasSubstr("different kinds"));
}

TEST(ServeJobs, ATrainingShowsLossesPicturesAndClouds) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  const Server server(scratch);
  const int id = server.submit(
      {{"kind", "train"}, {"model", "mlp-gan"}, {"batch", 4}, {"steps", 40}, {"seed", 1}, {"images", 1'000'000}});
  const Json job = server.wait_end(id);
  ASSERT_EQ(job["state"], "done") << job.dump();
  EXPECT_EQ(job["note"], "");
  ASSERT_FALSE(job["losses"].empty());
  EXPECT_EQ(job["losses"].back()[0], 40);
  EXPECT_GT(job["losses"].back()[1], 0);
  EXPECT_EQ(job["pictures"], Json::parse("[4, 8, 12, 16, 20, 24, 28, 32, 36]"));
  EXPECT_EQ(job["result"]["steps"], 40);
  httplib::Client stranger("127.0.0.1", server.port);
  const std::string picture = job["links"]["samples-000004.png"];
  EXPECT_THAT(stranger.Get(picture)->body, testing::StartsWith("\x89PNG"));
  EXPECT_EQ(stranger.Get("/jobs/1/samples-000004.png")->status, 403);
  EXPECT_EQ(server.get("/jobs/1/samples-000005.png")->status, 404);
  EXPECT_EQ(server.get("/jobs/1/samples-4.png")->status, 404);

  const Json clouds = Json::parse(server.get("/jobs/1/clouds.json")->body);
  EXPECT_EQ(clouds["images"], 1'000'000);
  EXPECT_GT(clouds["memory_bytes"], 0);
  std::set<std::string> providers;
  for (const Json& one : clouds["clouds"]) {
    providers.insert(one["provider"]);
    EXPECT_GT(one["time_s"]["median"], 0);
    EXPECT_GT(one["gpu_memory_bytes"], clouds["memory_bytes"]);
  }
  EXPECT_THAT(providers, testing::IsSupersetOf({"aws", "azure", "gcp", "ibm"}));

  // The trained generator makes images.
  EXPECT_EQ(job["checkpoint"], "job-1");
  EXPECT_THAT(Json::parse(server.get("/api/choices")->body)["checkpoints"], testing::Contains("job-1"));
  EXPECT_EQ(server.wait_end(
                server.submit({{"kind", "generate"}, {"checkpoint", "job-1"}, {"count", 4}, {"seed", 1}}))["state"],
            "done");
}

TEST(ServeJobs, ACancelledTrainingGoesOnFromItsCheckpoint) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  const Server server(scratch);
  const int id =
      server.submit({{"kind", "train"}, {"model", "mlp-gan"}, {"batch", 64}, {"steps", 1'000'000}, {"seed", 1}});
  const Json live = server.wait(id, [](const Json& job) { return job["losses"].size() > 2; });
  EXPECT_EQ(live["state"], "running");
  EXPECT_EQ(live["progress"]["what"], "steps");
  EXPECT_EQ(live["progress"]["count"], 1'000'000);
  server.post("/api/jobs/1/cancel");
  const Json cancelled = server.wait_end(id);
  EXPECT_EQ(cancelled["state"], "cancelled");
  ASSERT_TRUE(cancelled.contains("checkpoint"));
  const int before = cancelled["losses"].back()[0].get<int>();
  EXPECT_EQ(server.post("/api/jobs/1/again")->status, 200);
  const Json again = server.wait(id, [&](const Json& job) { return job["losses"].back()[0] > before; });
  EXPECT_EQ(again["losses"][0][0], live["losses"][0][0]);  // the earlier losses are kept
  server.post("/api/jobs/1/cancel");
  server.wait_end(id);
}

TEST(ServeJobs, FilesOfTheUserAreChosenAndForgotten) {
  NOT_SANITIZED("a job of the server yields to everything else on the machine, and takes minutes there");
  const Scratch scratch;
  const Outcome trained =
      run_program("train --model mlp-gan --steps 12 --batch 4 --trace " + (scratch / "trace.json").string());
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string trace = content_of(scratch / "trace.json");
  const Server server(scratch);
  const auto sent = server.post("/api/uploads?kind=trace&name=..%2F..%2Fa%3Cb%3E.json", trace);
  ASSERT_EQ(sent->status, 201) << sent->body;
  EXPECT_EQ(Json::parse(sent->body)["key"], "upload:1");
  const Json choices = Json::parse(server.get("/api/choices")->body);
  EXPECT_EQ(choices["uploads"][0]["name"], "../../a<b>.json");
  EXPECT_EQ(choices["workloads"].back()["trace"], "upload:1");
  Json form = comparison(1);
  form["workload"]["trace"] = "upload:1";
  form["workload"]["batch_per_gpu"] = 4;
  EXPECT_EQ(server.wait_end(server.submit(form))["state"], "done");
  EXPECT_EQ(content_of(scratch / "data/jobs/1/trace-1.json"), trace);
  EXPECT_EQ(server.post("/api/uploads/1/forget")->status, 200);
  EXPECT_EQ(server.post("/api/uploads/1/forget")->status, 404);
  EXPECT_THAT(error_of(server.post("/api/jobs", form.dump())), HasSubstr("form: /workload/trace"));
  EXPECT_EQ(server.get("/jobs/1/trace-1.json")->status, 404);
}

TEST(ServeJobs, UploadsAreBounded) {
  const Scratch scratch;
  const Server server(scratch);
  const std::string address = "/api/uploads?kind=platform&name=lab.json";
  EXPECT_EQ(server.post(address, std::string((8 << 20) + 1, ' '))->status, 413);
  EXPECT_EQ(server.post(address, std::string(8 << 20, ' '))->status, 400);  // not JSON
  EXPECT_EQ(server.post("/api/check", std::string((1 << 20) + 1, ' '))->status, 413);
  EXPECT_EQ(server.post("/api/uploads?kind=checkpoint&name=x", "{}")->status, 400);
  EXPECT_EQ(server.post("/api/uploads", "{}")->status, 400);
  EXPECT_EQ(server.client().Post(address, "{}", "text/plain")->status, 415);
  httplib::Client stranger("127.0.0.1", server.port);
  for (const char* path : {"/api/uploads?kind=trace&name=x", "/api/uploads/1/forget", "/api/check", "/api/jobs/1/name",
                           "/api/jobs/1/forget"})
    EXPECT_EQ(stranger.Post(path, "{}", "application/json")->status, 403) << path;
  EXPECT_EQ(stranger.Get("/api/jobs/1/differences/2")->status, 403);
  EXPECT_TRUE(std::filesystem::is_empty(scratch / "data/uploads"));
}

}  // namespace
}  // namespace ganymede::cli
