#include "longshore/model/throughput.hpp"

#include <cmath>
#include <limits>

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

TransferExpression parse(std::string_view text) { return TransferExpression::parse(text); }
double rate(std::string_view text, const ThroughputTable& table) {
  return evaluate(parse(text), table).megabytes_per_second;
}

/// An estimate of the paper's, and what its tables and rules give where that is another number.
struct Published {
  const char* where;
  const char* expression;
  double paper;
  int digits;  ///< after the point
  std::optional<double> arithmetic = {};
};

void compare(const ThroughputTable& machine, const std::vector<Published>& estimates) {
  for (const auto& [where, expression, paper, digits, arithmetic] : estimates) {
    const double ours = rate(expression, machine), half = 0.5 * std::pow(10, -digits);
    EXPECT_NEAR(ours, arithmetic.value_or(paper), arithmetic ? 0.005 : half) << where << ": " << expression;
    EXPECT_EQ(std::abs(ours - paper) > half, arithmetic.has_value()) << where << ": " << expression;
  }
}

// docs/performance.md has the arithmetic of those that do not follow.
TEST(Throughput, estimates_of_the_t3d_are_the_papers) {
  compare(cray_t3d(), {
                          {"3.4.1, 1Q1024", "1C1 o (1S0 || Nd || 0D1) o 1C1024", 25.0, 1},
                          {"5.1.1, 1Q1", "1C1 o (1S0 || Nd || 0D1) o 1C1", 27.9, 1, 27.78},
                          {"5.1.1, 1Q64", "1C1 o (1S0 || Nd || 0D1) o 1C64", 25.2, 1, 25.02},
                          {"5.1.1, 64Q1", "64C1 o (1S0 || Nd || 0D1) o 1C1", 17.1, 1, 18.09},
                          {"5.1.1, wQw", "wC1 o (1S0 || Nd || 0D1) o 1Cw", 14.2, 1, 14.11},
                          {"5.1.2, 1Q'1", "1S0 || Nd || 0D1", 70, 0, 69},
                          {"5.1.2, 1Q'64", "1S0 || Nadp || 0D64", 38, 0},
                          {"5.1.2, 16Q'64", "16S0 || Nadp || 0D64", 38, 0},
                          {"5.1.2, wQ'w", "wS0 || Nadp || 0Dw", 32, 0},
                          {"table 5, 1Q16", "1C1 o (1S0 || Nd || 0D1) o 1C16", 25.4, 1, 25.87},
                          {"table 5, 16Q1", "16C1 o (1S0 || Nd || 0D1) o 1C1", 18.4, 1, 20.47},
                          {"table 5, 1Q'16", "1S0 || Nadp || 0D16", 38.0, 1},
                          {"table 5, 16Q'1", "16S0 || Nadp || 0D1", 38.0, 1},
                          {"table 6, transpose", "1C1 o (1S0 || Nd || 0D1) o 1C1024[2]", 25.2, 1, 25.02},
                          {"table 6, FEM", "wC1 o (1S0 || Nd || 0D1) o 1Cw", 14.2, 1, 14.11},
                          {"table 6, SOR", "1C1 o (1S0 || Nd || 0D1) o 1C1", 27.9, 1, 27.78},
                          {"table 6, transpose, chained", "1S0 || Nadp || 0D1024[2]", 38.0, 1},
                          {"table 6, FEM, chained", "wS0 || Nadp || 0Dw", 32.0, 1},
                          {"table 6, SOR, chained", "1S0 || Nd || 0D1", 70.2, 1, 69},
                      });
}

TEST(Throughput, most_of_the_papers_t3d_has_a_network_of_70_point_2) {
  auto transfers = cray_t3d().transfers();
  for (auto& [transfer, megabytes_per_second] : transfers)
    if (transfer == network_data(2)) megabytes_per_second = 70.2;  // what table 6 has for SOR, and no other table
  compare({"Cray T3D", transfers, 2}, {
                                          {"1Q1", "1C1 o (1S0 || Nd || 0D1) o 1C1", 27.9, 1, 27.97},
                                          {"1Q64", "1C1 o (1S0 || Nd || 0D1) o 1C64", 25.2, 1},
                                          {"64Q1", "64C1 o (1S0 || Nd || 0D1) o 1C1", 17.1, 1, 18.17},
                                          {"wQw", "wC1 o (1S0 || Nd || 0D1) o 1Cw", 14.2, 1},
                                          {"1Q'1", "1S0 || Nd || 0D1", 70, 0},
                                          {"SOR, chained", "1S0 || Nd || 0D1", 70.2, 1},
                                      });
}

