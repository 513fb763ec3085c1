// The public face of the encodings: which kind, the stored bytes, and decoding symbol by symbol.
#include "longshore/encodings/encoding.hpp"

#include <algorithm>

#include "encodings/forms.hpp"
#include "relations/fold.hpp"

namespace longshore {

namespace {

struct KindEntry {
  EncodingKind kind;
  std::string_view name;
  FormPointer (*make)(const AddressRelation&);
  FormPointer (*read)(WordReader&, const FormHeader&);
};

constexpr KindEntry entries[] = {
    {EncodingKind::aapair, "aapair", make_aapair, read_aapair},
    {EncodingKind::aablk, "aablk", make_aablk, read_aablk},
    {EncodingKind::dmrle, "dmrle", make_dmrle, read_dmrle},
    {EncodingKind::dmrlec, "dmrlec", make_dmrlec, read_dmrlec},
    {EncodingKind::huffman, "huffman", make_huffman, read_huffman},
    {EncodingKind::lz, "lz", make_lz, read_lz},
    {EncodingKind::packed, "packed", make_packed, read_packed},
    {EncodingKind::delta, "delta", make_delta, read_delta},
    {EncodingKind::nest, "nest", make_nest, read_nest},
};

const KindEntry& entry_of(EncodingKind kind) {
  for (const auto& entry : entries)
    if (entry.kind == kind) return entry;
  throw Error(ErrorKind::argument, "there is no encoding number " + std::to_string(int(kind)));
}

/// Passes on the pairs at positions [first, last) of a reader that begins at position 0.
class WindowReader : public RunReader {
 public:
  WindowReader(std::unique_ptr<RunReader> inner, Index first, Index last)
      : inner_(std::move(inner)), skip_(first), left_(last - first) {}
  std::size_t read(std::span<OffsetRun> out) override {
    std::size_t n = 0;
    while (n == 0 && left_ > 0) {
      const std::size_t got = inner_->read(out);
      if (got == 0) break;
      for (std::size_t k = 0; k < got && left_ > 0; ++k) {
        const auto run = out[k];
        const Index from = std::min(skip_, run.count), to = std::min(run.count, from + left_);
        skip_ -= from;
        if (from == to) continue;
        left_ -= to - from;
        out[n++] = run.slice(from, to);
      }
    }
    return n;
  }

