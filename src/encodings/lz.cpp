// DMRLE through LZ4, the other scheme that the paper leaves open (section 7). The library is looked for when it is
// first wanted, so that nothing else depends on it.
#include <algorithm>

#include "core/loaded_library.hpp"
#include "encodings/forms.hpp"

namespace longshore {

namespace {

/// The four functions of liblz4's stable interface that we call.
struct Lz4 {
  int (*bound)(int);
  int (*compress)(const char*, char*, int, int, int);
  int (*decompress)(const char*, char*, int, int);

  static const Lz4& library() {
    static const Lz4 lz4;  // loaded once; the loader keeps it
    return lz4;
  }

 private:
  Lz4() {
    const LoadedLibrary library("liblz4.so.1", "the encoding lz", "liblz4-1");
    library.find(bound, "LZ4_compressBound"), library.find(compress, "LZ4_compress_HC");
    library.find(decompress, "LZ4_decompress_safe");
  }
};

constexpr std::size_t symbols_a_block = 2048;  // 48 KiB: what is decompressed at a time stays in cache
constexpr int effort = 9;                      // of LZ4_compress_HC; encoding happens once

struct LzForm : Form {
  struct Block {
    std::size_t first, bytes;  ///< in `data`
    std::size_t symbols;
  };
  std::vector<Block> blocks;
  std::vector<std::byte> data;
  Index count = 0;

  EncodingKind kind() const override { return EncodingKind::lz; }
  Index encoded_bytes() const override { return ceil_div(Index(data.size()), 8) * 8 + Index(blocks.size()) * 8; }
  Index symbols() const override { return count; }
  double symbol_ns() const override { return 6.0; }

  struct Reader : DifferenceReader {
    explicit Reader(const LzForm& f) : form(f), plain(symbols_a_block) {}
    std::size_t next(std::span<DifferenceSymbol> out) override {
      if (at == filled) {
        if (block == form.blocks.size()) return 0;
        form.decompress(form.blocks[block], plain);
        filled = form.blocks[block++].symbols;
        at = 0;
      }
      const std::size_t n = std::min(out.size(), filled - at);
      std::copy_n(plain.begin() + Index(at), n, out.begin());
      at += n;
      return n;
    }
    const LzForm& form;
    std::vector<DifferenceSymbol> plain;
    std::size_t block = 0, at = 0, filled = 0;
  };
  std::unique_ptr<RunReader> reader() const override { return std::make_unique<Reader>(*this); }

  void decompress(const Block& block, std::vector<DifferenceSymbol>& plain) const {
    const auto bytes = int(block.symbols * sizeof(DifferenceSymbol));
    if (Lz4::library().decompress(reinterpret_cast<const char*>(data.data() + block.first),
                                  reinterpret_cast<char*>(plain.data()), int(block.bytes), bytes) != bytes)
      refuse_encoding("has a compressed block that does not decompress");
  }

  void write(WordWriter& out) const override {
    out.index(count);
    out.index(Index(blocks.size()));
    for (const auto& block : blocks) out.index(Index(block.bytes));
    out.bytes(data);
  }
};

}  // namespace

FormPointer make_lz(const AddressRelation& relation) {
  const auto& lz4 = Lz4::library();
  auto form = std::make_shared<LzForm>();
  const auto symbols = difference_map(*relation.reader());
  form->count = Index(symbols.size());
  for (std::size_t k = 0; k < symbols.size(); k += symbols_a_block) {
    const std::size_t n = std::min(symbols_a_block, symbols.size() - k);
    const int bytes = int(n * sizeof(DifferenceSymbol)), bound = lz4.bound(bytes);
    const std::size_t first = form->data.size();
    form->data.resize(first + std::size_t(bound));
    const int written = lz4.compress(reinterpret_cast<const char*>(&symbols[k]),
                                     reinterpret_cast<char*>(form->data.data() + first), bytes, bound, effort);
    if (written <= 0)
      throw Error(ErrorKind::transport, "liblz4 could not compress " + std::to_string(bytes) + " bytes");
    form->data.resize(first + std::size_t(written));
    form->blocks.push_back({first, std::size_t(written), n});
  }
  form->data.shrink_to_fit();
  return form;
}

FormPointer read_lz(WordReader& in, const FormHeader&) {
  Lz4::library();
  auto form = std::make_shared<LzForm>();
  form->count = in.index();
  const Index blocks = in.count(1);
  if (form->count < 0 || blocks != ceil_div(form->count, Index(symbols_a_block)))
    in.refuse("has a wrong number of compressed blocks");
  std::size_t bytes = 0;
  for (Index k = 0; k < blocks; ++k) {
    const auto n = in.word();
    if (n > symbols_a_block * sizeof(DifferenceSymbol) * 2)
      in.refuse("has a compressed block of " + std::to_string(n) + " bytes");
    const auto left = std::size_t(form->count) - std::size_t(k) * symbols_a_block;
    form->blocks.push_back({bytes, std::size_t(n), std::min(symbols_a_block, left)});
    bytes += std::size_t(n);
  }
  form->data = in.bytes();
  if (form->data.size() != bytes) in.refuse("has compressed blocks of another size than it says");
  std::vector<DifferenceSymbol> plain(symbols_a_block);
  for (const auto& block : form->blocks) {
    form->decompress(block, plain);
    for (std::size_t k = 0; k < block.symbols; ++k)
      if (plain[k].length < 1) in.refuse("has a symbol of " + std::to_string(plain[k].length) + " elements");
  }
  return form;
}

}  // namespace longshore
