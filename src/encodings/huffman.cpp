// Huffman-coded DMRLE, which the paper leaves open (sections 4 and 7): symbols that come often have short keys.
#include <algorithm>
#include <bit>
#include <queue>

#include "encodings/forms.hpp"

namespace longshore {

namespace {

constexpr int longest_code = 56;  // of two 32-bit reads at any bit; no relation that fits in memory needs more
constexpr int lookup_bits = 10;   // codes up to here are decoded by one look

/// The length of each symbol's code, from how often it comes.
std::vector<int> code_lengths(const std::vector<Index>& frequencies) {
  struct Node {
    Index weight;
    int left = -1, right = -1;
  };
  std::vector<Node> nodes;
  for (const Index f : frequencies) nodes.push_back({f});
  if (nodes.size() == 1) return {1};
  auto heavier = [&](int a, int b) {
    const auto &x = nodes[std::size_t(a)], &y = nodes[std::size_t(b)];
    return x.weight != y.weight ? x.weight > y.weight : a > b;
  };
  std::priority_queue<int, std::vector<int>, decltype(heavier)> lightest(heavier);
  for (std::size_t k = 0; k < frequencies.size(); ++k) lightest.push(int(k));
  while (lightest.size() > 1) {
    const int a = lightest.top();
    lightest.pop();
    const int b = lightest.top();
    lightest.pop();
    nodes.push_back({nodes[std::size_t(a)].weight + nodes[std::size_t(b)].weight, a, b});
    lightest.push(int(nodes.size()) - 1);
  }
  std::vector<int> depth(nodes.size());
  for (std::size_t k = nodes.size(); k-- > 0;)  // parents come after their children
    if (nodes[k].left >= 0) depth[std::size_t(nodes[k].left)] = depth[std::size_t(nodes[k].right)] = depth[k] + 1;
  depth.resize(frequencies.size());
  return depth;
}

struct HuffmanForm : Form {
  std::vector<DifferenceSymbol> table;     ///< by length of code, then in the order in which they first come
  std::vector<std::uint64_t> with_length;  ///< how many symbols have codes of 1, 2, ... bits
  std::vector<std::uint64_t> words;        ///< the codes one after the other, from the highest bit of each word down
  Index bits = 0, count = 0;

  // What decoding needs, made from the above.
  struct Level {
    std::uint64_t first,
        codes;             ///< the first code of this length, in the highest bits of a word, and how many there are
    std::uint32_t symbol;  ///< of the first
  };
  struct Look {
    std::uint32_t symbol = 0;
    int length = 0;  ///< 0: longer than lookup_bits
  };
  std::vector<Level> levels;
  std::vector<Look> look;

  EncodingKind kind() const override { return EncodingKind::huffman; }
  Index encoded_bytes() const override {
    return Index(table.size() * sizeof(DifferenceSymbol) + (with_length.size() + words.size()) * sizeof(std::uint64_t));
  }
  Index symbols() const override { return count; }
  Index distinct_symbols() const override { return Index(table.size()); }
  double symbol_ns() const override { return 11.5; }

  /// Throws `Error(argument)` where the lengths are those of no prefix code.
  void prepare() {
    std::uint64_t code = 0;  // from the top of a word down
    std::uint32_t symbol = 0;
    bool full = false;  // every code is taken
    look.assign(std::size_t(1) << lookup_bits, {});
    for (std::size_t k = 0; k < with_length.size(); ++k) {
      const int length = int(k) + 1;
      const std::uint64_t unit = std::uint64_t(1) << (64 - length), n = with_length[k];
      if (n > 0 && (full || n - 1 > (~code) / unit)) refuse_encoding("has code lengths that no prefix code has");
      levels.push_back({code, n, symbol});
      for (std::uint64_t j = 0; j < n && length <= lookup_bits; ++j)
        for (std::uint64_t l = 0, first = (code + j * unit) >> (64 - lookup_bits);
             l < std::uint64_t(1) << (lookup_bits - length); ++l)
          look[std::size_t(first + l)] = {symbol + std::uint32_t(j), length};
      symbol += std::uint32_t(n);
      const std::uint64_t next = code + n * unit;
      full = full || (n > 0 && next == 0);
      code = next;
    }
  }

  struct Reader : DifferenceReader {
    explicit Reader(const HuffmanForm& f) : form(f), left(f.count) {}
    std::size_t next(std::span<DifferenceSymbol> out) override {
      const std::size_t n = std::min(out.size(), std::size_t(left));
      for (std::size_t k = 0; k < n; ++k) {
        std::uint32_t symbol = 0;
        if (!form.decode(at, symbol))
          refuse_encoding("has a code that stands for nothing, at bit " + std::to_string(at));
        out[k] = form.table[symbol];
      }
      left -= Index(n);
      return n;
    }
    const HuffmanForm& form;
    Index left, at = 0;
  };
  std::unique_ptr<RunReader> reader() const override { return std::make_unique<Reader>(*this); }

