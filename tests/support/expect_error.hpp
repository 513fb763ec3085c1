/// Errors are part of the behaviour: their kind, and the words that help.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "longshore/core/error.hpp"

namespace longshore::test {

/// Expects f() to throw an `Error` of this kind whose message contains all of these words.
template <class F>
void expect_error(ErrorKind kind, const std::vector<std::string>& words, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(int(error.kind()), int(kind)) << error.what();
    for (const auto& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "no \"" << word << "\" in: " << error.what();
    return;
  }
  ADD_FAILURE() << "no error" << (words.empty() ? "" : "; expected one about " + words[0]);
}

}  // namespace longshore::test
