#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

/// Is there in a program that AddressSanitizer watches. (Tests are compiled once, and linked with and without it.)
extern "C" [[gnu::weak]] int __asan_address_is_poisoned(const volatile void* address);

/// Whether this is a build with AddressSanitizer, where a test may repeat fewer times what takes the same path each
/// time.
inline bool is_sanitized() { return __asan_address_is_poisoned != nullptr; }

/// Skips the test that says it in a build with AddressSanitizer, where a program computes several times as long. `why`
/// is a string literal that says what hinders the test there, or which shorter tests take the same paths.
#define NOT_SANITIZED(why) \
  if (is_sanitized()) GTEST_SKIP() << "not under the sanitizers: " why

/// Skips the test that says it, a training of minutes, unless GANYMEDE_LONG_TESTS is set in the environment, as `./test
/// --all` does.
#define LONG_TEST() \
  if (std::getenv("GANYMEDE_LONG_TESTS") == nullptr) GTEST_SKIP() << "a long training, which `./test --all` runs"