  /// The symbol whose code begins at a bit, and past it.
  bool decode(Index& at, std::uint32_t& symbol) const {
    const auto word = std::size_t(at / 64);
    const int in_word = int(at % 64);
    if (at >= bits) return false;
    std::uint64_t window = words[word] << in_word;
    if (in_word > 0 && word + 1 < words.size()) window |= words[word + 1] >> (64 - in_word);
    const auto& found = look[std::size_t(window >> (64 - lookup_bits))];
    int length = found.length;
    symbol = found.symbol;
    if (length == 0) {
      std::size_t k = lookup_bits;
      while (k < levels.size() && (window - levels[k].first) >> (63 - k) >= levels[k].codes) ++k;
      if (k >= levels.size()) return false;
      length = int(k) + 1;
      symbol = levels[k].symbol + std::uint32_t((window - levels[k].first) >> (64 - length));
    }
    at += length;
    return symbol < table.size() && at <= bits;
  }

  void write(WordWriter& out) const override {
    write_symbols(out, table);
    out.index(Index(with_length.size()));
    for (const auto n : with_length) out.word(n);
    out.index(count);
    out.index(bits);
    for (const auto word : words) out.word(word);
  }
};

}  // namespace

FormPointer make_huffman(const AddressRelation& relation) {
  auto form = std::make_shared<HuffmanForm>();
  const auto symbols = difference_map(*relation.reader());
  const SymbolTable table(symbols);
  form->count = Index(symbols.size());
  if (symbols.empty()) return form;

  std::vector<Index> frequencies(table.distinct.size());
  for (const auto key : table.keys) ++frequencies[key];
  const auto lengths = code_lengths(frequencies);
  const int longest = *std::max_element(lengths.begin(), lengths.end());
  if (longest > longest_code)
    throw Error(ErrorKind::overflow,
                "Huffman codes of " + std::to_string(longest) + " bits; at most " + std::to_string(longest_code));

  // Canonical: codes of one length follow each other, shorter ones first.
  std::vector<std::uint32_t> order(lengths.size()), place(lengths.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = std::uint32_t(k);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lengths[a] < lengths[b]; });
  form->with_length.resize(std::size_t(longest));
  for (std::size_t k = 0; k < order.size(); ++k) {
    form->table.push_back(table.distinct[order[k]]);
    ++form->with_length[std::size_t(lengths[order[k]]) - 1];
    place[order[k]] = std::uint32_t(k);
  }
  std::vector<std::uint64_t> codes(order.size());
  std::uint64_t code = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    codes[k] = code;
    code += std::uint64_t(1) << (64 - lengths[order[k]]);
  }
  for (const auto key : table.keys) form->bits += lengths[key];
  form->words.resize(std::size_t(ceil_div(form->bits, 64)));
  Index at = 0;
  for (const auto key : table.keys) {
    const auto bits = codes[place[key]];
    form->words[std::size_t(at / 64)] |= bits >> (at % 64);
    if (at % 64 + lengths[key] > 64) form->words[std::size_t(at / 64) + 1] |= bits << (64 - at % 64);
    at += lengths[key];
  }
  form->prepare();
  return form;
}

FormPointer read_huffman(WordReader& in, const FormHeader&) {
  auto form = std::make_shared<HuffmanForm>();
  form->table = read_symbols(in);
  const Index lengths = in.count(1);
  if (lengths > longest_code)
    in.refuse("has codes of " + std::to_string(lengths) + " bits; at most " + std::to_string(longest_code));
  std::uint64_t symbols = 0;
  for (Index k = 0; k < lengths; ++k) {
    form->with_length.push_back(in.word());
    if (form->with_length.back() > form->table.size() - symbols) in.refuse("has more codes than symbols");
    symbols += form->with_length.back();
  }
  if (symbols != form->table.size()) in.refuse("has fewer codes than symbols");
  form->count = in.index();
  form->bits = in.index();
  if (form->count < 0 || form->bits < form->count) in.refuse("has fewer bits than symbols");
  form->words = in.take(std::size_t(ceil_div(form->bits, 64)));
  form->prepare();
  Index at = 0;
  for (Index k = 0; k < form->count; ++k) {
    std::uint32_t symbol = 0;
    if (!form->decode(at, symbol)) in.refuse("has a code that stands for nothing, at bit " + std::to_string(at));
  }
  if (at != form->bits) in.refuse("has bits after its last symbol");
  return form;
}

}  // namespace longshore
