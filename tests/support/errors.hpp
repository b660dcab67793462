#pragma once
// Lets tests check the type and the message of an error.

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace ganymede {

/// The message of the `Error` that `work` throws; fails the test and returns "" if it throws none.
template <class Error, class Work>
std::string message_of(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace ganymede
