/// Address relations stored compactly: the paper's encodings (Dinda
/// & O'Hallaron, section 4) and those it leaves open (section 7).
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "longshore/copies/relation_program.hpp"

namespace longshore {

enum class EncodingKind : std::uint8_t {
  aapair = 1,  ///< an array of (source, destination)
  aablk,       ///< an array of (source, destination, length): stride-1 blocks
  dmrle,       ///< the difference map, run-length encoded: (ds, dd, length)
  dmrlec,      ///< DMRLE's symbols in a table, keys of a fixed power-of-two number of bits
  huffman,     ///< DMRLE's symbols in a table, keys of Huffman's variable length
  lz,          ///< DMRLE's symbols compressed by LZ4
  packed,      ///< equal blocks: two lists of offsets, bit-packed against each stretch's minimum
  delta,       ///< equal blocks: two lists of differences, bit-packed
  nest,        ///< loop nests; what does not fold as lists
};

std::string_view encoding_name(EncodingKind kind);  ///< "dmrlec"
EncodingKind encoding_kind(std::string_view name);  ///< any case. Throws `Error(argument)` naming those there are
const std::vector<EncodingKind>& encoding_kinds();

/// A relation in one of the encodings. A value: immutable, cheap to copy. Decodes to the same pairs in the same order.
class Encoding {
 public:
  /// Throws `Error(argument)` where the kind needs a library (`lz`: liblz4.so.1) that this machine does not have.
  Encoding(const AddressRelation& relation, EncodingKind kind);
  /// In the kind with the least predicted time to read and decode
  /// it once (`predicted_decode_ns`); the smaller of equals.
  static Encoding automatic(const AddressRelation& relation);

  EncodingKind kind() const;
  Index element_bytes() const;
  Index elements() const;
  const Reduction& reduction() const& { return reduction_; }
  Reduction reduction() && { return std::move(reduction_); }
  Interval source_extent() const { return source_extent_; }  ///< the bytes of the source that are touched
  Interval destination_extent() const {
    return destination_extent_;
  }  ///< the bytes of the destination that are touched
  /// Bytes of keys and symbols as the paper counts them: 64-bit words, no header. DMRLEC's table has 2^k entries.
  Index encoded_bytes() const;
  /// Symbols that are decoded to go through the whole relation.
  Index symbols() const;
  /// Distinct symbols, where the kind keeps a table of them; else `symbols()`.
  Index distinct_symbols() const;
  /// What decoding all of it once is predicted to take, moving the data aside, from the machine of the studies.
  double predicted_decode_ns() const;

  /// The pairs at the message's positions [first, last), symbol by symbol. The encoding must outlive the reader.
  std::unique_ptr<RunReader> reader(Index first, Index last) const;
  /// The relation again; what repeats in it is a nest.
  AddressRelation decode() const;
  /// The paper's executors (section 5): decode symbol by symbol and move as one goes, the
  /// elements at positions [first, last) to or from a message that begins with element `first`.
  /// `Assembler` and `Disassembler` of `decode()` are faster.
  void assemble(std::byte* message, const std::byte* source, Index first, Index last) const;
  void disassemble(std::byte* destination, const std::byte* message, Index first, Index last) const;

  /// A file's bytes: a header with version and kind, the encoding, a checksum. Little-endian on every machine.
  std::vector<std::byte> to_bytes() const;
  /// What `to_bytes` wrote. Throws `Error(argument)` saying what is wrong and where; never trusts
  /// a length or an offset. A few bytes can stand for any number of elements, and checking takes
  /// time for each: bytes from strangers are given a bound.
  static Encoding from_bytes(std::span<const std::byte> bytes, Index most_elements = std::numeric_limits<Index>::max());
  /// False, and why, where the encoding does not hold together. Those that this library makes always do.
  bool validate(std::string& reason) const;

  /// The same encoding of the same relation.
  bool operator==(const Encoding& other) const;

  struct Form;

 private:
  explicit Encoding(std::shared_ptr<const Form> form, Index element_bytes, Index elements, Reduction reduction)
      : form_(std::move(form)), element_bytes_(element_bytes), elements_(elements), reduction_(reduction) {}
  /// What it decodes to, every number of it looked at. Throws `Error` where it does not hold together.
  AddressRelation checked() const;

  std::shared_ptr<const Form> form_;
  Index element_bytes_, elements_;
  Reduction reduction_;
  Interval source_extent_, destination_extent_;
};

}  // namespace longshore
