// Section 2's three models give the same arrays; messages from strangers are refused or stay within bounds.
#include "longshore/encodings/message_models.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "support/expect_error.hpp"
#include "support/seal.hpp"

namespace longshore::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes counted(std::size_t n) {
  Bytes bytes(n);
  for (std::size_t k = 0; k < n; ++k) bytes[k] = std::byte(k * 37 + 11);
  return bytes;
}

std::vector<AddressRelation> relations() {
  std::vector<std::int64_t> source(211), destination(211);
  std::iota(source.begin(), source.end(), 0);
  std::iota(destination.begin(), destination.end(), 0);
  std::mt19937 random(3);
  std::shuffle(source.begin(), source.end(), random);
  std::shuffle(destination.begin(), destination.end(), random);
  std::vector<std::int64_t> same(211, 5), few(211);
  for (std::size_t k = 0; k < few.size(); ++k) few[k] = std::int64_t(k * k % 13);
  const Index shape[] = {7, 11}, rows[] = {88, 8}, columns[] = {8, 56};
  return {
      AddressRelation(8),
      AddressRelation::strided(8, {}, {}, {}, 16, 24),
      AddressRelation::strided(8, shape, rows, columns),
      AddressRelation::from_indices(8, std::span<const std::int64_t>(source),
                                    std::span<const std::int64_t>(destination)),
      AddressRelation::from_indices(3, std::span<const std::int64_t>(source),
                                    std::span<const std::int64_t>(destination)),
      AddressRelation::from_indices(8, std::span<const std::int64_t>(same), std::span<const std::int64_t>(destination)),
      AddressRelation::from_indices(8, std::span<const std::int64_t>(source), std::span<const std::int64_t>(few),
                                    Reduction(ElementType::int64, ReduceOp::add)),
  };
}

Bytes put(const AddressRelation& relation, const Bytes& source, std::optional<EncodingKind> kind = std::nullopt) {
  const PutSender sender(relation, kind);
  Bytes message(std::size_t(sender.message_bytes()));
  sender.run(message.data(), source.data());
  return message;
}

constexpr std::size_t array_bytes = 211 * 8;
constexpr Interval whole{0, Index(array_bytes)};

TEST(MessageModels, all_give_the_same_array) {
  const auto source = counted(array_bytes), before = counted(array_bytes + 1);
  const Bytes start(before.begin() + 1, before.end());
  auto kinds = encoding_kinds();
  std::erase(kinds, EncodingKind::lz);  // may not be installed
  for (const auto& relation : relations()) {
    auto expected = start;
    relation.move_plain(expected.data(), source.data());

    for (const auto kind : kinds) {
      const auto sender = sender_half(relation, kind), receiver = receiver_half(relation, kind);
      Bytes message(std::size_t(relation.bytes()));
      auto received = start;
      sender.assemble(message.data(), source.data(), 0, sender.elements());
      receiver.disassemble(received.data(), message.data(), 0, receiver.elements());
      EXPECT_EQ(received, expected) << "send/receive, " << encoding_name(kind);

      const auto put_message = put(relation, source, kind);
      auto written = start;
      PutMessage(put_message).deliver(written.data(), whole);
      EXPECT_EQ(written, expected) << "put, " << encoding_name(kind);

      const auto bytes = get_request(relation, kind);
      const GetRequest request(bytes, relation.bytes());
      Bytes payload(std::size_t(request.payload_bytes()));
      request.answer(payload.data(), source.data(), whole);
      EXPECT_EQ(payload, message) << "get, " << encoding_name(kind);
      auto got = start;
      Disassembler(relation).run(got.data(), payload.data());
      EXPECT_EQ(got, expected) << "get, " << encoding_name(kind);
    }
  }
}

TEST(MessageModels, addresses_are_a_small_part_of_a_regular_message) {
  const Index shape[] = {1000, 1000}, rows[] = {8000, 8}, columns[] = {8, 8000};
  const PutSender sender(AddressRelation::strided(8, shape, rows, columns));
  EXPECT_LT(sender.address_bytes(), 500);
  EXPECT_EQ(sender.message_bytes(), sender.address_bytes() + 8'000'000);
}

TEST(MessageModels, what_leaves_the_bounds_is_refused_and_nothing_is_written) {
  const auto source = counted(array_bytes);
  for (const auto& relation : relations()) {
    if (relation.empty()) continue;
    const auto to = relation.destination_extent(), from = relation.source_extent();
    const auto message = put(relation, source);
    const PutMessage arrived(message);
    EXPECT_EQ(arrived.destination_extent(), to);
    auto destination = source;
    for (const Interval bounds : {Interval{to.first + 1, to.last}, Interval{to.first, to.last - 1}, Interval{}})
      expect_error(ErrorKind::buffer, {"destination", std::to_string(to.last)},
                   [&] { arrived.deliver(destination.data(), bounds); });
    EXPECT_EQ(destination, source);

    const auto bytes = get_request(relation);
    const GetRequest request(bytes, relation.bytes());
    EXPECT_EQ(request.source_extent(), from);
    Bytes payload(std::size_t(request.payload_bytes()));
    for (const Interval bounds : {Interval{from.first + 1, from.last}, Interval{from.first, from.last - 1}, Interval{}})
      expect_error(ErrorKind::buffer, {"source", std::to_string(from.last)},
                   [&] { request.answer(payload.data(), source.data(), bounds); });
    expect_error(ErrorKind::argument, {"at most"}, [&] { GetRequest(bytes, relation.bytes() - 1); });
  }
}

