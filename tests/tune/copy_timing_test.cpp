#include "longshore/tune/copy_timing.hpp"

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

AddressRelation strided(Index words, Index step) {
  return AddressRelation::strided(8, std::vector<Index>{words}, std::vector<Index>{step}, std::vector<Index>{8});
}

CopyTimer::Options quickly() {
  CopyTimer::Options options;
  options.samples = 3, options.sample_seconds = 1e-6, options.seconds = 0.01;
  return options;
}

void expect_positive(const std::vector<double>& samples, std::size_t most) {
  EXPECT_GE(samples.size(), 1u);
  EXPECT_LE(samples.size(), most);
  for (const double seconds : samples) EXPECT_TRUE(seconds > 0 && seconds < 10) << seconds;
}

TEST(CopyTimer, times_in_every_situation_are_positive) {
  CopyTimer timer(3, 1 << 16);
  EXPECT_EQ(timer.threads(), 3);
  EXPECT_EQ(timer.bytes(), 1 << 16);
  for (const auto& relation : {strided(512, 8), strided(512, 128)})
    for (int at_once = 1; at_once <= 3; ++at_once)
      for (const bool cold : {false, true})
        for (const auto writer : {CopyTimer::Writer::nobody, CopyTimer::Writer::itself, CopyTimer::Writer::another}) {
          auto options = quickly();
          options.cold = cold, options.writer = writer;
          options.program.stores = cold ? Stores::streaming : Stores::cached;
          expect_positive(timer.time(relation, at_once, options), 3);
        }
}

TEST(CopyTimer, one_byte_is_timed_too) {
  CopyTimer timer(1, 1);
  expect_positive(
      timer.time(AddressRelation::strided(1, std::vector<Index>{1}, std::vector<Index>{1}, std::vector<Index>{1}), 1,
                 quickly()),
      3);
}

TEST(CopyTimer, takes_one_sample_at_least_and_none_after_its_time) {
  CopyTimer timer(1, 1 << 20);
  auto options = quickly();
  options.samples = 1'000'000, options.seconds = 0;
  EXPECT_EQ(timer.time(strided(1 << 17, 8), 1, options).size(), 1u);
  options.samples = 5, options.seconds = 60;
  EXPECT_EQ(timer.time(strided(64, 8), 1, options).size(), 5u);
}

TEST(CopyTimer, refuses_what_it_has_no_arrays_for) {
  for (const auto& [threads, bytes] : {std::pair{0, Index{8}}, {-1, Index{8}}, {1, Index{0}}, {1, Index{-8}}})
    expect_error(ErrorKind::argument, {"one thread or more"},
                 [threads = threads, bytes = bytes] { CopyTimer(threads, bytes); });
  CopyTimer timer(2, 64);
  const auto fits = strided(8, 8);
  for (const int at_once : {0, -1, 3})
    expect_error(ErrorKind::argument, {std::to_string(at_once) + " threads at once", "1 to 2"},
                 [&] { timer.time(fits, at_once, quickly()); });
  auto none = quickly();
  none.samples = 0;
  expect_error(ErrorKind::argument, {"samples must be 1 or more"}, [&] { timer.time(fits, 1, none); });
  expect_error(ErrorKind::argument, {"source bytes [0, 120)", "64 bytes"},
               [&] { timer.time(strided(8, 16), 1, quickly()); });
  expect_error(ErrorKind::argument, {"destination bytes [0, 72)"}, [&] { timer.time(strided(9, 0), 1, quickly()); });
  expect_error(ErrorKind::argument, {"source bytes [-56"}, [&] { timer.time(strided(8, -8), 1, quickly()); });
  CopyTimer alone(1, 64);
  auto another = quickly();
  another.writer = CopyTimer::Writer::another;
  expect_error(ErrorKind::argument, {"one thread", "needs two"}, [&] { alone.time(fits, 1, another); });
}

}  // namespace
}  // namespace longshore
