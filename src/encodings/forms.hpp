/// What an encoding keeps, one class a kind.
#pragma once

#include "longshore/encodings/encoding.hpp"
#include "sequences/stored_words.hpp"

namespace longshore {

/// Says what is wrong with a stored encoding.
[[noreturn]] inline void refuse_encoding(const std::string& why) {
  throw Error(ErrorKind::argument, "the encoding " + why);
}

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
  /// The relation, where the form is as good to execute as what would be folded
  /// from its pairs: checked when it was made, and not to be enumerated again.
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

/// A symbol of the difference map: the next `length` elements are each (source, destination) bytes after the one
/// before. Sums are taken modulo 2^64, so that every difference fits.
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

/// The distinct symbols of a difference map, found by hashing,
/// in the order in which they first come, and each one's number.
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
