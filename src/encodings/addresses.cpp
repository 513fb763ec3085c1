// AAPAIR and AABLK: addresses as they are.
#include <algorithm>

#include "encodings/forms.hpp"
#include "relations/parts.hpp"

namespace longshore {

namespace {

struct PairForm : Form {
  std::vector<OffsetPair> pairs;

  EncodingKind kind() const override { return EncodingKind::aapair; }
  Index encoded_bytes() const override { return Index(pairs.size() * sizeof(OffsetPair)); }
  Index symbols() const override { return Index(pairs.size()); }
  double symbol_ns() const override { return 3.5; }

  std::unique_ptr<RunReader> reader() const override { return std::make_unique<PairReader>(pairs); }

  void write(WordWriter& out) const override {
    out.index(Index(pairs.size()));
    for (const auto& pair : pairs) out.index(pair.source), out.index(pair.destination);
  }
};

struct BlockForm : Form {
  Index element = 0;
  std::vector<OffsetBlock> blocks;

  EncodingKind kind() const override { return EncodingKind::aablk; }
  Index encoded_bytes() const override { return Index(blocks.size() * sizeof(OffsetBlock)); }
  Index symbols() const override { return Index(blocks.size()); }
  double symbol_ns() const override { return 3.8; }

  void add(const OffsetRun& run) {
    if (run.count > 1 && (run.source_step != element || run.destination_step != element)) {
      for (Index k = 0; k < run.count; ++k) add(run.slice(k, k + 1));
      return;
    }
    if (!blocks.empty()) {
      auto& last = blocks.back();
      if (last.source + last.elements * element == run.source &&
          last.destination + last.elements * element == run.destination) {
        last.elements += run.count;
        return;
      }
    }
    blocks.push_back({run.source, run.destination, run.count});
  }

  struct Reader : RunReader {
    explicit Reader(const BlockForm& form) : left(form.blocks), element(form.element) {}
    std::size_t read(std::span<OffsetRun> out) override {
      const std::size_t n = std::min(out.size(), left.size());
      for (std::size_t k = 0; k < n; ++k)
        out[k] = {left[k].source, left[k].destination, left[k].elements, element, element};
      left = left.subspan(n);
      return n;
    }
    std::span<const OffsetBlock> left;
    Index element;
  };
  std::unique_ptr<RunReader> reader() const override { return std::make_unique<Reader>(*this); }

  void write(WordWriter& out) const override {
    out.index(Index(blocks.size()));
    for (const auto& block : blocks) out.index(block.source), out.index(block.destination), out.index(block.elements);
  }
};

}  // namespace

FormPointer make_aapair(const AddressRelation& relation) {
  auto form = std::make_shared<PairForm>();
  form->pairs = relation.pairs();
  return form;
}

FormPointer read_aapair(WordReader& in, const FormHeader&) {
  auto form = std::make_shared<PairForm>();
  form->pairs.resize(std::size_t(in.count(2)));
  for (auto& pair : form->pairs) pair = {in.index(), in.index()};
  return form;
}

FormPointer make_aablk(const AddressRelation& relation) {
  auto form = std::make_shared<BlockForm>();
  form->element = relation.element_bytes();
  const auto pairs = relation.reader();
  for_each_run(*pairs, [&](const OffsetRun& run) { form->add(run); });
  return form;
}

FormPointer read_aablk(WordReader& in, const FormHeader& header) {
  auto form = std::make_shared<BlockForm>();
  form->element = header.element_bytes;
  form->blocks.resize(std::size_t(in.count(3)));
  for (auto& block : form->blocks) {
    block = {in.index(), in.index(), in.index()};
    if (block.elements < 1) in.refuse("has a block of " + std::to_string(block.elements) + " elements");
  }
  return form;
}

}  // namespace longshore
