// What the profile of communicators counts, merges and writes, without an MPI.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "profile/ledger.hpp"
#include "profile/report.hpp"

namespace longshore::profile {
namespace {

constexpr Index world = 8;

RankMap map(std::vector<Index> ranks) { return RankMap::of(ranks, world); }

Summary summary_of(const Ledger& ledger) {
  Summary summary;
  summary.family = "none", summary.world = world, summary.processes = 1;
  summary.run_s = 2, summary.profile_s = summary.profile_sum_s = 0.25;
  ledger.summary(summary);
  return summary;
}

const Usage* usage(const Summary& summary, const RankMap& local, const RankMap& remote = {}) {
  for (const Usage* entry : summary.usages.entries())
    if (entry->members == Roster{local, remote}) return entry;
  return nullptr;
}

TEST(RankProfile, CountsWhatIsAlive) {
  Ledger ledger;
  ledger.begin(1);
  auto* first = ledger.add("split", {map({1, 3, 5}), {}});
  auto* second = ledger.add("split", {map({1, 3, 5}), {}});
  ledger.duplicated("dup", first);
  ledger.hold(first);
  ledger.release(first), ledger.release(first);
  auto* third = ledger.add("cart", {map({1, 3, 5}), {}});
  ledger.release(second), ledger.release(third);
  const auto summary = summary_of(ledger);
  const auto* found = usage(summary, map({1, 3, 5}));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->communicators, 4);
  EXPECT_EQ(found->alive_communicators, 3);
  EXPECT_EQ(found->lists, 2);  // the duplicate shares its parent's, the third came when the first had gone
  EXPECT_EQ(found->calls, (std::map<std::string, Index>{{"cart", 1}, {"dup", 1}, {"split", 2}}));
}

TEST(RankProfile, CommunicatorsCountForTheirFirstMember) {
  Ledger ledger;
  ledger.begin(3);
  ledger.add("split", {map({1, 3, 5}), {}});
  const auto summary = summary_of(ledger);
  const auto* found = usage(summary, map({1, 3, 5}));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->communicators, 0);
  EXPECT_EQ(found->lists, 1);
  EXPECT_TRUE(found->calls.empty());
}

TEST(RankProfile, GroupsByTheirHandles) {
  Ledger ledger;
  ledger.begin(0);
  auto* comm = ledger.add("init", {RankMap::whole(world), {}});
  ledger.hold_group("group", comm, 77);
  ledger.hold_group("group", comm, 77);  // MPI may give the same handle again
  ledger.free_group(77);
  ASSERT_TRUE(ledger.group(77));
  EXPECT_EQ(*ledger.group(77), RankMap::whole(world));
  ledger.free_group(77);
  EXPECT_FALSE(ledger.group(77));
  ledger.add_group("incl", map({4, 2}), 77);
  ledger.add_group("incl", map({6}), 77);  // the one before was freed unseen
  EXPECT_EQ(*ledger.group(77), map({6}));
  ledger.free_group(5);  // of which nobody knows
  const auto summary = summary_of(ledger);
  EXPECT_EQ(usage(summary, RankMap::whole(world))->groups, 2);
  EXPECT_EQ(usage(summary, RankMap::whole(world))->lists, 1);
  EXPECT_EQ(usage(summary, map({4, 2}))->alive_groups, 1);
}

TEST(RankProfile, MembersThatAreNotKnownHere) {
  Ledger ledger;
  ledger.begin(1);
  auto* list = ledger.add_unknown("split");
  ledger.duplicated("dup", list);
  ledger.hold(list);
  EXPECT_FALSE(ledger.members(list));
  ledger.release(list), ledger.release(list);
  EXPECT_FALSE(ledger.members(ledger.add_unknown("split")));  // it is there again
  EXPECT_EQ(summary_of(ledger).lost, (std::map<std::string, Index>{{"dup", 1}, {"split", 2}}));
}

TEST(RankProfile, FurtherMembersAreLostWhereThereAreTooMany) {
  Ledger ledger(2);
  ledger.begin(0);
  ledger.add("split", {map({0, 1}), {}});
  ledger.add_group("incl", map({3, 2}), 5);
  EXPECT_FALSE(ledger.members(ledger.add("split", {map({0, 2}), {}})));
  ledger.add_group("excl", map({7}), 5);  // the one of this handle was freed unseen
  EXPECT_FALSE(ledger.group(5));
  ledger.add_group("union", map({0, 1}), 6);
  EXPECT_TRUE(ledger.members(ledger.add("split", {map({3, 2}), {}})));
  const auto summary = summary_of(ledger);
  EXPECT_EQ(summary.usages.entries().size(), 2u);
  EXPECT_EQ(summary.lost, (std::map<std::string, Index>{{"excl", 1}, {"split", 1}}));
  EXPECT_EQ(usage(summary, map({0, 1}))->groups, 1);
}

TEST(RankProfile, MembersThatShareSizeEndsAndMiddleAreToldApart) {
  std::set<std::size_t> few, many;
  for (Index i = 0; i < 100; ++i) {
    few.insert(hash({RankMap::of(std::array<Index, 5>{0, 100 + i, 500, 600 + i, 999}, 1000), {}}));
    const AffineRun runs[] = {{0, 1, 400}, {1000 + i, 1, 400}, {4000, 1, 200}, {5000 + i, 1, 400}, {9000, 1, 1}};
    many.insert(hash({RankMap::of_runs(runs, 10000), {}}));
  }
  EXPECT_EQ(few.size(), 100u);
  EXPECT_EQ(many.size(), 100u);
  EXPECT_NE(hash({map({1}), map({2})}), hash({map({1, 2}), {}}));
  EXPECT_EQ(hash({map({4, 5, 6}), {}}), hash({RankMap::of_nest(AffineNest::stride(4, 3, 1), world), {}}));
}

