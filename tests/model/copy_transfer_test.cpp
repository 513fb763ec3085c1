#include "longshore/model/copy_transfer.hpp"

#include <random>

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;
constexpr Index w = ReferencePattern::by_index;

TransferExpression parse(std::string_view text) { return TransferExpression::parse(text); }

TEST(CopyTransfer, built_in_code_or_parsed_it_is_the_same) {
  const auto packed = local_copy(64, 1) >> (load_send(1) | network_data() | receive_deposit(1)) >> local_copy(1, 64);
  EXPECT_EQ(packed, parse("64C1 o (1S0 || Nd || 0D1) o 1C64"));
  EXPECT_EQ(packed, parse("64C1∘(1S0‖Nd‖0D1)∘1C64"));
  EXPECT_EQ(packed, parse("\t((64 C 1o(((1S0))||Nd||0D1)))o 1C64\n"));
  EXPECT_EQ(packed.to_string(), "64C1 ∘ (1S0 ‖ Nd ‖ 0D1) ∘ 1C64");
  EXPECT_EQ(packed.to_string(Notation::ascii), "64C1 o (1S0 || Nd || 0D1) o 1C64");
  EXPECT_EQ(packed.read(), ReferencePattern(64));
  EXPECT_EQ(packed.write(), ReferencePattern(64));

  const auto chained = load_send(w) | network_address_data(4) | receive_store({64, 2});
  EXPECT_EQ(chained, parse("ωS0 ‖ Nadp@4 ‖ 0R64[2]"));
  EXPECT_EQ(chained, parse("wS0||Nadp @ 4||0R64 [ 2 ]"));
  EXPECT_EQ(chained.to_string(), "ωS0 ‖ Nadp@4 ‖ 0R64[2]");
  EXPECT_EQ(chained.to_string(Notation::ascii), "wS0 || Nadp@4 || 0R64[2]");
  EXPECT_EQ(parse("Nd@1.5").transfer(), network_data(1.5));
  EXPECT_EQ(parse("1F0").transfer(), fetch_send(1));
  EXPECT_NE(parse("Nd"), parse("Nd@1"));
}

TEST(CopyTransfer, compositions_of_one_kind_are_one_and_sequences_bind_tighter) {
  EXPECT_EQ(parse("1C1 o (1C1 o 1C64)").parts().size(), 3u);
  EXPECT_EQ(parse("1C1 o 1C1 || 64S0"), (local_copy(1, 1) >> local_copy(1, 1)) | load_send(64));
  EXPECT_EQ(parse("1C1 o 1C1 || 64S0").to_string(), "(1C1 ∘ 1C1) ‖ 64S0");
  EXPECT_EQ(TransferExpression::sequence({local_copy(1, 1)}), parse("(1C1)"));
}

TEST(CopyTransfer, errors_say_where_and_what_is_expected) {
  struct Case {
    const char* text;
    std::vector<std::string> words;
  };
  const Case cases[] = {
      {"", {"character 1\n", "expected '(' or a basic transfer", "\n  ^"}},
      {"1C1 o ", {"character 7\n", "basic transfer"}},
      {"1C1 1C1", {"character 5\n", "expected ∘ (o), ‖ (||) or the end", "\n      ^"}},
      {"(1S0 ‖ Nd", {"character 10\n", "or ')'", "(1S0 ‖ Nd\n           ^"}},
      {"1S0 | Nd", {"character 5\n", "‖ (||)"}},
      {"64X1", {"character 3\n", "expected C, S, F, R or D"}},
      {"64C", {"character 4\n", "expected a reference pattern: 0, 1, a stride, ω (w)"}},
      {"64[C1", {"character 4\n", "expected the words of a block"}},
      {"64[2C1", {"character 5\n", "expected ']'"}},
      {"ωC99999999999999999999", {"character 3\n", "64 bits"}},
      {"1C1 ∘ 64C64[64]", {"character 7\n", "blocks of 64 words with stride 64", "1 to 63"}},
      {"1[2]C1", {"character 1\n", "blocks of 2 words with stride 1"}},
      {"1S1", {"character 1\n", "S writes 0, a fixed place, and not 1"}},
      {"1D1", {"character 1\n", "D reads 0, a fixed place, and not 1"}},
      {"Nd@", {"character 4\n", "expected a congestion, as in Nd@2"}},
      {"Nd@0.5", {"character 1\n", "a congestion of 0.5", "at least 1"}},
      {"Nd@nan", {"congestion of nan"}},
      {"64C1 o 64C1", {"character 8\n", "64C1 reads pattern 64, and 64C1 before it writes 1"}},
      {"64C1 o (Nd || 1S0)", {"character 8\n", "Nd ‖ 1S0 reads pattern 0"}},
      {"1C1 \x1b[31m\xff\xce", {"character 5\n", "1C1 ?[31m??\n      ^"}},
  };
  for (const auto& [text, words] : cases) {
    SCOPED_TRACE(text);
    expect_error(ErrorKind::argument, words, [&text = text] { parse(text); });
  }
  expect_error(ErrorKind::argument, {"longer than 65536"}, [] { parse(std::string(65537, ' ')); });
}

