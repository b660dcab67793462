#include "serve/access.hpp"

#include <gtest/gtest.h>

#include <set>

namespace ganymede::serve {
namespace {

const std::string kToken = "0123456789abcdef";

Caller good() {
  return {.method = "GET", .host = "127.0.0.1:8765", .origin = "", .cookie = "", .authorization = "", .token = kToken};
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

TEST(Access, SecretsAreComparedWhole) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("bbc", "abc"));
  EXPECT_FALSE(same_secret("ab", "abc"));
  EXPECT_FALSE(same_secret("", "abc"));
}

TEST(Access, TheTokenMayComeInThreeWays) {
  const Gate gate(kToken, 8765);
  EXPECT_EQ(gate.judge(good()), Verdict::welcome);
  Caller caller = good();
  caller.token = "";
  EXPECT_EQ(gate.judge(caller), Verdict::no_token);
  caller.authorization = "Bearer " + kToken;
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);
  caller.authorization = "Basic " + kToken;
  EXPECT_EQ(gate.judge(caller), Verdict::no_token);
  caller.cookie = "a=b; ganymede-8765=" + kToken + "; c=d";
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);
  caller.cookie = gate.cookie().substr(0, gate.cookie().find(';'));
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);
}

TEST(Access, OtherTokensAreRefused) {
  const Gate gate(kToken, 8765);
  Caller caller = good();
  for (const std::string& wrong :
       {std::string(), kToken + "0", kToken.substr(1), std::string(16, '0'), "X" + kToken.substr(1)}) {
    caller.token = wrong;
    EXPECT_EQ(gate.judge(caller), Verdict::no_token) << wrong;
  }
  // Of a server at another port, or at the end of another cookie's name.
  for (const std::string cookie : {"ganymede-8766=", "xganymede-8765=", "ganymede-8765", "ganymede-87650="}) {
    caller.cookie = cookie + kToken;
    EXPECT_EQ(gate.judge(caller), Verdict::no_token) << cookie;
  }
}

TEST(Access, HostMustBeOurs) {
  const Gate gate(kToken, 8765);
  Caller caller = good();
  caller.host = "localhost:8765";
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);
  for (const char* host : {"", "127.0.0.1", "localhost", "127.0.0.1:80", "example.com:8765",
                           "127.0.0.1:8765.example.com", "0.0.0.0:8765", "[::1]:8765"}) {
    caller.host = host;
    EXPECT_EQ(gate.judge(caller), Verdict::wrong_host) << host;
  }
}

TEST(Access, BrowsersLeaveOutPort80) {
  Caller caller = good();
  caller.host = "127.0.0.1";
  EXPECT_EQ(Gate(kToken, 80).judge(caller), Verdict::welcome);
  EXPECT_EQ(Gate(kToken, 8080).judge(caller), Verdict::wrong_host);
}

TEST(Access, WhatChangesSomethingMustComeFromOurPage) {
  const Gate gate(kToken, 8765);
  Caller caller = good();
  caller.method = "POST";
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);  // a program: no browser leaves Origin out
  caller.origin = "http://127.0.0.1:8765";
  EXPECT_EQ(gate.judge(caller), Verdict::welcome);
  for (const char* origin :
       {"null", "http://127.0.0.1:8766", "https://127.0.0.1:8765", "http://example.com", "http://localhost:8765"}) {
    caller.origin = origin;
    EXPECT_EQ(gate.judge(caller), Verdict::wrong_origin) << origin;
  }
}

TEST(Access, TheCookieIsForThisServerAlone) {
  const std::string cookie = Gate(kToken, 8765).cookie();
  EXPECT_NE(cookie.find("HttpOnly"), std::string::npos);
  EXPECT_NE(cookie.find("SameSite=Strict"), std::string::npos);
  EXPECT_EQ(Gate(kToken, 8765).address(), "http://127.0.0.1:8765/?token=" + kToken);
}

}  // namespace
}  // namespace ganymede::serve
