/// What is stored is written as 64-bit words, little-endian, with a checksum; what is read is never trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longshore/core/checked.hpp"
#include "sequences/stored_kind.hpp"

namespace longshore {

/// Words written one after the other.
class WordWriter {
 public:
  /// Of words that are part of something else.
  WordWriter() = default;
  /// Of a value of its own: begins with its kind.
  explicit WordWriter(const StoredKind& kind);
  void word(std::uint64_t value) { words_.push_back(value); }
  void index(Index value) { word(std::uint64_t(value)); }
  void bytes(std::span<const std::byte> bytes);     ///< their number, then 8 to a word, the first in the lowest bits
  void list(std::span<const std::uint64_t> words);  ///< their number, then they
  void text(std::string_view text);                 ///< as its bytes
  const std::vector<std::uint64_t>& words() const { return words_; }
  /// With a checksum of all words at the end.
  std::vector<std::byte> finish() &&;

 private:
  std::vector<std::uint64_t> words_;
};

/// The content of a value of its own: what was written between its
/// kind and the checksum. Throws `Error(argument)` for anything else.
std::vector<std::uint64_t> stored_content(const StoredKind& kind, std::span<const std::byte> bytes);

/// Words read one after the other. Throws `Error(argument)` past the end: outside data is never trusted.
class WordReader {
 public:
  /// `what` is what errors are about, such as "the encoding".
  WordReader(std::span<const std::uint64_t> words, std::string what) : words_(words), what_(std::move(what)) {}
  /// Of what `stored_content` gave.
  WordReader(std::span<const std::uint64_t> content, const StoredKind& kind);
  std::uint64_t word() {
    if (at_ == words_.size()) refuse("ends early, at word " + std::to_string(at_));
    return words_[at_++];
  }
  Index index() { return Index(word()); }
  /// A number in [low, high]; `name` says of what.
  Index within(Index low, Index high, const char* name);
  /// A count of things that take `words_each` words each, all of which must still be there.
  Index count(Index words_each) {
    const Index n = index();
    if (n < 0 || (words_each > 0 && n > left() / words_each))
      refuse("announces " + std::to_string(n) + " entries at word " + std::to_string(at_ - 1) +
             ", more than there are");
    return n;
  }
  std::span<const std::uint64_t> take(std::size_t n) {
    if (n > words_.size() - at_) refuse("ends early, at word " + std::to_string(words_.size()));
    at_ += n;
    return words_.subspan(at_ - n, n);
  }
  Index left() const { return Index(words_.size() - at_); }
  std::vector<std::byte> bytes();
  std::string text();
  std::span<const std::uint64_t> list() { return take(std::size_t(count(1))); }
  void end() const {
    if (at_ != words_.size()) refuse("goes on after its end, at word " + std::to_string(at_));
  }
  [[noreturn]] void refuse(const std::string& why) const { throw Error(ErrorKind::argument, what_ + " " + why); }

 private:
  std::span<const std::uint64_t> words_;
  std::string what_;
  std::size_t at_ = 0;
};

/// `Digest`'s.
std::uint64_t checksum(std::span<const std::uint64_t> words);
/// Words as they are stored, and back; what is no whole word at the end is left out.
std::vector<std::byte> to_little_endian(std::vector<std::uint64_t> words);
std::vector<std::uint64_t> from_little_endian(std::span<const std::byte> bytes);

}  // namespace longshore