TEST(CopyTransfer, what_cannot_be_is_refused_in_code_too) {
  expect_error(ErrorKind::argument, {"stride -2"}, [] { TransferExpression(local_copy(-2, 1)); });
  expect_error(ErrorKind::argument, {"blocks of 0 words"}, [] { TransferExpression(local_copy({64, 0}, 1)); });
  expect_error(ErrorKind::argument, {"C has no congestion"}, [] { TransferExpression({TransferKind::copy, 1, 1, 2}); });
  expect_error(ErrorKind::argument, {"no steps"}, [] { TransferExpression::sequence({}); });
  expect_error(ErrorKind::argument, {"no members"}, [] { TransferExpression::parallel({}); });
  expect_error(ErrorKind::argument, {"1C1 reads pattern 1", "1C64 before it writes 64"},
               [] { local_copy(1, 64) >> local_copy(1, 1); });
  expect_error(ErrorKind::argument, {"'X' is none of C, S, F, R, D, Nd and Nadp"}, [] { transfer_kind("X"); });
  EXPECT_EQ(transfer_kind("Nadp"), TransferKind::network_address_data);
}

TEST(CopyTransfer, nesting_has_a_limit) {
  const auto nested = [](int deep) { return std::string(deep, '(') + "1C1" + std::string(deep, ')'); };
  EXPECT_EQ(parse(nested(100)), local_copy(1, 1));
  expect_error(ErrorKind::argument, {"character 101\n", "nested more than 100 deep"}, [&] { parse(nested(101)); });
  expect_error(ErrorKind::argument, {"character 101\n"}, [&] { parse(std::string(60000, '(')); });
  // Each pair of parentheses can be two compositions.
  std::string text = "1C1";
  for (int i = 0; i < 60; ++i) text = "(" + text + " o 1C1 || 1C1)";
  expect_error(ErrorKind::argument, {"at most 100", "character"}, [&text = text] { parse(text); });
  TransferExpression deep = local_copy(1, 1);
  for (int i = 0; i < 50; ++i) deep = (deep >> local_copy(1, 1)) | local_copy(1, 1);
  EXPECT_EQ(parse(deep.to_string()), deep);
  expect_error(ErrorKind::argument, {"nested 101 deep"}, [&] { deep >> local_copy(1, 1); });
}

/// Any expression that reads and writes these patterns.
TransferExpression random_expression(std::mt19937_64& random, ReferencePattern read, ReferencePattern write, int deep) {
  const auto pattern = [&] {
    const ReferencePattern all[] = {0, 1, 2, 64, {6, 2}, INT64_MAX, w};
    return all[random() % std::size(all)];
  };
  const auto n = deep == 0 ? 0 : random() % 4;
  if (n == 0) {
    if (read == 0 && write == 0 && random() % 2)
      return network_data(random() % 2 ? std::optional(1.0 + double(random() % 99) / 7) : std::nullopt);
    if (write == 0 && random() % 2) return random() % 2 ? load_send(read) : fetch_send(read);
    if (read == 0 && random() % 2) return random() % 2 ? receive_store(write) : receive_deposit(write);
    return local_copy(read, write);
  }
  const bool steps = random() % 2;
  std::vector<TransferExpression> parts;
  for (std::size_t i = 0; i <= n; ++i) {
    const auto next = i == n ? write : pattern();
    parts.push_back(random_expression(random, read, next, deep - 1));
    read = steps ? next : pattern();
  }
  return steps ? TransferExpression::sequence(parts) : TransferExpression::parallel(parts);
}

TEST(CopyTransfer, what_is_printed_parses_back) {
  std::mt19937_64 random(14);
  for (int i = 0; i < 2000; ++i) {
    const auto made = random_expression(random, 1, w, 4);
    EXPECT_EQ(parse(made.to_string()), made) << made.to_string();
    EXPECT_EQ(parse(made.to_string(Notation::ascii)), made) << made.to_string();
  }
}

TEST(CopyTransfer, hostile_texts_are_errors_in_printable_words_or_expressions) {
  std::mt19937_64 random(41);
  const std::vector<std::string> words = {"(",
                                          ")",
                                          "o",
                                          " ∘ ",
                                          "||",
                                          "‖",
                                          "|",
                                          "64C1",
                                          "1S0",
                                          "wC",
                                          "ω",
                                          "Nd",
                                          "Nadp",
                                          "@2",
                                          "@",
                                          "[2]",
                                          "[",
                                          "]",
                                          "0",
                                          "D1",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "1e9",
                                          "-1",
                                          "inf",
                                          std::string(1, '\0'),
                                          "\xe2\x88",
                                          "\xff",
                                          "\x1b"};
  int parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (std::size_t n = random() % 12; n > 0; --n) text += words[random() % words.size()];
    try {
      const auto made = parse(text);
      EXPECT_EQ(parse(made.to_string()), made) << text;
      ++parsed;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::argument);
      const std::string_view message = error.what();
      EXPECT_EQ(message.find_first_of("\x1b\xff"), message.npos) << message;
      EXPECT_NE(message.find("character"), message.npos) << message;
    }
  }
  EXPECT_GT(parsed, 20);
}

}  // namespace
}  // namespace longshore
