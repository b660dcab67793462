#include "serve/generator_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "common/errors.hpp"
#include "support/errors.hpp"

namespace ganymede::serve {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Le;

/// Draws the seed as text, and keeps the sizes of batches. While it is held, it draws nothing.
class Painter {
 public:
  std::vector<std::string> draw(std::span<const std::uint64_t> seeds) {
    ++begun;
    const std::lock_guard lock(held_);
    sizes.push_back(seeds.size());
    if (seeds[0] == 666) throw std::runtime_error("out of paint");
    std::vector<std::string> images;
    for (const std::uint64_t seed : seeds) images.push_back("image " + std::to_string(seed));
    return images;
  }
  std::unique_lock<std::mutex> hold() { return std::unique_lock(held_); }

  /// Waits until it has been asked for so many batches.
  void until_begun(int count) const {
    while (begun < count) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  std::vector<std::size_t> sizes;
  std::atomic<int> begun = 0;

 private:
  std::mutex held_;
};

class GeneratorServers : public testing::Test {
 protected:
  void serve(GeneratorOptions options) {
    options.listen = "127.0.0.1:0", options.model = "dcgan-32", options.version = 2000;
    server_ = std::make_unique<GeneratorServer>(
        options, [this](std::span<const std::uint64_t> seeds) { return painter_.draw(seeds); });
  }
  httplib::Result post(const std::string& body) const {
    return httplib::Client(server_->address()).Post("/generate", body, "application/json");
  }
  std::string get(const char* path) const { return httplib::Client(server_->address()).Get(path)->body; }
  /// Asks for images of these seeds at once.
  std::vector<std::future<httplib::Result>> ask(int count) {
    std::vector<std::future<httplib::Result>> answers;
    for (int seed = 0; seed < count; ++seed)
      answers.push_back(
          std::async(std::launch::async, [this, seed] { return post("{\"seed\": " + std::to_string(seed) + "}"); }));
    return answers;
  }
  /// Waits until so many requests wait for a batch.
  void until_waiting(int count) const {
    while (get("/metrics").find("_waiting " + std::to_string(count) + "\n") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  Painter painter_;
  std::unique_ptr<GeneratorServer> server_;
};

TEST_F(GeneratorServers, AnswerWithTheImageOfTheSeed) {
  serve({});
  const auto answer = post(R"({"seed": 7, "model": "dcgan-32", "version": 2000})");
  EXPECT_EQ(answer->body, "image 7");
  EXPECT_EQ(answer->get_header_value("Content-Type"), "image/png");
  EXPECT_EQ(answer->get_header_value("X-Model"), "dcgan-32 2000");
  EXPECT_EQ(post("")->get_header_value("X-Seed"), "2");  // the second request, which says none
  EXPECT_THAT(get("/health"), HasSubstr(R"("model":"dcgan-32","version":2000)"));
}

TEST_F(GeneratorServers, DrawWhatWaitsInBatches) {
  serve({.largest_batch = 4});
  std::vector<std::future<httplib::Result>> answers;
  {
    const auto held = painter_.hold();
    auto first = ask(1);
    painter_.until_begun(1);
    answers = ask(8);
    until_waiting(8);
    answers.push_back(std::move(first[0]));
  }
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(answers[i].get()->body, "image " + std::to_string(i));
  answers[8].get();
  EXPECT_THAT(painter_.sizes, AllOf(Each(Le(4U)), testing::Contains(4U)));
  const std::string metrics = get("/metrics");
  EXPECT_THAT(metrics, AllOf(HasSubstr("requests_total{code=\"200\"} 9\n"), HasSubstr("images_total 9\n"),
                             HasSubstr("latency_seconds_bucket{le=\"+Inf\"} 9\n")));
}

TEST_F(GeneratorServers, RefuseWhatIsTooMuchOrWrong) {
  serve({.largest_batch = 1, .queue = 2, .timeout = Seconds{1}});  // more than a busy machine lets a thread wait
  EXPECT_THAT(post("{\"seed\": -1}")->body, HasSubstr("/seed: found -1"));
  EXPECT_EQ(post("{\"seed\": -1}")->status, 400);
  EXPECT_EQ(post("{\"version\": 3}")->status, 400);
  EXPECT_EQ(post("\xff")->status, 400);  // whose message is JSON all the same
  EXPECT_EQ(post("{\"size\": 3}")->status, 400);
  EXPECT_EQ(post(std::string(5000, ' '))->status, 413);
  EXPECT_EQ(httplib::Client(server_->address()).Get("/metrics", {{"Range", "bytes=0-1"}})->status, 416);
  EXPECT_EQ(httplib::Client(server_->address()).Get("/generate")->status, 404);
  EXPECT_EQ(post("{\"seed\": 666}")->status, 500);
  EXPECT_THAT(get("/metrics"),
              AllOf(HasSubstr("{code=\"400\"} 5\n"), HasSubstr("{code=\"413\"} 1\n"), HasSubstr("{code=\"500\"} 1\n")));
  std::vector<std::future<httplib::Result>> answers;
  {
    const auto held = painter_.hold();
    answers = ask(1);
    painter_.until_begun(2);
    auto more = ask(2);
    until_waiting(2);
    const auto refused = post("");
    EXPECT_EQ(refused->status, 503);
    EXPECT_EQ(refused->get_header_value("Retry-After"), "1");
    for (auto& one : more) answers.push_back(std::move(one));
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  }
  EXPECT_EQ(answers[0].get()->status, 200);
  EXPECT_EQ(answers[1].get()->status, 504);
  EXPECT_EQ(answers[2].get()->status, 504);
}

TEST(GeneratorServer, RefusesAnAddressThatIsTaken) {
  const auto draw = [](std::span<const std::uint64_t> seeds) { return std::vector<std::string>(seeds.size()); };
  const GeneratorServer first({.listen = "127.0.0.1:0"}, draw);
  const std::string taken = first.address().substr(first.address().find("//") + 2);
  EXPECT_THAT(message_of<ConfigError>([&] { GeneratorServer({.listen = taken}, draw); }),
              HasSubstr("--listen: " + taken + ": cannot listen there"));
}

}  // namespace
}  // namespace ganymede::serve