TEST(RankProfile, PredefinedOnesCountForWhatIsMadeOfThem) {
  Ledger ledger;
  ledger.begin(0);
  auto* self = ledger.add_predefined({map({0}), {}});
  EXPECT_EQ(usage(summary_of(ledger), map({0})), nullptr);
  ledger.duplicated("dup", self);
  ledger.hold(self);
  const auto summary = summary_of(ledger);
  ASSERT_NE(usage(summary, map({0})), nullptr);
  EXPECT_EQ(usage(summary, map({0}))->communicators, 1);
}

Summary several() {
  Ledger ledger;
  ledger.begin(0);
  ledger.add("split", {map({0, 2, 4}), {}});
  ledger.add("between", {map({0, 1}), map({5, 3})});
  ledger.add_group("incl", map({7, 1, 2}), 3);
  ledger.add_unknown("merge");
  return summary_of(ledger);
}

TEST(RankProfile, MergesEqualMembers) {
  Ledger other;
  other.begin(2);
  other.add("split", {map({0, 2, 4}), {}});
  other.add_group("incl", map({7, 1, 2}), 9);
  Summary sum = several();
  sum.merge(summary_of(other));
  EXPECT_EQ(sum.processes, 2);
  EXPECT_EQ(sum.usages.entries().size(), 3u);
  const auto* split = usage(sum, map({0, 2, 4}));
  EXPECT_EQ(split->communicators, 1);
  EXPECT_EQ(split->lists, 2);
  EXPECT_EQ(usage(sum, map({7, 1, 2}))->groups, 2);
  EXPECT_EQ(usage(sum, map({7, 1, 2}))->alive_groups, 1);
  EXPECT_NE(usage(sum, map({0, 1}), map({5, 3})), nullptr);
  EXPECT_DOUBLE_EQ(sum.profile_sum_s, 0.5);
  EXPECT_DOUBLE_EQ(sum.profile_s, 0.25);
}

TEST(RankProfile, BytesComeBack) {
  const Summary sum = several();
  const Summary read = Summary::from_bytes(sum.to_bytes(), world);
  EXPECT_EQ(read.to_bytes(), sum.to_bytes());
  EXPECT_EQ(json_report(read), json_report(sum));
  EXPECT_EQ(read.lost, (std::map<std::string, Index>{{"merge", 1}}));
}

TEST(RankProfile, DamagedBytesAreRefused) {
  const auto bytes = several().to_bytes();
  EXPECT_THROW(Summary::from_bytes(bytes, world + 1), Error);
  for (std::size_t n = 0; n < bytes.size(); n += 7)
    EXPECT_THROW(Summary::from_bytes(std::span(bytes).first(n), world), Error) << n;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto damaged = bytes;
    damaged[i] ^= std::byte(1 << i % 8);
    EXPECT_THROW(Summary::from_bytes(damaged, world), Error) << i;
  }
}

TEST(RankProfile, ReportsAlikeOnesInOneLine) {
  Ledger ledger;
  ledger.begin(0);
  for (Index row = 0; row < 4; ++row) ledger.add_group("incl", map({2 * row, 2 * row + 1}), std::uint64_t(row));
  const auto text = text_report(summary_of(ledger));
  EXPECT_NE(text.find("(and 3 alike); incl"), std::string::npos) << text;
  EXPECT_NE(text.find("0 (0) + 4 (4)"), std::string::npos) << text;
  EXPECT_NE(text.find("0 + 4"), std::string::npos) << text;
}

TEST(RankProfile, PublishTellsOfAFileThatCannotBeWritten) {
  const auto told = [](const std::string& file) {
    setenv("LONGSHORE_RANK_PROFILE", file.c_str(), 1);
    testing::internal::CaptureStderr();
    publish(several(), false);
    unsetenv("LONGSHORE_RANK_PROFILE");
    return testing::internal::GetCapturedStderr();
  };
  const std::string file = testing::TempDir() + "rank_profile_test.json", report = text_report(several());
  EXPECT_EQ(told(file), report);
  EXPECT_EQ(std::remove(file.c_str()), 0);
  const std::string nowhere = testing::TempDir() + "nowhere/at/all.json";
  EXPECT_EQ(told(nowhere), report + "The profile could not be written to " + nowhere + ": No such file or directory\n");
}

TEST(RankProfile, LargeListsPay) {
  constexpr Index many = Index{1} << 20;
  Summary summary;
  summary.family = "none", summary.world = many;
  Usage& usage = summary.usages.at({RankMap::whole(many), {}});
  usage.calls["init"] = 1, usage.communicators = 1, usage.processes = usage.lists = many;
  const auto json = json_report(summary);
  EXPECT_NE(json.find("\"list_bytes\": " + std::to_string(8 * many * many)), std::string::npos) << json;
  EXPECT_NE(json.find("\"map_bytes\": " + std::to_string(RankMap::whole(many).bytes() * many)), std::string::npos)
      << json;
  EXPECT_NE(text_report(summary).find("8796 GB"), std::string::npos) << text_report(summary);
}

}  // namespace
}  // namespace longshore::profile
