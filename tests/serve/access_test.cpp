#include <gtest/gtest.h>

#include <set>

#include "serve/doorkeeper.hpp"

namespace ganymede::serve {
namespace {

const std::string kToken = "0123456789abcdef";

Caller good() {
  return {.method = "GET",
          .host = "127.0.0.1:8765",
          .origin = "",
          .authorization = "",
          .token = kToken,
          .path = "/jobs/3/report.html",
          .key = ""};
}

TEST(Access, TokensAreLongAndNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string token = random_token();
    EXPECT_EQ(token.size(), 64U);
    EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(seen.insert(token).second);
  }
}

TEST(Access, AHostIsTheAddressThatIsListenedAt) {
  for (const char* name : {"127.0.0.1:9", "localhost:9"}) EXPECT_TRUE(is_our_name(name, "127.0.0.1", 9)) << name;
  for (const char* name : {"", ":9", "127.0.0.1", "127.0.0.2:9", "127.0.0.1:19", "elsewhere.example:9"})
    EXPECT_FALSE(is_our_name(name, "127.0.0.1", 9)) << name;
  EXPECT_TRUE(is_our_name("127.0.0.1", "127.0.0.1", 80));
  EXPECT_TRUE(is_our_name("[::1]:9", "::1", 9));
  for (const char* name : {"10.0.0.7:9", "[fe80::1]:9", "localhost:9"}) EXPECT_TRUE(is_our_name(name, "0.0.0.0", 9));
  EXPECT_FALSE(is_our_name("elsewhere.example:9", "0.0.0.0", 9));
  EXPECT_TRUE(is_our_name("node7:9", "node7", 9));
}

TEST(Access, SecretsAreComparedWhole) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("bbc", "abc"));
  EXPECT_FALSE(same_secret("ab", "abc"));
  EXPECT_FALSE(same_secret("", "abc"));
}

TEST(Access, TheTokenMayComeInTwoWays) {
  const Gate gate(kToken, 8765);
  EXPECT_EQ(gate.judge(good()), Verdict::welcome);
  Caller caller = good();
  caller.token = "";
  EXPECT_EQ(gate.judge(caller), Verdict::no_token);
  caller.authorization = "Bearer " + kToken;
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);
  caller.authorization = "Basic " + kToken;
  EXPECT_EQ(gate.judge(caller), Verdict::no_token);
}

TEST(Access, OtherTokensAreRefused) {
  const Gate gate(kToken, 8765);
  Caller caller = good();
  for (const std::string& wrong :
       {std::string(), kToken + "0", kToken.substr(1), std::string(16, '0'), "X" + kToken.substr(1)}) {
    caller.token = wrong;
    EXPECT_EQ(gate.judge(caller), Verdict::no_token) << wrong;
  }
}

TEST(Access, HostMustBeOurs) {
  for (const char* host : {"127.0.0.1:8765", "localhost:8765"})
    EXPECT_TRUE(is_our_name(host, "127.0.0.1", 8765)) << host;
  for (const char* host : {"", "127.0.0.1", "localhost", "127.0.0.1:80", "example.com:8765",
                           "127.0.0.1:8765.example.com", "0.0.0.0:8765", "[::1]:8765"})
    EXPECT_FALSE(is_our_name(host, "127.0.0.1", 8765)) << host;
  EXPECT_TRUE(is_our_name("127.0.0.1", "127.0.0.1", 80)) << "browsers leave out port 80";
}

TEST(Access, WhatChangesSomethingMustComeFromOurPage) {
  const Gate gate(kToken, 8765);
  Caller caller = good();
  caller.method = "POST";
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);  // a program; browsers send Origin with every POST
  caller.origin = "http://127.0.0.1:8765";
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);
  for (const char* origin :
       {"null", "http://127.0.0.1:8766", "https://127.0.0.1:8765", "http://example.com", "http://localhost:8765"}) {
    caller.origin = origin;
    EXPECT_EQ(gate.judge(caller), Verdict::wrong_origin) << origin;
  }
}

// A browser sends no header for a frame or a picture. Its address has a key instead, which gives access to that file
// only.
TEST(Access, AKeyReadsOneFile) {
  const Gate gate(kToken, 8765);
  Caller caller = good();
  caller.token = "";
  caller.key = gate.key_of("/jobs/3/report.html");
  EXPECT_EQ(caller.key.size(), 64U);
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);
  caller.method = "POST";
  EXPECT_EQ(gate.judge(caller), Verdict::no_token);
  caller.method = "HEAD";
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);
  for (const char* path : {"/jobs/3/result.json", "/jobs/30/report.html", "/api/jobs", "/"}) {
    caller.path = path;
    EXPECT_EQ(gate.judge(caller), Verdict::no_token) << path;
  }
  caller.path = "/jobs/3/report.html";
  caller.key.back() = caller.key.back() == '0' ? '1' : '0';
  EXPECT_EQ(gate.judge(caller), Verdict::no_token);
  caller.key = Gate(kToken + "0", 8765).key_of(caller.path);  // another server's
  EXPECT_EQ(gate.judge(caller), Verdict::no_token);
}

TEST(Access, TheAddressHasTheToken) {
  EXPECT_EQ(Gate(kToken, 8765).address(), "http://127.0.0.1:8765/?token=" + kToken);
}

}  // namespace
}  // namespace ganymede::serve
