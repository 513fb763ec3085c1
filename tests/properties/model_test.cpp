// What is predicted of random plans: bytes and messages are those that the plan counts, times are positive and finite
// and grow with the bytes.
#include <cmath>
#include <map>

#include "longshore/model/predict.hpp"
#include "support/generators.hpp"
#include "support/profiles.hpp"
#include "support/simulate.hpp"

namespace longshore::test {
namespace {

RC_GTEST_PROP(Traffic, is_what_the_plan_counts, (const MoveSpec& spec)) {
  const auto plan = plan_of(spec);
  for (Index rank = 0; rank < plan.world_size(); ++rank) {
    const auto found = traffic(plan, rank);
    std::map<Index, Index> out, in, local, expected_out, expected_in, expected_local;
    for (const auto& motion : plan.sends(rank))
      if (motion.destination != rank) expected_out[motion.destination] += motion.elements * spec.element_bytes;
    for (const auto& motion : plan.receives(rank))
      (motion.source == rank ? expected_local : expected_in)[motion.source] += motion.elements * spec.element_bytes;
    for (const auto& item : found.outgoing) out[item.peer] += item.bytes;
    for (const auto& item : found.incoming) in[item.peer] += item.bytes;
    for (const auto& item : found.local) local[item.peer] += item.bytes;
    RC_ASSERT(out == expected_out);
    RC_ASSERT(in == expected_in);
    RC_ASSERT(local == expected_local);
  }
}

RC_GTEST_PROP(NodeVolume, is_what_the_plan_counts, (const MoveSpec& spec)) {
  const auto plan = plan_of(spec);
  const Index each = draw(1, plan.world_size() + 2);
  std::map<Index, NodeVolume> expected;
  for (Index rank = 0; rank < plan.world_size(); ++rank)
    for (const auto& motion : plan.sends(rank)) {
      const Index from = motion.source / each, to = motion.destination / each;
      if (from == to) continue;
      const Index bytes = motion.elements * spec.element_bytes;
      expected[from].bytes_out += bytes, ++expected[from].messages_out;
      expected[to].bytes_in += bytes, ++expected[to].messages_in;
    }
  for (Index node = 0; node * each < plan.world_size(); ++node) {
    const auto found = node_volume(plan, node, each);
    RC_ASSERT(found.node == node);
    RC_ASSERT(found.bytes_out == expected[node].bytes_out && found.bytes_in == expected[node].bytes_in);
    RC_ASSERT(found.messages_out == expected[node].messages_out && found.messages_in == expected[node].messages_in);
  }
}

/// Rates fall with what is touched, and more so where there are strides.
MachineProfile draw_profile() {
  std::vector<CopyRates> copies;
  double rate = double(draw(20'000, 50'000));
  for (const Index bytes : {Index{1} << 14, Index{1} << 20, CopyRates::beyond_caches}) {
    for (const bool from_another : {false, true}) {
      const double here = from_another ? rate / 2 : rate;
      for (const Index word : {4, 8})
        copies.push_back(
            copies_at({{"1C1", here}, {"64C1", here / 8}, {"1C64", here / 10}, {"wC1", here / 9}, {"1Cw", here / 11}},
                      {bytes, 1, from_another}, word));
    }
    rate /= double(draw(1, 5));
  }
  std::vector<ExchangeTimes> exchanges;
  for (const char* pair : {"same node", "other node"})
    for (const char* way : {"direct", "ring", "messages", "collective"}) {
      double seconds = 1e-6 * double(draw(1, 9));
      exchanges.push_back({way, pair, {}, 1e-8 * double(draw(0, 9))});
      for (const Index bytes : {1, 4096, 1 << 20}) exchanges.back().samples.push_back({bytes, seconds *= 3});
    }
  return profile_of(std::move(copies), std::move(exchanges));
}

std::map<std::string, double> seconds_by_way(const Prediction& told) {
  std::map<std::string, double> found;
  for (const auto& way : told.ways) {
    RC_ASSERT(std::isfinite(way.seconds) && way.seconds > 0);
    RC_ASSERT(std::isfinite(way.expression_megabytes_per_second) && way.expression_megabytes_per_second >= 0);
    found[way.way] = way.seconds;
  }
  RC_ASSERT(std::is_sorted(told.ways.begin(), told.ways.end(),
                           [](const auto& a, const auto& b) { return a.seconds < b.seconds; }));
  return found;
}

RC_GTEST_PROP(Predict, times_are_positive_and_grow_with_the_bytes, (const MoveSpec& spec)) {
  const auto plan = plan_of(spec);
  const auto profile = draw_profile();
  const Index rank = draw(0, plan.world_size() - 1), times = Index{1} << draw(1, 20);
  const auto made = traffic(plan, rank);
  auto more = made;
  for (auto* items : {&more.outgoing, &more.incoming, &more.local})
    for (auto& item : *items) item.bytes *= times;
  more.touched_bytes *= times;
  for (const Job& job : {Job{}, Job{0, 1}, Job{0, 2}}) {
    const auto told = predict(made, profile, job);
    RC_ASSERT(told.ways[0].bytes == Traffic::bytes(made.outgoing));
    const auto before = seconds_by_way(told), after = seconds_by_way(predict(more, profile, job));
    for (const auto& [way, seconds] : before) RC_ASSERT(after.at(way) >= seconds * (1 - 1e-9));
  }
  for (const int threads : {1, 3}) {
    const auto before = seconds_by_way(predict(in_one_process({made}), profile, Job{threads}));
    const auto after = seconds_by_way(predict(in_one_process({more}), profile, Job{threads}));
    RC_ASSERT(after.at("threads") >= before.at("threads") * (1 - 1e-9));
  }
}

}  // namespace
}  // namespace longshore::test
