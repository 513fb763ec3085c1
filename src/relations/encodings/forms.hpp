/// What an encoding keeps, one class a kind; and the 64-bit words it is written in.
#pragma once

#include "longshore/relations/encoding.hpp"

namespace longshore {

/// Words written one after the other.
class WordWriter {
 public:
  void word(std::uint64_t value) { words_.push_back(value); }
  void index(Index value) { word(std::uint64_t(value)); }
  void bytes(std::span<const std::byte> bytes);  ///< their number, then 8 to a word, the first in the lowest bits
  const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  std::vector<std::uint64_t> words_;
};

/// Words read one after the other. Throws `Error(argument)` past the end: outside data is never trusted.
class WordReader {
 public:
  explicit WordReader(std::span<const std::uint64_t> words) : words_(words) {}
  std::uint64_t word() {
    if (at_ == words_.size()) refuse("ends early, at word " + std::to_string(at_));
    return words_[at_++];
  }
  Index index() { return Index(word()); }
  /// A count of things that take `words_each` words each, all of which must still be there.
  Index count(Index words_each) {
    const Index n = index();
    if (n < 0 || (words_each > 0 && n > Index(words_.size() - at_) / words_each))
      refuse("announces " + std::to_string(n) + " entries at word " + std::to_string(at_ - 1) + ", more than there are");
    return n;
  }
  std::span<const std::uint64_t> take(std::size_t n) {
    if (n > words_.size() - at_) refuse("ends early, at word " + std::to_string(words_.size()));
    at_ += n;
    return words_.subspan(at_ - n, n);
  }
  std::vector<std::byte> bytes();
  void end() const {
    if (at_ != words_.size()) refuse("goes on after its end, at word " + std::to_string(at_));
  }
  [[noreturn]] static void refuse(const std::string& why) { throw Error(ErrorKind::argument, "the encoding " + why); }

 private:
  std::span<const std::uint64_t> words_;
  std::size_t at_ = 0;
};

/// FNV-1a over words, with the high bits folded in: for accidents, not for adversaries.
std::uint64_t checksum(std::span<const std::uint64_t> words);
/// Words as they are stored, and back; what is no whole word at the end is left out.
std::vector<std::byte> to_little_endian(std::vector<std::uint64_t> words);
std::vector<std::uint64_t> from_little_endian(std::span<const std::byte> bytes);

struct Encoding::Form {
  virtual ~Form() = default;
  virtual EncodingKind kind() const = 0;
  virtual Index encoded_bytes() const = 0;
  virtual Index symbols() const = 0;
  virtual Index distinct_symbols() const { return symbols(); }
  /// Nanoseconds a symbol, measured.
  virtual double symbol_ns() const = 0;
  /// All pairs; the caller skips.
  virtual std::unique_ptr<RunReader> reader() const = 0;
  /// The relation, where the form is as good to execute as what would be folded from its pairs: checked when it was made, and not
  /// to be enumerated again.
  virtual const AddressRelation* as_it_is() const { return nullptr; }
  virtual void write(WordWriter& out) const = 0;
};

/// What the header of a stored encoding says about all kinds.
struct FormHeader {
  Index element_bytes, elements;
  Reduction reduction;
};

using Form = Encoding::Form;
using FormPointer = std::shared_ptr<const Form>;

/// A symbol of the difference map: the next `length` elements are each (source, destination) bytes after the one before.
/// Sums are taken modulo 2^64, so that every difference fits.
struct DifferenceSymbol {
  Index source, destination, length;
  bool operator==(const DifferenceSymbol&) const = default;
};

/// The run-length encoded difference map (section 4). The first pair is the difference from (0, 0).
std::vector<DifferenceSymbol> difference_map(RunReader& pairs);

/// Turns difference symbols back into runs; the forms give them symbol by symbol.
class DifferenceReader : public RunReader {
 public:
  std::size_t read(std::span<OffsetRun> out) final;

 protected:
  /// Fills `out` with the next symbols; the number of them, 0 at the end.
  virtual std::size_t next(std::span<DifferenceSymbol> out) = 0;

 private:
  std::uint64_t source_ = 0, destination_ = 0;
};

/// The distinct symbols of a difference map, found by hashing, in the order in which they first come, and each one's number.
struct SymbolTable {
  std::vector<DifferenceSymbol> distinct;
  std::vector<std::uint32_t> keys;
  explicit SymbolTable(std::span<const DifferenceSymbol> symbols);
};

void write_symbols(WordWriter& out, std::span<const DifferenceSymbol> symbols);
std::vector<DifferenceSymbol> read_symbols(WordReader& in);

void write_list(WordWriter& out, const PackedList& list);
PackedList read_list(WordReader& in, Index element_bytes);

FormPointer make_aapair(const AddressRelation& relation);
FormPointer make_aablk(const AddressRelation& relation);
FormPointer make_dmrle(const AddressRelation& relation);
FormPointer make_dmrlec(const AddressRelation& relation);
FormPointer make_huffman(const AddressRelation& relation);
FormPointer make_lz(const AddressRelation& relation);
FormPointer make_packed(const AddressRelation& relation);
FormPointer make_delta(const AddressRelation& relation);
FormPointer make_nest(const AddressRelation& relation);

FormPointer read_aapair(WordReader& in, const FormHeader& header);
FormPointer read_aablk(WordReader& in, const FormHeader& header);
FormPointer read_dmrle(WordReader& in, const FormHeader& header);
FormPointer read_dmrlec(WordReader& in, const FormHeader& header);
FormPointer read_huffman(WordReader& in, const FormHeader& header);
FormPointer read_lz(WordReader& in, const FormHeader& header);
FormPointer read_packed(WordReader& in, const FormHeader& header);
FormPointer read_delta(WordReader& in, const FormHeader& header);
FormPointer read_nest(WordReader& in, const FormHeader& header);

}  // namespace longshore
