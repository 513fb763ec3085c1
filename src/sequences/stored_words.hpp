/// Values of the library as bytes: four letters and a version, the content, a checksum. Little-endian, the same on
/// every machine; what is read is never trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longshore/core/checked.hpp"

namespace longshore {

/// What kind of value it is: four letters, and the version of what is written after them.
struct StoredKind {
  char name[5];
  std::uint8_t version;
  const char* words;  ///< "floor plan", for errors
};

/// Words of 64 bits, and lists of integers, written one after the other.
class WordWriter {
 public:
  /// Of what is part of something else.
  WordWriter() = default;
  /// Of a value of its own: begins with its kind.
  explicit WordWriter(const StoredKind& kind);
  void byte(std::uint8_t value) { written_.push_back(std::byte(value)); }
  void word(std::uint64_t value);
  void index(Index value) { word(std::uint64_t(value)); }
  void bytes(std::span<const std::byte> bytes);     ///< their number, then 8 to a word
  void list(std::span<const std::uint64_t> words);  ///< their number, then they
  void text(std::string_view text);                 ///< as its bytes
  void integers(std::span<const Index> values);     ///< bit-packed
  void integers(std::initializer_list<Index> values) { integers(std::span(values.begin(), values.size())); }
  const std::vector<std::byte>& written() const { return written_; }
  /// The same where nothing but words was written.
  std::vector<std::uint64_t> words() const;
  /// With a checksum of all before it at the end.
  std::vector<std::byte> finish() &&;

 private:
  std::vector<std::byte> written_;
};

/// Reads what `WordWriter` wrote. Throws `Error(argument)` for anything else, past the end, too. Memory stays in
/// proportion to the bytes that are there, which must outlive the reader.
class WordReader {
 public:
  /// The content of a value of its own: what was written between its kind and the checksum.
  WordReader(const StoredKind& kind, std::span<const std::byte> bytes);
  /// Words that are part of something else; `what` is what errors are about, such as "the message".
  WordReader(std::span<const std::byte> bytes, std::string what) : what_(std::move(what)), all_(bytes), left_(bytes) {}

  WordReader(std::span<const std::uint64_t> words, std::string what)
      : WordReader(std::as_bytes(words), std::move(what)) {}

  std::uint8_t byte() { return std::uint8_t(next(1)[0]); }
  std::uint64_t word() {
    const auto bytes = next(8);
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < 8; ++k) value |= std::uint64_t(bytes[k]) << (8 * k);  // one load
    return value;
  }
  Index index() { return Index(word()); }
  /// A number in [low, high]; `name` says of what.
  Index within(Index low, Index high, const char* name);
  /// A count of things that take `words_each` words each, all of which must still be there.
  Index count(Index words_each);
  std::vector<std::uint64_t> take(std::size_t n);
  Index left() const { return Index(left_.size() / 8); }  ///< whole words
  std::vector<std::byte> bytes();
  std::string text();
  std::vector<std::uint64_t> list() { return take(std::size_t(count(1))); }
  std::vector<Index> integers();
  std::vector<Index> integers(std::size_t n);  ///< refuses a list of any other length
  /// Refuses a longer one, saying what there are so many of.
  std::vector<Index> integers_of_most(Index most, const char* what);
  void end() const;
  [[noreturn]] void refuse(const std::string& why) const { throw Error(ErrorKind::argument, what_ + " " + why); }

 private:
  Index at() const { return left_.data() - all_.data(); }
  std::span<const std::byte> next(std::size_t bytes);

  std::string what_;
  std::span<const std::byte> all_, left_;
};

/// Carries out `read`; whatever it refuses for reasons of its own was a mistake in the bytes.
template <class Read>
auto read_stored(Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(ErrorKind::argument, error.what());
  }
}

}  // namespace longshore
