// ganymede serve with a full disk, with damaged files, with too many callers, and with other users on the machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "serve_client.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
// A cookie would go to all ports of the machine, and so to servers of its other users.
TEST(ServeAttack, ThePageHasNoSecretAndSetsNoCookie) {
  const Scratch scratch;
  const Server server(scratch);
  httplib::Client stranger("127.0.0.1", server.port);
  for (const std::string path : {"/", "/page.js", "/api.js", "/page.css"}) {
    const auto page = stranger.Get(path + (path == "/" ? "?token=" + server.token : ""));
    EXPECT_EQ(page->status, 200) << path;
    EXPECT_EQ(stranger.Get(path)->status, 200) << path;  // a reloaded page sends no token
    EXPECT_FALSE(page->has_header("Set-Cookie")) << path;
    EXPECT_EQ(page->body.find(server.token), std::string::npos) << path;
  }
}

TEST(ServeAttack, AFilesLinkReadsThatFileAlone) {
  const Scratch scratch;
  const Server server(scratch);
  const int id = server.submit(comparison(1));
  const Json links = server.wait_end(id)["links"];
  httplib::Client stranger("127.0.0.1", server.port);
  const std::string report = links["report.html"], result = links["result.json"];
  EXPECT_THAT(report, testing::StartsWith("/jobs/1/report.html?key="));
  EXPECT_EQ(report.find(server.token), std::string::npos);
  EXPECT_EQ(stranger.Get(report)->status, 200);
  EXPECT_EQ(stranger.Get("/jobs/1/result.json" + report.substr(report.find('?')))->status, 403);
  EXPECT_EQ(stranger.Get("/api/jobs/1" + report.substr(report.find('?')))->status, 403);
  EXPECT_EQ(stranger.Get(result)->body, server.get("/jobs/1/result.json")->body);
}

// Imitates a full disk by a process that must not write a single byte to a file.
TEST(ServeAttack, WhereNothingCanBeWrittenItServesOn) {
  const Scratch scratch;
  {
    Server server(scratch);
    server.wait_running(server.submit(long_comparison()));
    server.end(SIGKILL);
  }
  Server server(scratch, {"--limit", "2s"}, [] {  // the limit is the job's: it would continue without its journal
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
  });
  EXPECT_EQ(server.job(1)["state"], "interrupted");
  EXPECT_EQ(server.post("/api/jobs/1/again")->status, 200);
  EXPECT_EQ(server.wait_end(1)["state"], "failed");
  const auto refused = server.post("/api/jobs", comparison(1).dump());
  EXPECT_EQ(refused->status, 500);
  EXPECT_THAT(refused->body, HasSubstr("cannot be written"));
  EXPECT_EQ(Json::parse(server.get("/api/jobs")->body).size(), 1U);
  EXPECT_EQ(server.end(SIGTERM), 0);
}

// A file is read by a process of its own first, which has a quarter of the memory that the server may take.
TEST(ServeAttack, AFileThatTakesTooMuchEndsItsReaderAndNotTheServer) {
  NOT_SANITIZED("the sanitizers reserve terabytes");
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "data/uploads/trial-killed");
  Server server(scratch, {"--max-memory", "400MiB"});
  std::string text = "[{}";
  while (text.size() < 2'500'000) text += ",{}";
  const auto refused = server.post("/api/uploads?kind=platform&name=lab.json", text + "]");
  EXPECT_EQ(refused->status, 400);
  EXPECT_THAT(refused->body, HasSubstr("lab.json: reading it would take more than 100 MiB of memory"));
  EXPECT_EQ(server.post("/api/uploads?kind=platform&name=lab.json", run_program("example platform").out)->status, 201);
  std::vector<std::string> kept;
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "data/uploads"))
    kept.push_back(entry.path().filename());
  EXPECT_EQ(kept, std::vector<std::string>{"1.json"});
  EXPECT_EQ(server.end(SIGTERM), 0);
}

