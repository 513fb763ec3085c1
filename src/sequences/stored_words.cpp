#include "sequences/stored_words.hpp"

#include <algorithm>

#include "core/digest.hpp"
#include "longshore/sequences/packed_integers.hpp"

namespace longshore {

namespace {

constexpr std::size_t name_bytes = 4, head_bytes = name_bytes + 1, word_bytes = 8;

std::uint64_t word_at(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  for (std::size_t k = 0; k < bytes.size(); ++k) word |= std::uint64_t(bytes[k]) << 8 * k;
  return word;
}

/// Of the number of bytes, then of words, the last one filled up with zeros.
std::uint64_t checksum(std::span<const std::byte> bytes) {
  Digest digest;
  digest.mix(bytes.size());
  for (; bytes.size() >= word_bytes; bytes = bytes.subspan(word_bytes)) digest.mix(word_at(bytes.first<word_bytes>()));
  if (!bytes.empty()) digest.mix(word_at(bytes));
  return digest.value();
}

}  // namespace

WordWriter::WordWriter(const StoredKind& kind) {
  for (std::size_t k = 0; k < name_bytes; ++k) byte(std::uint8_t(kind.name[k]));
  byte(kind.version);
}

void WordWriter::word(std::uint64_t value) {
  std::byte bytes[word_bytes];
  for (std::size_t k = 0; k < word_bytes; ++k) bytes[k] = std::byte(value >> 8 * k);  // one store
  written_.insert(written_.end(), bytes, bytes + word_bytes);
}

void WordWriter::bytes(std::span<const std::byte> bytes) {
  index(Index(bytes.size()));
  written_.insert(written_.end(), bytes.begin(), bytes.end());
  for (std::size_t k = bytes.size(); k % word_bytes != 0; ++k) byte(0);
}

void WordWriter::text(std::string_view text) { bytes(std::as_bytes(std::span(text.data(), text.size()))); }

void WordWriter::list(std::span<const std::uint64_t> words) {
  index(Index(words.size()));
  for (const auto value : words) word(value);
}

void WordWriter::integers(std::span<const Index> values) { PackedIntegers::smallest(values).append_to(written_); }

std::vector<std::uint64_t> WordWriter::words() const {
  return WordReader(written_, "what was written").take(written_.size() / word_bytes);
}

std::vector<std::byte> WordWriter::finish() && {
  word(checksum(written_));
  return std::move(written_);
}

WordReader::WordReader(const StoredKind& kind, std::span<const std::byte> bytes)
    : what_(std::string("the stored ") + kind.words), all_(bytes) {
  if (bytes.size() < head_bytes + word_bytes) refuse("has " + std::to_string(bytes.size()) + " bytes: it is cut short");
  for (std::size_t k = 0; k < name_bytes; ++k)
    if (bytes[k] != std::byte(kind.name[k])) refuse("does not begin with " + std::string(kind.name));
  if (const auto version = unsigned(bytes[name_bytes]); version != kind.version)
    refuse("has version " + std::to_string(version) + "; this library reads version " + std::to_string(kind.version));
  const auto content = bytes.first(bytes.size() - word_bytes);
  if (checksum(content) != word_at(bytes.last(word_bytes))) refuse("has a wrong checksum: it was damaged");
  left_ = content.subspan(head_bytes);
}

std::span<const std::byte> WordReader::next(std::size_t bytes) {
  if (bytes > left_.size()) refuse("ends early, at byte " + std::to_string(at() + Index(left_.size())));
  const auto taken = left_.first(bytes);
  left_ = left_.subspan(bytes);
  return taken;
}

Index WordReader::within(Index low, Index high, const char* name) {
  const Index value = index();
  if (value < low || value > high)
    refuse(std::string("has ") + name + " " + std::to_string(value) + " before byte " + std::to_string(at()) +
           ", outside [" + std::to_string(low) + ", " + std::to_string(high) + "]");
  return value;
}

Index WordReader::count(Index words_each) {
  const Index n = index();
  if (n < 0 || (words_each > 0 && n > left() / words_each))
    refuse("announces " + std::to_string(n) + " entries before byte " + std::to_string(at()) + ", more than there are");
  return n;
}

std::vector<std::uint64_t> WordReader::take(std::size_t n) {
  if (n > left_.size() / word_bytes) refuse("ends early, at byte " + std::to_string(at() + Index(left_.size())));
  std::vector<std::uint64_t> words(n);
  for (auto& value : words) value = word();
  return words;
}

std::vector<std::byte> WordReader::bytes() {
  const Index n = index();
  if (n < 0 || n > Index(left_.size()))
    refuse("announces " + std::to_string(n) + " bytes before byte " + std::to_string(at()));
  const auto taken = next(std::size_t(n));
  const auto filling = next((word_bytes - taken.size() % word_bytes) % word_bytes);
  if (std::ranges::any_of(filling, [](std::byte b) { return b != std::byte(0); }))
    refuse("has bytes between words, before byte " + std::to_string(at()));
  return {taken.begin(), taken.end()};
}

std::string WordReader::text() {
  const auto letters = bytes();
  return {reinterpret_cast<const char*>(letters.data()), letters.size()};
}

namespace {

PackedIntegers packed(const WordReader& reader, Index at, std::span<const std::byte>& left) {
  try {
    return PackedIntegers::from_bytes(left);
  } catch (const Error& error) {
    reader.refuse("has no good list at byte " + std::to_string(at) + ": " + error.what());
  }
}

std::vector<Index> unpacked(const PackedIntegers& packed) {
  std::vector<Index> values(std::size_t(packed.size()));
  if (!values.empty()) packed.read(0, packed.size(), values.data());
  return values;
}

}  // namespace

std::vector<Index> WordReader::integers() { return unpacked(packed(*this, at(), left_)); }

std::vector<Index> WordReader::integers(std::size_t n) {
  const auto values = packed(*this, at(), left_);
  if (values.size() != Index(n))
    refuse("has a list of " + std::to_string(values.size()) + " numbers where there must be " + std::to_string(n));
  return unpacked(values);
}

std::vector<Index> WordReader::integers_of_most(Index most, const char* what) {
  const auto values = packed(*this, at(), left_);
  if (values.size() > most)
    refuse("has " + std::to_string(values.size()) + " " + what + ", more than the " + std::to_string(most) +
           " that are read");
  return unpacked(values);
}

void WordReader::end() const {
  if (!left_.empty()) refuse("goes on for " + std::to_string(left_.size()) + " bytes after its end");
}

}  // namespace longshore