 private:
  std::unique_ptr<RunReader> inner_;
  Index skip_, left_;
};

/// Its content: the kind, the reduction and the element type, a byte each; element bytes; elements; what the form
/// writes.
constexpr StoredKind stored_kind{"LSAR", 2, "encoding"};

}  // namespace

std::string_view encoding_name(EncodingKind kind) { return entry_of(kind).name; }

EncodingKind encoding_kind(std::string_view name) {
  std::string lower, known;
  for (const char c : name) lower += char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const auto& entry : entries) {
    if (entry.name == lower) return entry.kind;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(ErrorKind::argument, "there is no encoding '" + std::string(name) + "'; there are auto, " + known);
}

const std::vector<EncodingKind>& encoding_kinds() {
  static const std::vector<EncodingKind> kinds = [] {
    std::vector<EncodingKind> list;
    for (const auto& entry : entries) list.push_back(entry.kind);
    return list;
  }();
  return kinds;
}

Encoding::Encoding(const AddressRelation& relation, EncodingKind kind)
    : form_(entry_of(kind).make(relation)),
      element_bytes_(relation.element_bytes()),
      elements_(relation.elements()),
      reduction_(relation.reduction()),
      source_extent_(relation.source_extent()),
      destination_extent_(relation.destination_extent()) {}

Encoding Encoding::automatic(const AddressRelation& relation) {
  Encoding best(relation, EncodingKind::nest);
  // Where most of many elements are in nests, every other kind is larger, and takes long to find out.
  Index in_nests = 0;
  for (const auto& part : best.form_->as_it_is()->parts())
    if (const auto* nest = std::get_if<LoopNest>(&part)) in_nests += nest->elements();
  constexpr Index worth_a_try = Index{1} << 20;
  if (in_nests > worth_a_try && in_nests > relation.elements() / 2) return best;
  // Reading what is stored costs time too, at the machine's memory bandwidth.
  auto cost = [](const Encoding& e) { return e.predicted_decode_ns() + double(e.encoded_bytes()) / 10.0; };
  for (const auto& entry : entries) {
    if (entry.kind == EncodingKind::nest || entry.kind == EncodingKind::lz) continue;  // LZ is never the fastest
    // Nests run faster than lists, which is worth more than what decoding them once takes.
    const bool lists =
        entry.kind == EncodingKind::packed || entry.kind == EncodingKind::delta || entry.kind == EncodingKind::aapair;
    if (lists && in_nests == relation.elements()) continue;
    Encoding candidate(relation, entry.kind);
    const double now = cost(best), then = cost(candidate);
    const bool smaller = candidate.encoded_bytes() < best.encoded_bytes();
    if (then < now * 0.9 || (smaller && then < now * 1.1)) best = std::move(candidate);
  }
  return best;
}

EncodingKind Encoding::kind() const { return form_->kind(); }
Index Encoding::element_bytes() const { return element_bytes_; }
Index Encoding::elements() const { return elements_; }
Index Encoding::encoded_bytes() const { return form_->encoded_bytes(); }
Index Encoding::symbols() const { return form_->symbols(); }
Index Encoding::distinct_symbols() const { return form_->distinct_symbols(); }
double Encoding::predicted_decode_ns() const { return double(form_->symbols()) * form_->symbol_ns(); }

std::unique_ptr<RunReader> Encoding::reader(Index first, Index last) const {
  check_positions(first, last, elements_);
  if (const auto* relation = form_->as_it_is()) return relation->reader(first, last);
  return std::make_unique<WindowReader>(form_->reader(), first, last);
}

AddressRelation Encoding::decode() const {
  if (const auto* relation = form_->as_it_is()) return *relation;
  const auto pairs = form_->reader();
  return AddressRelation(element_bytes_, fold(element_bytes_, *pairs), reduction_);  // checked when it was made
}

void Encoding::assemble(std::byte* message, const std::byte* source, Index first, Index last) const {
  const auto& table = kernels();
  const auto pairs = reader(first, last);
  for_each_run(*pairs, [&](const OffsetRun& run) {
    table.blocks(message, source + run.source, {element_bytes_, run.count, run.source_step, element_bytes_},
                 Stores::cached);
    message += run.count * element_bytes_;
  });
}

void Encoding::disassemble(std::byte* destination, const std::byte* message, Index first, Index last) const {
  const auto& table = kernels();
  const auto pairs = reader(first, last);
  for_each_run(*pairs, [&](const OffsetRun& run) {
    if (reduction_.is_replace())
      table.blocks(destination + run.destination, message,
                   {element_bytes_, run.count, element_bytes_, run.destination_step}, Stores::cached);
    else
      reduction_.apply(destination + run.destination, message, run.count, run.destination_step, element_bytes_);
    message += run.count * element_bytes_;
  });
}

std::vector<std::byte> Encoding::to_bytes() const {
  if (reduction_.op() == ReduceOp::user)
    throw Error(ErrorKind::argument, "a relation that combines with a function of its user's cannot be stored");
  WordWriter out(stored_kind);
  out.byte(std::uint8_t(kind())), out.byte(std::uint8_t(reduction_.op())), out.byte(std::uint8_t(reduction_.type()));
  out.index(element_bytes_), out.index(elements_);
  form_->write(out);
  return std::move(out).finish();
}

Encoding Encoding::from_bytes(std::span<const std::byte> bytes, Index most_elements) {
  return read_stored([&] {
    WordReader in(stored_kind, bytes);
    const auto kind = in.byte(), op = in.byte(), type = in.byte();
    if (op > std::uint8_t(ReduceOp::bitwise_xor) || type > std::uint8_t(ElementType::complex128))
      in.refuse("has an unknown reduction");
    const FormHeader header{in.index(), in.index(), Reduction(ElementType(type), ReduceOp(op))};
    if (header.element_bytes < 1) in.refuse("has elements of " + std::to_string(header.element_bytes) + " bytes");
    if (header.elements < 0 || header.elements > most_elements)
      in.refuse("has " + std::to_string(header.elements) + " elements; at most " + std::to_string(most_elements) +
                " are expected");
    auto form = entry_of(EncodingKind(kind)).read(in, header);
    in.end();
    Encoding encoding(std::move(form), header.element_bytes, header.elements, header.reduction);
    const auto relation = encoding.checked();
    encoding.source_extent_ = relation.source_extent(), encoding.destination_extent_ = relation.destination_extent();
    return encoding;
  });
}

AddressRelation Encoding::checked() const {
  auto check_count = [this](Index elements) {
    if (elements != elements_)
      refuse_encoding("has " + std::to_string(elements) + " elements and announces " + std::to_string(elements_));
  };
  if (const auto* whole = form_->as_it_is()) {  // which was checked when it was made
    check_count(whole->elements());
    return *whole;
  }
  // Counted first: a few bytes may stand for more elements than anybody waits for.
  Index elements = 0;
  for_each_run(*form_->reader(), [&](const OffsetRun& run) { elements = checked_add(elements, run.count); });
  check_count(elements);
  return AddressRelation::from_reader(element_bytes_, *form_->reader(),
                                      reduction_);  // refuses destinations that overlap
}

bool Encoding::validate(std::string& reason) const {
  try {
    checked();
    return true;
  } catch (const Error& error) {
    reason = error.what();
    return false;
  }
}

bool Encoding::operator==(const Encoding& other) const {
  if (kind() != other.kind() || element_bytes_ != other.element_bytes_ || elements_ != other.elements_) return false;
  return form_ == other.form_ || to_bytes() == other.to_bytes();
}

}  // namespace longshore
