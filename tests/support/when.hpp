#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

/// Skips the test that says it in a build with AddressSanitizer, where a program starts in a quarter of a second and
/// computes several times as long. `why` is a string literal that says what hinders the test there, or which shorter
/// tests take the same paths.
#ifdef __SANITIZE_ADDRESS__
#define NOT_SANITIZED(why) GTEST_SKIP() << "not under the sanitizers: " why
#else
#define NOT_SANITIZED(why) static_assert(sizeof(why) > 1)
#endif

/// Skips the test that says it, a training of minutes, unless GANYMEDE_LONG_TESTS is set in the environment, as `./test
/// --all` does.
#define LONG_TEST() \
  if (std::getenv("GANYMEDE_LONG_TESTS") == nullptr) GTEST_SKIP() << "a long training, which `./test --all` runs"
