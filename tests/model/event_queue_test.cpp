#include "model/event_queue.hpp"

#include <gtest/gtest.h>

#include <queue>
#include <random>

namespace longshore::test {
namespace {

struct Numbered {
  double time = 0;
  int number = 0;
  bool operator<(const Numbered& other) const {  // for std::priority_queue: the largest comes first
    return std::pair(other.time, other.number) < std::pair(time, number);
  }
};

TEST(EventQueue, events_come_in_their_order_and_those_of_one_time_as_they_were_pushed) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    EventQueue<Numbered> events;
    std::priority_queue<Numbered> plain;
    double now = 0;
    int number = 0;
    for (int k = 0; k < 2000; ++k) {
      if (plain.empty() || random() % 5 < 2 + unsigned(i % 2)) {
        const double steps[] = {0, 0, 1, 1e-9, 1e6, 1e-300};
        const Numbered event{now + steps[random() % 6] * double(random() % 4), number++};
        events.push(event), plain.push(event);
        continue;
      }
      const auto expected = plain.top(), found = events.pop();
      plain.pop();
      now = expected.time;
      ASSERT_EQ(found.number, expected.number);
      ASSERT_EQ(found.time, expected.time);
      ASSERT_EQ(events.empty(), plain.empty());
    }
  }
}

}  // namespace
}  // namespace longshore::test
