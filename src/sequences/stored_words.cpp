#include "sequences/stored_words.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sequences/digest.hpp"

namespace longshore {

namespace {

std::uint64_t little(std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

}  // namespace

std::uint64_t checksum(std::span<const std::uint64_t> words) {
  Digest digest;
  for (const auto word : words) digest.mix(word);
  return digest.value();
}

std::vector<std::byte> to_little_endian(std::vector<std::uint64_t> words) {
  for (auto& word : words) word = little(word);
  std::vector<std::byte> bytes(words.size() * sizeof(std::uint64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

std::vector<std::uint64_t> from_little_endian(std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint64_t));
  for (auto& word : words) word = little(word);
  return words;
}

void WordWriter::bytes(std::span<const std::byte> bytes) {
  index(Index(bytes.size()));
  for (std::size_t k = 0; k < bytes.size(); k += 8) {
    std::uint64_t value = 0;
    for (std::size_t j = k; j < std::min(k + 8, bytes.size()); ++j) value |= std::uint64_t(bytes[j]) << (8 * (j - k));
    word(value);
  }
}

void WordWriter::list(std::span<const std::uint64_t> words) {
  index(Index(words.size()));
  words_.insert(words_.end(), words.begin(), words.end());
}

Index WordReader::within(Index low, Index high, const char* name) {
  const Index value = index();
  if (value < low || value > high)
    refuse(std::string("has ") + name + " " + std::to_string(value) + " at word " + std::to_string(at_ - 1) + ", outside [" +
           std::to_string(low) + ", " + std::to_string(high) + "]");
  return value;
}

std::vector<std::byte> WordReader::bytes() {
  const auto n = std::size_t(index());
  if (n > (words_.size() - at_) * 8) refuse("announces " + std::to_string(n) + " bytes at word " + std::to_string(at_ - 1));
  const auto words = take((n + 7) / 8);
  std::vector<std::byte> bytes(n);
  for (std::size_t k = 0; k < n; ++k) bytes[k] = std::byte(words[k / 8] >> (8 * (k % 8)));
  return bytes;
}

}  // namespace longshore
