// Each request has a time limit, whatever is sent meanwhile, so that no slow caller keeps the server from others.

#include "serve/timed_server.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/units.hpp"

namespace ganymede::serve {
namespace {

class Connection {
 public:
  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(socket_); }

  bool send(const std::string& text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// Everything that the server sends until it ends the connection.
  std::string rest() const {
    std::string out;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::recv(socket_, buffer, sizeof buffer, 0)) > 0;)
      out.append(buffer, static_cast<std::size_t>(got));
    return out;
  }

 private:
  int socket_;
};

class TimedServerTest : public testing::Test {
 protected:
  TimedServerTest() {
    server_.new_task_queue = [] { return new httplib::ThreadPool(2); };
    server_.Get(
        "/", [](const httplib::Request&, httplib::Response& response) { response.set_content("here", "text/plain"); });
    server_.Post("/", [](const httplib::Request& request, httplib::Response& response) {
      response.set_content(std::to_string(request.body.size()), "text/plain");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~TimedServerTest() override {
    server_.stop();
    thread_.join();
  }

  /// Sends a byte every 50 ms, well within the time limit of one read, until the server ends the connection. That
  /// happens after about eight bytes, or fewer if this process is slow.
  static void trickle(const Connection& slow) {
    int sent = 0;
    for (; sent < 200 && slow.send("x"); ++sent) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_LT(sent, 200) << "the server still listens";
  }

  TimedServer server_{{.request = Seconds{0.4}, .answer = Seconds{2}}, {.head = 1 << 16, .connections = 50}};
  int port_ = 0;
  std::thread thread_;
};

TEST_F(TimedServerTest, AnswersARequestInPieces) {
  const Connection whole(port_);
  ASSERT_TRUE(whole.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n"));
  ASSERT_TRUE(whole.send(std::string(4000, 'a')));
  ASSERT_TRUE(whole.send(std::string(5000, 'b')));
  EXPECT_THAT(whole.rest(), testing::AllOf(testing::HasSubstr("200 OK"), testing::EndsWith("9000")));
}

// As `curl -X POST` sends it.
TEST_F(TimedServerTest, WaitsForNoBodyWhereNoLengthIsStated) {
  const Connection caller(port_);
  ASSERT_TRUE(caller.send("POST / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_THAT(caller.rest(), testing::AllOf(testing::HasSubstr("200 OK"), testing::EndsWith("\r\n\r\n0")));
}

TEST_F(TimedServerTest, EndsAHeaderThatNeverEnds) {
  const Connection slow(port_);
  ASSERT_TRUE(slow.send("GET / HTTP/1.1\r\nX: "));
  trickle(slow);
}

TEST_F(TimedServerTest, EndsABodyThatNeverEnds) {
  const Connection slow(port_);
  ASSERT_TRUE(slow.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"));
  trickle(slow);
}

// A length that is not stated, not a number or stated twice would let a thread wait for what may never come.
TEST_F(TimedServerTest, RefusesBodiesWithoutALength) {
  for (const auto& [header, status] :
       {std::pair("Transfer-Encoding: chunked", "411"), std::pair("Content-Length: x", "400"),
        std::pair("Content-Length: 0\r\nContent-Length: 10", "400"),
        std::pair("content-LENGTH: 99999999999999999999", "400")}) {
    const Connection caller(port_);
    ASSERT_TRUE(caller.send(std::string("POST / HTTP/1.1\r\nHost: a\r\n") + header + "\r\n\r\n"));
    EXPECT_THAT(caller.rest(), testing::StartsWith(std::string("HTTP/1.1 ") + status)) << header;
  }
  const Connection asks(port_);
  ASSERT_TRUE(asks.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_TRUE(asks.send("abc"));
  EXPECT_THAT(asks.rest(), testing::AllOf(testing::StartsWith("HTTP/1.1 100 "), testing::EndsWith("3")));
}

TEST_F(TimedServerTest, AnswersOthersWhileAllItsThreadsAreKept) {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([this] {
      const Connection slow(port_);
      if (slow.send("GET / HTTP/1.1\r\nX: ")) trickle(slow);
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Connection other(port_);
  ASSERT_TRUE(other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_THAT(other.rest(), testing::EndsWith("here"));
  for (std::thread& caller : callers) caller.join();
}

// The library alone accepts headers of any size; 100 MB of them took 2.5 GB of memory.
TEST_F(TimedServerTest, RefusesAHeadBeyondItsBound) {
  const std::string line = "GET / HTTP/1.1\r\nHost: a\r\n", filler = "X: ", end = "\r\n\r\n";
  const auto of_size = [&](std::size_t size) {
    return line + filler + std::string(size - line.size() - filler.size() - end.size(), 'x') + end;
  };
  // A head of 65,536 bytes is accepted; one byte more is refused, and so is a head without an end. A single header may
  // have at most 8 KiB.
  std::string many = line;
  while (many.size() < 65000) many += "X: " + std::string(95, 'x') + "\r\n";
  const Connection fits(port_);
  ASSERT_TRUE(fits.send(many + "Y: " + std::string(65536 - many.size() - 7, 'y') + end));
  EXPECT_THAT(fits.rest(), testing::HasSubstr("200 OK"));
  const Connection over(port_), endless(port_);
  ASSERT_TRUE(over.send(of_size(65537)));
  EXPECT_THAT(over.rest(), testing::StartsWith("HTTP/1.1 431 "));
  bool sent = true;
  for (int i = 0; i < 3000 && sent; ++i) sent = endless.send(std::string(1 << 20, 'x'));
  EXPECT_FALSE(sent) << "3 GB of headers were read";
}

// Four times as many callers as the limit allows send nothing or only a part; another caller is still answered.
TEST(Bounds, IdleConnectionsKeepNobodyWaiting) {
  TimedServer server{{.request = Seconds{600}, .answer = Seconds{2}}, {.head = 1 << 16, .connections = 50}};
  server.new_task_queue = [] { return new httplib::ThreadPool(2); };
  server.Get("/",
             [](const httplib::Request&, httplib::Response& response) { response.set_content("here", "text/plain"); });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread thread([&] { server.listen_after_bind(); });
  {
    std::vector<std::unique_ptr<Connection>> idle;
    for (int i = 0; i < 200; ++i) {
      idle.push_back(std::make_unique<Connection>(port));
      if (i % 2 == 0)
        idle.back()->send(i % 4 == 0 ? "GET / HTTP/1.1\r\nX: " : "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n");
    }
    const Connection other(port);
    ASSERT_TRUE(other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_THAT(other.rest(), testing::EndsWith("here"));
    // The server closed the first connection for later ones, long before its time limit.
    EXPECT_EQ(idle.front()->rest(), "");
    // The last connection is still open, and its request is answered.
    const Connection& last = *idle.back();
    ASSERT_TRUE(last.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_THAT(last.rest(), testing::EndsWith("here"));
  }
  server.stop();
  thread.join();
}

}  // namespace
}  // namespace ganymede::serve
