// DMRLE and DMRLEC: the difference map, run-length encoded, and its symbols in a table (section 4).
#include <algorithm>
#include <bit>

#include "core/digest.hpp"
#include "encodings/forms.hpp"

namespace longshore {

std::vector<DifferenceSymbol> difference_map(RunReader& pairs) {
  std::vector<DifferenceSymbol> symbols;
  std::uint64_t source = 0, destination = 0;
  auto push = [&](Index ds, Index dd, Index length) {
    if (!symbols.empty() && symbols.back().source == ds && symbols.back().destination == dd)
      symbols.back().length += length;
    else
      symbols.push_back({ds, dd, length});
  };
  for_each_run(pairs, [&](const OffsetRun& run) {
    push(Index(std::uint64_t(run.source) - source), Index(std::uint64_t(run.destination) - destination), 1);
    if (run.count > 1) push(run.source_step, run.destination_step, run.count - 1);
    const auto last = run.at(run.count - 1);
    source = std::uint64_t(last.source), destination = std::uint64_t(last.destination);
  });
  return symbols;
}

std::size_t DifferenceReader::read(std::span<OffsetRun> out) {
  DifferenceSymbol batch[64];
  const std::size_t n = next(std::span(batch).first(std::min<std::size_t>(out.size(), 64)));
  for (std::size_t k = 0; k < n; ++k) {
    const auto& symbol = batch[k];
    const auto ds = std::uint64_t(symbol.source), dd = std::uint64_t(symbol.destination),
               l = std::uint64_t(symbol.length);
    out[k] = {Index(source_ + ds), Index(destination_ + dd), symbol.length, symbol.source, symbol.destination};
    source_ += ds * l, destination_ += dd * l;
  }
  return n;
}

void write_symbols(WordWriter& out, std::span<const DifferenceSymbol> symbols) {
  out.index(Index(symbols.size()));
  for (const auto& symbol : symbols) out.index(symbol.source), out.index(symbol.destination), out.index(symbol.length);
}

std::vector<DifferenceSymbol> read_symbols(WordReader& in) {
  std::vector<DifferenceSymbol> symbols(std::size_t(in.count(3)));
  for (auto& symbol : symbols) {
    symbol = {in.index(), in.index(), in.index()};
    if (symbol.length < 1) in.refuse("has a symbol of " + std::to_string(symbol.length) + " elements");
  }
  return symbols;
}

namespace {

struct SymbolForm : Form {
  std::vector<DifferenceSymbol> list;

  EncodingKind kind() const override { return EncodingKind::dmrle; }
  Index encoded_bytes() const override { return Index(list.size() * sizeof(DifferenceSymbol)); }
  Index symbols() const override { return Index(list.size()); }
  double symbol_ns() const override { return 4.2; }

  struct Reader : DifferenceReader {
    explicit Reader(std::span<const DifferenceSymbol> symbols) : left(symbols) {}
    std::size_t next(std::span<DifferenceSymbol> out) override {
      const std::size_t n = std::min(out.size(), left.size());
      std::copy_n(left.begin(), n, out.begin());
      left = left.subspan(n);
      return n;
    }
    std::span<const DifferenceSymbol> left;
  };
  std::unique_ptr<RunReader> reader() const override { return std::make_unique<Reader>(list); }
  void write(WordWriter& out) const override { write_symbols(out, list); }
};

/// Bits of a key: the least power of two that numbers all symbols.
Index key_bits(Index distinct) {
  const auto needed = distinct > 1 ? std::bit_width(std::uint64_t(distinct - 1)) : 1;
  return Index(std::bit_ceil(std::uint64_t(needed)));
}

struct DictionaryForm : Form {
  std::vector<DifferenceSymbol> table;  ///< the distinct symbols
  std::vector<std::uint64_t> words;     ///< 64 / bits keys each, the first in the lowest bits
  Index bits = 1, count = 0;

  EncodingKind kind() const override { return EncodingKind::dmrlec; }
  /// The paper's table has 2^k entries for the least k that is enough.
  Index encoded_bytes() const override {
    const auto entries = table.empty() ? 0 : std::bit_ceil(std::uint64_t(table.size()));
    return Index(entries * sizeof(DifferenceSymbol) + words.size() * sizeof(std::uint64_t));
  }
  Index symbols() const override { return count; }
  Index distinct_symbols() const override { return Index(table.size()); }
  double symbol_ns() const override { return 5.0; }