TEST(Throughput, estimates_of_the_paragon_are_the_papers) {
  compare(intel_paragon(), {
                               {"5.1.3, 1Q1", "1C1 o (1F0 || Nd || 0D1) o 1C1", 20.7, 1, 24.57},
                               {"5.1.3, 1Q64", "1C1 o (1F0 || Nd || 0D1) o 1C64", 16.1, 1},
                               {"5.1.3, 16Q64", "16C1 o (1F0 || Nd || 0D1) o 1C64", 14.9, 1, 13.57},
                               {"5.1.3, wQw", "wC1 o (1F0 || Nd || 0D1) o 1Cw", 16.2, 1},
                               {"5.1.4, 1Q'1", "1S0 || Nd || 0R1", 52, 0},
                               {"5.1.4, 1Q'64", "1S0 || Nadp || 0R64", 38, 0},
                               {"5.1.4, 16Q'64", "16S0 || Nadp || 0R64", 38, 0},
                               {"5.1.4, wQ'w", "wS0 || Nadp || 0Rw", 36, 0},
                               {"table 5, 1Q16", "1C1 o (1F0 || Nd || 0D1) o 1C16", 18.3, 1, 18.19},
                               {"table 5, 16Q1", "16C1 o (1F0 || Nd || 0D1) o 1C1", 20.7, 1, 19.13},
                               {"table 5, 1Q'16", "1S0 || Nadp || 0R16", 32, 0, 45},
                               {"table 5, 16Q'1", "16S0 || Nadp || 0R1", 42, 0, 44.88},
                           });
}

TEST(Throughput, the_bottleneck_is_what_takes_the_most_of_the_time) {
  const auto packed = evaluate(parse("64C1 o (1S0 || Nd || 0D1) o 1C64"), cray_t3d());
  ASSERT_EQ(packed.parts.size(), 5u);
  EXPECT_EQ(packed.parts[packed.bottleneck].name, "64C1");
  const double seconds = 1 / 33.3 + 1 / 69. + 1 / 67.9;
  EXPECT_DOUBLE_EQ(packed.megabytes_per_second, 1 / seconds);
  const double shares[] = {1 / 33.3 / seconds, 0, 1 / 69. / seconds, 0, 1 / 67.9 / seconds};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_DOUBLE_EQ(packed.parts[i].share_of_time, shares[i]) << i;
  EXPECT_EQ(packed.parts[1].megabytes_per_second, 126);

  // Of a slow member that is a sequence, what takes the most of it: not the slowest of the members that are basic.
  const auto overlapped = evaluate(parse("(64C1 o 1C1 o 1C1) || Nd@4"), cray_t3d());
  EXPECT_EQ(overlapped.parts[overlapped.bottleneck].name, "64C1");
  EXPECT_EQ(overlapped.parts[3].share_of_time, 0);
}

TEST(Throughput, what_is_not_in_the_table_comes_from_what_is) {
  const ThroughputTable table("toy",
                              {{local_copy(1, 1), 100},
                               {local_copy(4, 1), 50},
                               {local_copy(64, 1), 25},
                               {local_copy(1, 4), 40},
                               {local_copy({64, 4}, 1), 80},
                               {load_send(1), 10},
                               {receive_deposit(ReferencePattern::by_index), 7},
                               {network_data(), 60},
                               {network_data(4), 30}},
                              2);
  const auto at = [&](std::string_view text) {
    const auto [rate, measured] = table.rate(parse(text).transfer());
    std::string from;
    for (const auto& one : measured) from += one.to_string() + " ";
    return std::pair(rate, from);
  };
  EXPECT_EQ(at("4C1"), std::pair(50.0, std::string("4C1 ")));
  EXPECT_EQ(at("65C1"), std::pair(25.0, std::string("64C1 ")));
  EXPECT_EQ(at("16C1").second, "4C1 64C1 ");
  EXPECT_DOUBLE_EQ(at("16C1").first, 2 / (1 / 50. + 1 / 25.));  // halfway from 4 to 64, in logarithms
  EXPECT_DOUBLE_EQ(at("2C1").first, 2 / (1 / 100. + 1 / 50.));  // contiguous is a stride of 1
  EXPECT_EQ(at("64[4]C1").first, 80);
  EXPECT_EQ(at("64[6]C1").second, "64[4]C1 ");
  EXPECT_EQ(at("64[3]C1").second, "64C1 ");
  EXPECT_DOUBLE_EQ(at("16[4]C1").first, 2 / (1 / 100. + 1 / 80.));  // contiguous is a stride of one block
  EXPECT_EQ(at("Nd").first, 60);
  EXPECT_DOUBLE_EQ(at("Nd@3").first, 2 / (1 / 60. + 1 / 30.));
  EXPECT_DOUBLE_EQ(at("Nd@8").first, 15);

  for (const auto& [missing, has] :
       {std::pair("64S0", "of S its table has 1S0"), std::pair("4C4", "of C its table has 1C1, 4C1"),
        std::pair("wC1", "64[4]C1"), std::pair("0D1", "of D its table has 0Dω"),
        std::pair("Nd@1", "of Nd its table has Nd, Nd@4"), std::pair("Nadp", "of Nadp its table has none")})
    expect_error(ErrorKind::argument, {"no figure for " + parse(missing).to_string() + " of toy", has},
                 [&, missing = missing] { rate(missing, table); });
}

