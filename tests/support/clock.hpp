/// A test that takes much longer than it should has found something enumerated, or looked at in pairs.
#pragma once

#include <gtest/gtest.h>

#include <ctime>

namespace longshore::test {

/// Fails where more of the processor's time has gone by than the given seconds, from here to the end of the scope. The
/// processor's, for others may be at work beside the tests; and far more than it takes, for sanitizers are slow.
class Clock {
 public:
  explicit Clock(double seconds = 60) : seconds_(seconds) {}
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock() { EXPECT_LT(double(std::clock() - start_) / CLOCKS_PER_SEC, seconds_); }

 private:
  double seconds_;
  std::clock_t start_ = std::clock();
};

}  // namespace longshore::test