TEST(ServeAttack, AServerOfLittleMemoryReadsFilesAndNamesNoMemoryThatIsNotToBlame) {
  const Scratch scratch;
  Server server(scratch, {"--max-memory", "200MiB"});
  EXPECT_EQ(server.post("/api/uploads?kind=platform&name=lab.json", run_program("example platform").out)->status, 201);
  const auto refused = server.post("/api/uploads?kind=platform&name=lab.json", R"({"schema": "--max-memory"})");
  EXPECT_EQ(refused->status, 400);
  EXPECT_THAT(refused->body, testing::AllOf(HasSubstr("schema"), testing::Not(HasSubstr("would take"))));
  EXPECT_EQ(server.end(SIGTERM), 0);
}

TEST(ServeAttack, DamagedJobsAreLeftOutAtTheStart) {
  const Scratch scratch;
  const std::filesystem::path jobs = scratch / "data/jobs";
  const std::string good = R"({"schema": "ganymede.serve-job/1", "kind": "compare", "title": "a", "state": "running",
    "created": "2026-01-01T00:00:00Z", "seconds": 1, "message": "", "note": "", "peak_memory_bytes": 0})";
  const std::vector<std::string> records = {good,       "",
                                            "{}",       "[]",
                                            "null",     std::string(100'000, '['),
                                            "\xff\xfe", R"({"schema": "ganymede.serve-job/1", "kind": 7})"};
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::filesystem::create_directories(jobs / std::to_string(i + 1));
    scratch.write("data/jobs/" + std::to_string(i + 1) + "/job.json", records[i]);
  }
  std::filesystem::create_directories(jobs / "20/job.json");  // a folder in the record's place
  std::filesystem::create_directories(jobs / "2147483647");   // the largest number
  scratch.write("data/jobs/21", "a file in the folder's place");
  const Server server(scratch);
  const Json listed = Json::parse(server.get("/api/jobs")->body);
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]["state"], "interrupted");
  EXPECT_EQ(server.submit(comparison(1)), 22);
}

TEST(ServeAttack, WhatItKeepsIsForItsUserAlone) {
  const Scratch scratch;
  const std::filesystem::path data = scratch / "data";
  {
    const Server server(scratch);
    EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(data).permissions()), 0700U);
  }
  std::filesystem::permissions(data, std::filesystem::perms(0755));  // the user's wish
  scratch.write("data/notes.txt", "the user's own");
  const auto perms = std::filesystem::status(data / "notes.txt").permissions();
  const Server server(scratch);
  server.wait_end(server.submit(comparison(1)));
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(data).permissions()), 0755U);
  EXPECT_EQ(std::filesystem::status(data / "notes.txt").permissions(), perms);
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    if (entry.path().filename() == "notes.txt") continue;
    ++seen;
    EXPECT_EQ(static_cast<unsigned>(entry.status().permissions()) & 077U, 0U) << entry.path();
  }
  EXPECT_GT(seen, 5U);
}

// An existing folder's mode is its user's choice: one in which others could replace jobs is refused.
TEST(ServeAttack, AFolderToWhichOthersMayWriteIsRefusedAndStays) {
  const Scratch scratch;
  const std::filesystem::path data = scratch / "data";
  for (const std::string name : {"", "jobs", "checkpoints"}) {
    const std::filesystem::path folder = name.empty() ? data : data / name;
    std::filesystem::create_directories(folder);
    std::filesystem::permissions(data, std::filesystem::perms(0755));
    std::filesystem::permissions(folder, std::filesystem::perms(0775));
    const Outcome outcome = run_program("serve --port 0 --data " + data.string());
    EXPECT_EQ(outcome.code, 2) << folder;
    EXPECT_THAT(outcome.err, HasSubstr("--data: " + folder.string() + ": found a folder to which others may write"));
    EXPECT_THAT(outcome.err, HasSubstr("chmod go-w"));
    EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(folder).permissions()), 0775U);
    std::filesystem::permissions(folder, std::filesystem::perms(0755));
  }
  // One that is shared as /tmp is would be closed to others.
  std::filesystem::permissions(data, std::filesystem::perms(01777));
  const Outcome shared = run_program("serve --port 0 --data " + data.string());
  EXPECT_EQ(shared.code, 2);
  EXPECT_THAT(shared.err, testing::AllOf(HasSubstr("choose another, for example " + (data / "ganymede").string()),
                                         testing::Not(HasSubstr("chmod"))));
}