TEST(Throughput, both_sides_can_lie_between) {
  const ThroughputTable table(
      "toy", {{local_copy(1, 1), 100}, {local_copy(1, 4), 50}, {local_copy(4, 1), 40}, {local_copy(4, 4), 20}});
  EXPECT_DOUBLE_EQ(rate("2C2", table), 4 / (1 / 100. + 1 / 50. + 1 / 40. + 1 / 20.));
}

TEST(Throughput, a_broken_constraint_slows_down_what_goes_on_at_the_same_time) {
  // 3.4.1: a node that sends and receives at once reads and writes its memory, 2 |xQy| < |0Cx|.
  const auto t3d = cray_t3d();
  const auto with = [&](double megabytes_per_second) {
    return ThroughputTable(
        "Cray T3D", t3d.transfers(), 2,
        {{"memory", {{TransferKind::load_send}, {TransferKind::receive_deposit}}, megabytes_per_second}});
  };
  EXPECT_EQ(rate("1S0 || Nd || 0D1", with(138)), 69);
  const auto slowed = evaluate(parse("1S0 || Nd || 0D1"), with(100));
  EXPECT_EQ(slowed.megabytes_per_second, 50);
  EXPECT_EQ(slowed.parts[slowed.bottleneck].name, "memory");
  EXPECT_EQ(slowed.parts[slowed.bottleneck].megabytes_per_second, 50);
  EXPECT_EQ(slowed.parts[slowed.bottleneck].share_of_time, 1);
  EXPECT_DOUBLE_EQ(rate("1C1 o (1S0 || Nd || 0D1) o 1C1", with(100)), 1 / (2 / 93. + 1 / 50.));
  EXPECT_EQ(rate("1S0", with(100)), 100);  // by itself
  // One after the other they do not meet: each may have all of it.
  EXPECT_DOUBLE_EQ(rate("1S0 o Nd o 0D1", with(100)), 1 / (1 / 100. + 1 / 69. + 1 / 100.));
  // Pipelined with something else, two steps take turns, and the bytes of both count.
  EXPECT_DOUBLE_EQ(rate("(1S0 o 0D1) || Nd", with(100)), 50);

  // None of the shipped ones is broken by the paper's own transfers.
  EXPECT_EQ(rate("1S0 || Nd || 0R1", intel_paragon()), 52);
  EXPECT_EQ(rate("1C1", intel_paragon()), 67.6);
}

TEST(Throughput, tables_are_checked) {
  const auto table = [](std::vector<MeasuredTransfer> transfers, std::vector<ResourceConstraint> constraints = {},
                        double congestion = 1) {
    return [=] { ThroughputTable("toy", transfers, congestion, constraints); };
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {0., -1., infinity, std::nan(""), 1e-300})
    expect_error(ErrorKind::argument, {"1C1 of toy", "positive and finite"}, table({{local_copy(1, 1), bad}}));
  expect_error(ErrorKind::argument, {"Nd is twice"}, table({{network_data(2), 1}, {network_data(), 1}}, {}, 2));
  expect_error(ErrorKind::argument, {"S writes 0"}, table({{{TransferKind::load_send, 1, 1, {}}, 1}}));
  expect_error(ErrorKind::argument, {"a congestion of 0"}, table({}, {}, 0));
  expect_error(ErrorKind::argument, {"resource bus of toy", "0.0"}, table({}, {{"bus", {}, 0}}));
  expect_error(ErrorKind::argument, {"a byte of S", "bus", "not negative"},
               table({}, {{"bus", {{TransferKind::load_send, -1}}, 1}}));
}

}  // namespace
}  // namespace longshore
