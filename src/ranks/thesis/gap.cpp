// Gap (delta) encoding, section 4.1.4: gaps in as many bits as the largest needs, and a sum for each block of 32
// members.
#include "longshore/sequences/fixed_integers.hpp"
#include "ranks/thesis/modules.hpp"
#include "sequences/stored_sequences.hpp"

namespace longshore::thesis {

namespace {

class Gaps : public CustomForm {
 public:
  static constexpr Index block = 32;

  explicit Gaps(const Members& members);
  Gaps(FixedIntegers gaps, FixedIntegers sums) : gaps_(std::move(gaps)), sums_(std::move(sums)) {}
  static Index bytes_of(Index size, Index largest_gap, Index highest) {
    return with_form<Gaps>(FixedIntegers::bytes_of(size, FixedIntegers::bits_of(largest_gap)) +
                           FixedIntegers::bytes_of(ceil_div(size, block), FixedIntegers::bits_of(highest)));
  }

  std::string_view name() const override { return "gap"; }
  Index size() const override { return gaps_.size(); }
  Index select(Index i) const override {
    Index value = sums_[i / block];
    for (Index k = i / block * block + 1; k <= i; ++k) value += gaps_[k];
    return value;
  }
  void read(Index first, Index n, Index* out) const override;
  Index bytes() const override { return Index(sizeof *this) + gaps_.memory_bytes() + sums_.memory_bytes(); }
  std::optional<std::vector<std::uint64_t>> words() const override {
    WordWriter out;
    write_fixed(out, gaps_), write_fixed(out, sums_);
    return out.words();
  }

 private:
  FixedIntegers gaps_;  ///< of the member before each; not used where a block begins
  FixedIntegers sums_;  ///< the first member of each block
};

Gaps::Gaps(const Members& members) {
  Index before = -1, largest = 0, highest = 0;
  members.each_piece([&](Index first, std::span<const Index> values) {
    for (const Index value : values) {
      if (value <= before) throw Error(ErrorKind::argument, "gap: the ranks do not ascend");
      if (first++ > 0) largest = std::max(largest, value - before);
      before = highest = value;
    }
  });
  gaps_ = FixedIntegers(members.size(), FixedIntegers::bits_of(largest));
  sums_ = FixedIntegers(ceil_div(members.size(), block), FixedIntegers::bits_of(highest));
  members.each_piece([&](Index first, std::span<const Index> values) {
    for (const Index value : values) {
      if (first % block == 0)
        sums_.set(first / block, value);
      else
        gaps_.set(first, value - before);
      before = value, ++first;
    }
  });
}

void Gaps::read(Index first, Index n, Index* out) const {
  if (n <= 0) return;
  Index value = *out++ = select(first);
  for (Index i = first + 1; i < first + n; ++i) *out++ = value = i % block == 0 ? sums_[i / block] : value + gaps_[i];
}

class GapModule : public RankModule {
 public:
  std::string_view name() const override { return "gap"; }
  Estimate estimate(const Members&, const Analysis& a) const override {
    if (const char* why = no_set(a)) return Estimate::impossible(why);
    return Estimate::of(a, Gaps::bytes_of(a.size, std::max<Index>(a.largest_step, 0), a.highest), 38, -1, 2);
  }
  RankMap::Form build(const Members& members, const Analysis&) const override {
    return custom(std::make_shared<Gaps>(members));
  }
  std::shared_ptr<const CustomForm> read(std::span<const std::uint64_t> words, Index size, Index) const override {
    WordReader in(words, "the rank map");
    auto gaps = read_fixed(in, size), sums = read_fixed(in, ceil_div(size, Gaps::block));
    in.end();
    return std::make_shared<Gaps>(std::move(gaps), std::move(sums));
  }
};

}  // namespace

const RankModule& gap_module() {
  static const GapModule module;
  return module;
}

}  // namespace longshore::thesis
