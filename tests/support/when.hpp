#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

/// Is there in a program that AddressSanitizer watches. (Tests are compiled once, and linked with and without it.)
extern "C" [[gnu::weak]] int __asan_address_is_poisoned(const volatile void* address);

/// Skips the test that says it in a build with AddressSanitizer, where a program computes several times as long. `why`
/// is a string literal that says what hinders the test there, or which shorter tests take the same paths.
#define NOT_SANITIZED(why) \
  if (__asan_address_is_poisoned != nullptr) GTEST_SKIP() << "not under the sanitizers: " why

/// Skips the test that says it, a training of minutes, unless GANYMEDE_LONG_TESTS is set in the environment, as `./test
/// --all` does.
#define LONG_TEST() \
  if (std::getenv("GANYMEDE_LONG_TESTS") == nullptr) GTEST_SKIP() << "a long training, which `./test --all` runs"
