// Packed and delta: what does not compress otherwise, as bit-packed lists of blocks (section 7).
#include "encodings/forms.hpp"

namespace longshore {

namespace {

struct ListForm : Form {
  EncodingKind which = EncodingKind::packed;
  std::shared_ptr<const AddressRelation> relation;  ///< one packed list, or nothing

  const PackedList* list() const {
    return relation->parts().empty() ? nullptr : &std::get<PackedList>(relation->parts()[0]);
  }
  EncodingKind kind() const override { return which; }
  Index encoded_bytes() const override {
    if (!list()) return 0;
    constexpr Index block_unit_and_bases = 4 * 8;
    return block_unit_and_bases +
           ceil_div(list()->source().stored_bytes() + list()->destination().stored_bytes(), 8) * 8;
  }
  Index symbols() const override { return list() ? list()->source().size() : 0; }
  /// Of what is executed: differences take a sum more.
  double symbol_ns() const override { return which == EncodingKind::packed ? 1.2 : 1.6; }
  std::unique_ptr<RunReader> reader() const override { return relation->reader(); }
  const AddressRelation* as_it_is() const override { return relation.get(); }
  void write(WordWriter& out) const override {
    out.index(list() != nullptr);
    if (list()) write_list(out, *list());
  }
};

FormPointer make_list(const AddressRelation& relation, EncodingKind kind, PackedIntegers::Scheme scheme) {
  auto form = std::make_shared<ListForm>();
  form->which = kind;
  PackedList list(relation.element_bytes(), *relation.reader(), *relation.reader(), scheme);
  std::vector<AddressRelation::Part> parts;
  parts.push_back(std::move(list));
  form->relation = std::make_shared<const AddressRelation>(
      AddressRelation::from_parts(relation.element_bytes(), std::move(parts), relation.reduction()));
  return form;
}

FormPointer read_form(WordReader& in, const FormHeader& header, EncodingKind kind) {
  auto form = std::make_shared<ListForm>();
  form->which = kind;
  std::vector<AddressRelation::Part> parts;
  if (in.word() != 0) parts.push_back(read_list(in, header.element_bytes));
  form->relation = std::make_shared<const AddressRelation>(
      AddressRelation::from_parts(header.element_bytes, std::move(parts), header.reduction));
  return form;
}

}  // namespace

void write_list(WordWriter& out, const PackedList& list) {
  out.index(list.block()), out.index(list.unit()), out.index(list.source_base()), out.index(list.destination_base());
  std::vector<std::byte> bytes;
  list.source().append_to(bytes), list.destination().append_to(bytes);
  out.bytes(bytes);
}

PackedList read_list(WordReader& in, Index element_bytes) {
  const Index block = in.index(), unit = in.index(), source_base = in.index(), destination_base = in.index();
  const auto bytes = in.bytes();
  std::span<const std::byte> left(bytes);
  auto source = PackedIntegers::from_bytes(left), destination = PackedIntegers::from_bytes(left);
  if (!left.empty()) in.refuse("has " + std::to_string(left.size()) + " bytes after its lists");
  return PackedList(element_bytes, block, unit, source_base, destination_base, std::move(source),
                    std::move(destination));
}

FormPointer make_packed(const AddressRelation& relation) {
  return make_list(relation, EncodingKind::packed, PackedIntegers::Scheme::offsets);
}
FormPointer make_delta(const AddressRelation& relation) {
  return make_list(relation, EncodingKind::delta, PackedIntegers::Scheme::deltas);
}
FormPointer read_packed(WordReader& in, const FormHeader& header) {
  return read_form(in, header, EncodingKind::packed);
}
FormPointer read_delta(WordReader& in, const FormHeader& header) { return read_form(in, header, EncodingKind::delta); }

}  // namespace longshore