  std::uint64_t key(Index k) const {
    const auto at = std::uint64_t(k) * std::uint64_t(bits);  // keys fill words to the last bit
    return words[at / 64] >> (at % 64) & (~std::uint64_t(0) >> (64 - bits));
  }

  struct Reader : DifferenceReader {
    explicit Reader(const DictionaryForm& f) : form(f) {}
    std::size_t next(std::span<DifferenceSymbol> out) override {
      const std::size_t n = std::min(out.size(), std::size_t(form.count - at));
      for (std::size_t k = 0; k < n; ++k) out[k] = form.table[std::size_t(form.key(at++))];
      return n;
    }
    const DictionaryForm& form;
    Index at = 0;
  };
  std::unique_ptr<RunReader> reader() const override { return std::make_unique<Reader>(*this); }

  void write(WordWriter& out) const override {
    write_symbols(out, table);
    out.index(count);
    for (const auto word : words) out.word(word);
  }
};

}  // namespace

SymbolTable::SymbolTable(std::span<const DifferenceSymbol> symbols) : keys(symbols.size()) {
  constexpr auto none = ~std::uint32_t(0);
  if (symbols.size() >= none)
    throw Error(ErrorKind::overflow, "a relation of more than 2^32 symbols has no symbol table");
  std::vector<std::uint32_t> slots(64, none);
  auto place_of = [&](const DifferenceSymbol& symbol) {
    Digest digest;
    for (const Index x : {symbol.source, symbol.destination, symbol.length}) digest.mix(std::uint64_t(x));
    auto place = std::size_t(digest.value()) & (slots.size() - 1);
    while (slots[place] != none && !(distinct[slots[place]] == symbol)) place = (place + 1) & (slots.size() - 1);
    return place;
  };
  for (std::size_t k = 0; k < symbols.size(); ++k) {
    auto place = place_of(symbols[k]);
    if (slots[place] == none) {
      if (2 * distinct.size() >= slots.size()) {
        slots.assign(2 * slots.size(), none);
        for (std::size_t j = 0; j < distinct.size(); ++j) slots[place_of(distinct[j])] = std::uint32_t(j);
        place = place_of(symbols[k]);
      }
      slots[place] = std::uint32_t(distinct.size());
      distinct.push_back(symbols[k]);
    }
    keys[k] = slots[place];
  }
}

FormPointer make_dmrle(const AddressRelation& relation) {
  auto form = std::make_shared<SymbolForm>();
  form->list = difference_map(*relation.reader());
  return form;
}

FormPointer read_dmrle(WordReader& in, const FormHeader&) {
  auto form = std::make_shared<SymbolForm>();
  form->list = read_symbols(in);
  return form;
}

FormPointer make_dmrlec(const AddressRelation& relation) {
  auto form = std::make_shared<DictionaryForm>();
  const auto symbols = difference_map(*relation.reader());
  SymbolTable table(symbols);
  form->count = Index(symbols.size());
  form->bits = key_bits(Index(table.distinct.size()));
  const auto per_word = std::size_t(64 / form->bits);
  form->words.resize((table.keys.size() + per_word - 1) / per_word);
  for (std::size_t k = 0; k < table.keys.size(); ++k)
    form->words[k / per_word] |= std::uint64_t(table.keys[k]) << (k % per_word * std::size_t(form->bits));
  form->table = std::move(table.distinct);
  return form;
}

FormPointer read_dmrlec(WordReader& in, const FormHeader&) {
  auto form = std::make_shared<DictionaryForm>();
  form->table = read_symbols(in);
  form->bits = key_bits(Index(form->table.size()));
  form->count = in.index();
  const Index per_word = 64 / form->bits;
  if (form->count < 0 || (form->count > 0 && form->table.empty())) in.refuse("has keys but no symbols");
  form->words = in.take(std::size_t(ceil_div(form->count, per_word)));
  for (Index k = 0; k < form->count; ++k)
    if (form->key(k) >= form->table.size())
      in.refuse("has key " + std::to_string(form->key(k)) + " at " + std::to_string(k) + " in a table of " +
                std::to_string(form->table.size()));
  return form;
}

}  // namespace longshore
