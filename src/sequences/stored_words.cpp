#include "sequences/stored_words.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/digest.hpp"

namespace longshore {

namespace {

std::uint64_t little(std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

/// The letters in the lower half, the version in the upper one.
std::uint64_t head_of(const StoredKind& kind) {
  std::uint64_t head = std::uint64_t(kind.version) << 32;
  for (int k = 0; k < 4; ++k) head |= std::uint64_t(std::uint8_t(kind.name[k])) << (8 * k);
  return head;
}

std::string words_of(const StoredKind& kind) { return std::string("the stored ") + kind.words; }

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

WordWriter::WordWriter(const StoredKind& kind) { word(head_of(kind)); }

std::vector<std::byte> WordWriter::finish() && {
  word(checksum(words_));
  return to_little_endian(std::move(words_));
}

std::vector<std::uint64_t> stored_content(const StoredKind& kind, std::span<const std::byte> bytes) {
  auto refuse = [&](const std::string& why) { throw Error(ErrorKind::argument, words_of(kind) + " " + why); };
  constexpr std::uint64_t letters = 0xffffffff;
  auto words = from_little_endian(bytes);
  if (bytes.size() % sizeof(std::uint64_t) != 0 || words.size() < 2)
    refuse("has " + std::to_string(bytes.size()) + " bytes: it is cut short");
  if ((words[0] & letters) != (head_of(kind) & letters)) refuse("does not begin with " + std::string(kind.name));
  if (words[0] != head_of(kind))
    refuse("has version " + std::to_string(words[0] >> 32) + "; this library reads version " +
           std::to_string(kind.version));
  if (words.back() != checksum(std::span<const std::uint64_t>(words).first(words.size() - 1)))
    refuse("has a wrong checksum: it was damaged");
  words.pop_back();
  words.erase(words.begin());
  return words;
}

WordReader::WordReader(std::span<const std::uint64_t> content, const StoredKind& kind)
    : WordReader(content, words_of(kind)) {}

void WordWriter::bytes(std::span<const std::byte> bytes) {
  index(Index(bytes.size()));
  for (std::size_t k = 0; k < bytes.size(); k += 8) {
    std::uint64_t value = 0;
    for (std::size_t j = k; j < std::min(k + 8, bytes.size()); ++j) value |= std::uint64_t(bytes[j]) << (8 * (j - k));
    word(value);
  }
}

void WordWriter::text(std::string_view text) { bytes(std::as_bytes(std::span(text.data(), text.size()))); }

void WordWriter::list(std::span<const std::uint64_t> words) {
  index(Index(words.size()));
  words_.insert(words_.end(), words.begin(), words.end());
}

Index WordReader::within(Index low, Index high, const char* name) {
  const Index value = index();
  if (value < low || value > high)
    refuse(std::string("has ") + name + " " + std::to_string(value) + " at word " + std::to_string(at_ - 1) +
           ", outside [" + std::to_string(low) + ", " + std::to_string(high) + "]");
  return value;
}

std::vector<std::byte> WordReader::bytes() {
  const auto n = std::size_t(index());
  if (n > (words_.size() - at_) * 8)
    refuse("announces " + std::to_string(n) + " bytes at word " + std::to_string(at_ - 1));
  const auto words = take((n + 7) / 8);
  std::vector<std::byte> bytes(n);
  for (std::size_t k = 0; k < n; ++k) bytes[k] = std::byte(words[k / 8] >> (8 * (k % 8)));
  return bytes;
}

std::string WordReader::text() {
  const auto letters = bytes();
  return {reinterpret_cast<const char*>(letters.data()), letters.size()};
}

}  // namespace longshore