TEST(ServeAttack, AnotherUsersFolderIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's folder";
  const Scratch scratch;
  for (const char* name : {"data", "half/jobs"}) std::filesystem::create_directories(scratch / name);
  for (const char* name : {"data", "half/jobs"}) ASSERT_EQ(::chown((scratch / name).c_str(), 65534, 65534), 0);
  for (const char* name : {"data", "half"}) {
    const Outcome outcome = run_program("serve --port 0 --data " + (scratch / name).string());
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, testing::AllOf(HasSubstr("--data"), HasSubstr("of user 65534")));
  }
}

TEST(ServeAttack, JobsEndWhereTheDisksQuotaIsUsedUp) {
  const Scratch scratch;
  Server server(scratch, {"--disk", "2MiB"});
  const int id = server.submit(long_comparison());
  server.wait_running(id);
  scratch.write("data/jobs/" + std::to_string(id) + "/large", std::string(3 << 20, 'x'));  // as the job might
  const Json ended = server.wait_end(id);
  EXPECT_EQ(ended["state"], "failed");
  EXPECT_THAT(ended["message"], HasSubstr("beyond 2 MiB (--disk)"));
  const auto refused = server.post("/api/jobs", comparison(1).dump());
  EXPECT_EQ(refused->status, 429);
  EXPECT_THAT(refused->body, HasSubstr("(--disk): forget jobs"));
  EXPECT_EQ(server.post("/api/jobs/" + std::to_string(id) + "/forget")->status, 200);
  EXPECT_EQ(server.post("/api/jobs", comparison(1).dump())->status, 201);
}

TEST(ServeAttack, RefusalsAreLoggedWithoutTheToken) {
  const Scratch scratch;
  const Server server(scratch);
  httplib::Client stranger("127.0.0.1", server.port);
  EXPECT_EQ(stranger.Get("/api/jobs?token=wrong")->status, 403);
  EXPECT_EQ(server.get("/api/nothing?token=" + server.token)->status, 404);
  EXPECT_EQ(server.get("/api/jobs")->status, 200);
  const auto log_now = [&] { return content_of(scratch / "data/refused.log"); };
  // A line is written after its answer is sent.
  for (int i = 0; i < 100 && std::ranges::count(log_now(), '\n') < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::string log = log_now();
  EXPECT_THAT(log, HasSubstr(" 403 GET /api/jobs\n"));
  EXPECT_THAT(log, HasSubstr(" 404 GET /api/nothing\n"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2);
  EXPECT_EQ(log.find(server.token), std::string::npos);
}

// An earlier server let 1,000 idle connections delay an honest request by 278 s.
TEST(ServeAttack, AThousandIdleConnectionsKeepNobodyWaiting) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  ::setrlimit(RLIMIT_NOFILE, &files);
  const Scratch scratch;
  const Server server(scratch);
  std::vector<int> idle;
  for (int i = 0; i < 1000; ++i) idle.push_back(server.connect());
  httplib::Client client = server.client();
  client.set_read_timeout(5);  // half of the time that an idle connection may take
  const auto jobs = client.Get("/api/jobs");
  ASSERT_TRUE(jobs);
  EXPECT_EQ(jobs->status, 200);
  for (const int socket : idle) ::close(socket);
}

}  // namespace
}  // namespace ganymede::cli
