#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include "common/errors.hpp"
#include "serve/timed_server.hpp"
#include "support/errors.hpp"

namespace ganymede::serve {
namespace {

using testing::HasSubstr;

TEST(MetricsServer, ServesTheLastText) {
  MetricsServer server("127.0.0.1:0", "text/plain");
  server.show("before\n");
  server.show("spent 3\n");
  const std::string address = server.address();
  httplib::Client client(address.substr(0, address.rfind('/')));
  const auto answer = client.Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "spent 3\n");
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain");
}

// A page of another site could read it through a name that leads to this machine, and 1,200 ranges in one request made
// an answer a thousand times as large.
TEST(MetricsServer, AnswersItsOwnAddressAndNoRanges) {
  MetricsServer server("127.0.0.1:0", "text/plain");
  server.show("spent 3\n");
  const std::string address = server.address();
  httplib::Client client(address.substr(0, address.rfind('/')));
  EXPECT_EQ(client.Get("/metrics", {{"Host", "elsewhere.example"}})->status, 403);
  EXPECT_EQ(client.Get("/metrics", {{"Range", "bytes=0-1"}})->status, 416);
  std::string many = "bytes=0-1";
  for (int range = 1; range < 1200; ++range) many += ",0-1";
  for (const char* host : {"elsewhere.example", "127.0.0.1"})
    EXPECT_LT(client.Get("/metrics", {{"Range", many}, {"Host", host}})->body.size(), 100U) << host;
}

TEST(MetricsServer, RefusesWhatIsNoAddress) {
  for (const char* address : {"here", "127.0.0.1:70000", "127.0.0.1:", ":9x"})
    EXPECT_THAT(message_of<ConfigError>([&] { MetricsServer server(address, "text/plain"); }),
                HasSubstr("expected an address such as"))
        << address;
}

}  // namespace
}  // namespace ganymede::serve