TEST(MessageModels, offsets_before_the_pointer_are_within_bounds_too) {
  const auto relation = AddressRelation::from_pairs(4, std::vector<OffsetPair>{{-8, -4}, {0, -8}});
  const auto array = counted(16);
  const PutSender sender(relation);
  Bytes message(std::size_t(sender.message_bytes()));
  sender.run(message.data(), array.data() + 8);
  expect_error(ErrorKind::buffer, {"[-8, 0)"}, [&] {
    auto copy = array;
    PutMessage(message).deliver(copy.data() + 8, {0, 8});
  });
  auto copy = array, expected = array;
  PutMessage(message).deliver(copy.data() + 8, {-8, 8});
  relation.move_plain(expected.data() + 8, array.data() + 8);
  EXPECT_EQ(copy, expected);
}

TEST(MessageModels, a_whole_relation_is_no_half) {
  const auto relation = relations()[3];
  const auto bytes = Encoding(relation, EncodingKind::aapair).to_bytes();
  expect_error(ErrorKind::argument, {"no half"}, [&] { GetRequest(bytes, 1 << 20); });
  auto message = put(relation, counted(array_bytes), EncodingKind::aapair);
  const auto half = receiver_half(relation, EncodingKind::aapair).to_bytes();
  ASSERT_EQ(half.size(), bytes.size());
  std::memcpy(message.data() + 24, bytes.data(), bytes.size());
  expect_error(ErrorKind::argument, {"no half"}, [&] { PutMessage{message}; });
}

TEST(MessageModels, requests_do_not_combine) {
  const auto relation = relations().back();
  const auto bytes = Encoding(relation.disassembly(), EncodingKind::aapair).to_bytes();
  expect_error(ErrorKind::argument, {"combining"}, [&] { GetRequest(bytes, 1 << 20); });
}

TEST(MessageModels, few_bytes_that_stand_for_many_elements_are_refused_at_once) {
  const Index shape[] = {Index{1} << 20, Index{1} << 20}, zero[] = {0, 0}, dense[] = {Index{8} << 20, 8};
  const auto bytes = get_request(AddressRelation::strided(8, shape, zero, dense));
  EXPECT_LT(bytes.size(), 1000u);
  expect_error(ErrorKind::argument, {"at most"}, [&] { GetRequest(bytes, 1 << 20); });
  // The same with a header that does not say so.
  auto liar = bytes;
  const std::uint64_t few = 7;
  std::memcpy(liar.data() + 16, &few, 8);
  seal(liar);
  expect_error(ErrorKind::argument, {"elements", "announces 7"}, [&] { GetRequest(liar, 1 << 20); });
}

TEST(MessageModels, damaged_messages_are_refused_or_stay_within_bounds) {
  std::mt19937 random(17);
  const auto source = counted(array_bytes);
  int refused = 0, taken = 0;
  for (const auto& relation : relations())
    for (const auto kind : {EncodingKind::aapair, EncodingKind::aablk, EncodingKind::dmrle, EncodingKind::dmrlec,
                            EncodingKind::huffman, EncodingKind::nest}) {
      const auto good = put(relation, source, kind);
      const auto request = get_request(relation, kind);
      for (int round = 0; round < 60; ++round) {
        auto message = good;
        auto asked = request;
        for (std::size_t changes = 1 + random() % 3; changes-- > 0;) {
          const auto value = std::byte(random() % 4 == 0 ? 0xff : random());
          message[random() % std::min<std::size_t>(message.size(), 400)] = value;
          asked[random() % asked.size()] = value;
        }
        std::uint64_t address_bytes;
        std::memcpy(&address_bytes, message.data() + 8, 8);
        if (address_bytes % 8 == 0 && address_bytes >= 32 && address_bytes <= message.size() - 24)
          seal(std::span(message).subspan(24, address_bytes));
        seal(asked);
        if (random() % 8 == 0) message.resize(random() % message.size());
        Bytes destination(array_bytes), payload(1 << 16);
        try {
          PutMessage(message).deliver(destination.data(), whole);
          ++taken;
        } catch (const Error&) {
          ++refused;
        }
        try {
          const GetRequest arrived(asked, Index(payload.size()));
          arrived.answer(payload.data(), source.data(), whole);
          ++taken;
        } catch (const Error&) {
          ++refused;
        }
      }
    }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 100);  // data may change, and some addresses
}

}  // namespace
}  // namespace longshore::test
