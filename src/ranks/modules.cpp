// The modules of the library: what each would cost, from one analysis, and how it is built. Times
// are of questions at random on a server's core, as `longshore bench ranks` has measured them;
// what the nearer caches of such a core do not hold is added.
#include <algorithm>
#include <cmath>

#include "ranks/forms.hpp"
#include "ranks/make.hpp"

namespace longshore {

using namespace ranks;

namespace {

/// What reaching for so many bytes at random adds, with so many accesses that depend on one another.
double memory_ns(double bytes, int accesses) {
  constexpr double first_cache = 48e3, second_cache = 2e6, last_cache = 64e6;
  const double each = bytes < first_cache ? 0 : bytes < second_cache ? 0.7 : bytes < last_cache ? 2.5 : 30;
  return accesses * each;
}

Estimate impossible(std::string why) {
  Estimate estimate;
  estimate.note = std::move(why);
  return estimate;
}

/// A form of `bytes`, asked in `select` and `rank` nanoseconds and so many accesses to memory. Where the ranks ascend,
/// what has no RANK of its own is bisected.
Estimate costs(const Analysis& a, Index bytes, double select, double rank, int accesses, std::string note = {}) {
  Estimate estimate{true, double(std::max<Index>(bytes, 1)), 0, rank, std::move(note)};
  estimate.select_ns = select + memory_ns(estimate.bytes, accesses);
  if (rank < 0 && a.ascending) estimate.rank_ns = std::log2(double(a.size) + 2) * (select + 4);
  if (rank >= 0) estimate.rank_ns += memory_ns(estimate.bytes, accesses);
  return estimate;
}

/// Of what is no closed form: the form stands behind a pointer.
template <class Form>
Estimate kept(const Analysis& a, Index bytes, double select, double rank, int accesses, std::string note = {}) {
  return costs(a, kept_bytes<Form> + bytes, select, rank, accesses, std::move(note));
}

constexpr double searched = -1;

/// A module as its name and two functions.
class Module : public RankModule {
 public:
  using Estimator = Estimate (*)(const Analysis&);
  using Maker = RankMap::Form (*)(const Members&, const Analysis&);
  Module(std::string_view name, Estimator estimator, Maker maker) : name_(name), estimator_(estimator), maker_(maker) {}

  std::string_view name() const override { return name_; }
  Estimate estimate(const Analysis& analysis) const override { return estimator_(analysis); }
  RankMap::Form build(const Members& members, const Analysis& analysis) const override {
    const auto possible = estimator_(analysis);
    if (!possible.possible) throw Error(ErrorKind::argument, std::string(name_) + ": " + possible.note);
    return maker_(members, analysis);
  }

 private:
  std::string_view name_;
  Estimator estimator_;
  Maker maker_;
};

constexpr const char* no_set = "the ranks do not ascend";
constexpr Index most_kept_bits = Index{1} << 33;  ///< of a bitmap
constexpr Index most_kept = Index{1} << 31;       ///< members that each take some bits

const char* not_listed(const Analysis& a) { return a.size > most_kept ? "too many members" : nullptr; }
const char* no_list_of_set(const Analysis& a) {
  return !a.ascending ? no_set : a.size == 0 ? "no members" : not_listed(a);
}

// --- closed forms

Estimate estimate_nest(const Analysis& a) {
  if (!a.nest) return impossible("the ranks are no nested loops");
  const auto depth = double(a.nest->depth());
  auto estimate = costs(a, a.nest->bytes(), 1.4 + 0.6 * (depth - 1), 3 + 3 * depth, 0, a.nest->to_string());
  return estimate;
}
RankMap::Form make_nest(const Members&, const Analysis& a) { return *a.nest; }

Estimate estimate_stride(const Analysis& a) {
  if (!a.nest || a.nest->depth() > 1) return impossible("the ranks are no stride");
  return estimate_nest(a);
}

// --- sets

Estimate estimate_elias_fano(const Analysis& a) {
  if (const char* why = no_list_of_set(a)) return impossible(why);
  if (a.size > EliasFano::most) return impossible("too many members");
  return kept<EliasFanoForm>(a, EliasFanoForm::bytes_of(a.size, a.span()), 16, 38, 2);
}
RankMap::Form make_elias_fano(const Members& m, const Analysis& a) {
  return keep(EliasFanoForm(m, a.lowest, a.highest));
}

Estimate estimate_holes(const Analysis& a) {
  if (!a.ascending) return impossible(no_set);
  if (a.size == 0) return impossible("no members");
  const Index holes = a.span() - a.size;
  if (holes > a.size || holes > EliasFano::most || a.size > most_kept) return impossible("more holes than members");
  return kept<HolesForm>(a, HolesForm::bytes_of(a.size, a.span()), 20, 16 * std::log2(double(holes) + 2), 2);
}
RankMap::Form make_holes(const Members& m, const Analysis& a) { return keep(HolesForm(m, a.lowest, a.highest)); }

Estimate estimate_bitmap512(const Analysis& a) {
  if (const char* why = no_list_of_set(a)) return impossible(why);
  if (a.span() > most_kept_bits || a.size > Bitmap::most) return impossible("too many bits");
  return kept<BitmapForm>(a, BitmapForm::bytes_of(a.size, a.span()), 16, 9, 2);
}
RankMap::Form make_bitmap512(const Members& m, const Analysis& a) { return keep(BitmapForm(m, a.lowest, a.highest)); }

Estimate estimate_runs(const Analysis& a) {
  if (!a.ascending || a.size == 0) return impossible(a.size == 0 ? "no members" : no_set);
  if (a.ranges > EliasFano::most) return impossible("too many runs");
  if (!a.enumerated && a.runs.empty()) return impossible("too many members");
  return kept<RunsForm>(a, RunsForm::bytes_of(a.ranges, a.size, a.span()), 55, 75, 3,
                        std::to_string(a.ranges) + " runs");
}
RankMap::Form make_runs(const Members& m, const Analysis& a) {
  return keep(RunsForm(a.runs.empty() ? m : Members(a.runs)));
}

Estimate estimate_dag(const Analysis& a) {
  if (!a.diagram) return impossible(a.ascending ? "no small diagram" : no_set);
  const double levels = FixedIntegers::bits_of(a.highest) - DagForm::leaf_bits;
  return kept<DagForm>(a, DagForm::bytes_of(a.dag_nodes, a.dag_leaves, a.size), 20 + 10 * std::max(levels, 0.0),
                       15 + 9 * std::max(levels, 0.0), 1,
                       std::to_string(a.dag_nodes) + " nodes, " + std::to_string(a.dag_leaves) + " leaves");
}
RankMap::Form make_dag(const Members&, const Analysis& a) { return a.diagram; }

// --- lists

Estimate estimate_array(const Analysis& a) {
  if (const char* why = not_listed(a)) return impossible(why);
  return kept<ArrayForm>(a, ArrayForm::bytes_of(a.size, a.world), 1.6, searched, 1);
}
RankMap::Form make_array(const Members& m, const Analysis& a) { return keep(ArrayForm(m, a.world)); }

Estimate estimate_packed(const Analysis& a) {
  if (const char* why = not_listed(a)) return impossible(why);
  return kept<PackedForm>(a, PackedForm::bytes_of(a.size, a.world), 6, searched, 1);
}
RankMap::Form make_packed(const Members& m, const Analysis& a) { return keep(PackedForm(m, a.world)); }

Estimate estimate_linear(const Analysis& a) {
  if (const char* why = not_listed(a)) return impossible(why);
  if (!a.enumerated || a.linear_bytes == 0) return impossible("the members were not looked at");
  return kept<LinearForm>(a, a.linear_bytes, 7, searched, 2);
}
RankMap::Form make_linear(const Members& m, const Analysis&) { return keep(LinearForm(m)); }

Estimate estimate_affine_runs(const Analysis& a) {
  if (a.runs.empty()) return impossible("the members are no long runs");
  const auto n = Index(a.runs.size());
  Index least = INT64_MAX, most = INT64_MIN, highest = 0, extents = 0;
  for (const auto& run : a.runs) {
    least = std::min(least, run.step), most = std::max(most, run.step), highest = std::max(highest, run.first);
    if (extents <= a.span()) extents += run.highest() - run.lowest() + 1;
  }
  Index bytes = AffineRunsForm::bytes_of(n, a.size, highest, most - least);
  // An order by rank is kept where runs lie apart, and only then they fit side by side.
  if (!a.ascending && extents <= a.span()) bytes += FixedIntegers::bytes_of(n, FixedIntegers::bits_of(n));
  return kept<AffineRunsForm>(a, bytes, 21, 15 + 7 * std::log2(double(n) + 1), 2, std::to_string(n) + " runs");
}
RankMap::Form make_affine_runs(const Members&, const Analysis& a) { return keep(AffineRunsForm(a.runs)); }

Estimate estimate_grammar(const Analysis& a) {
  if (a.grammar_rules == 0) return impossible("the steps hardly repeat");
  return kept<GrammarForm>(a, GrammarForm::bytes_of(a.grammar_rules, a.grammar_top, a.size, a.span()),
                           40 + 8 * std::log2(double(a.runs.size()) + 1), a.ascending ? 150 : searched, 3,
                           "about " + std::to_string(a.grammar_rules + a.grammar_top) + " symbols");
}
RankMap::Form make_grammar(const Members&, const Analysis& a) { return keep(GrammarForm(a.runs, a.ascending)); }

Estimate estimate_chunks(const Analysis& a) {
  if (const char* why = not_listed(a)) return impossible(why);
  if (!a.enumerated || a.chunk_bytes == 0 || a.size <= ChunksForm::chunk) return impossible("the map is one chunk");
  return kept<ChunksForm>(a, a.chunk_bytes, 20, a.ascending ? 110 : searched, 3);
}
RankMap::Form make_chunks(const Members& m, const Analysis& a) { return keep(ChunksForm(m, a.world, a.ascending)); }

const Modules& outer_modules() {
  static const Modules modules{&rank_module("nest"),      &rank_module("affine-runs"), &rank_module("elias-fano"),
                               &rank_module("bitmap512"), &rank_module("linear"),      &rank_module("packed")};
  return modules;
}

Estimate estimate_product(const Analysis& a) {
  if (!a.product) return impossible("the members are no list of equal loops");
  const auto& outer = *a.product->outer_analysis;
  Estimate best;
  for (const auto* module : outer_modules()) {
    const auto estimate = module->estimate(outer);
    if (estimate.possible && (!best.possible || Strategy().score(estimate) < Strategy().score(best))) best = estimate;
  }
  const auto depth = double(a.product->inner.depth());
  const Index bytes = Index(best.bytes) + a.product->inner.bytes() + ProductForm::parts_bytes;
  return kept<ProductForm>(a, bytes, best.select_ns + 5 + depth,
                           best.rank_ns < 0 ? searched : best.rank_ns + 7 + 3 * depth, 0,
                           std::to_string(a.product->outer.size()) + " times " + a.product->inner.to_string());
}
RankMap::Form make_product(const Members&, const Analysis& a) {
  auto outer =
      make_analysed(Members(a.product->outer), *a.product->outer_analysis, {0.25, outer_modules(), LookupKind::none});
  return keep(ProductForm(std::move(outer), a.product->inner, a.product->base, a.product->unit));
}

// --- the thesis's

Estimate estimate_gap(const Analysis& a) {
  if (const char* why = no_list_of_set(a)) return impossible(why);
  return kept<GapForm>(a, GapForm::bytes_of(a.size, std::max<Index>(a.largest_step, 0), a.highest), 38, searched, 2);
}
RankMap::Form make_gap(const Members& m, const Analysis&) { return keep(GapForm(m)); }

Estimate estimate_bitmap(const Analysis& a) {
  if (const char* why = no_list_of_set(a)) return impossible(why);
  if (a.span() > most_kept_bits) return impossible("too many bits");
  return kept<SumsBitmapForm>(a, SumsBitmapForm::bytes_of(a.span()), 28 + 9 * std::log2(double(a.span()) / 1024 + 1),
                              20, 2);
}
RankMap::Form make_bitmap(const Members& m, const Analysis& a) { return keep(SumsBitmapForm(m, a.lowest, a.highest)); }

/// Nests have better than diagrams, so the analysis does not look for theirs; 0 where there is no small one.
Index paths_of_nest(const Analysis& a, int bits) {
  constexpr Index most_intervals = Index{1} << 18, most_nodes = Index{1} << 12;
  if (a.ranges > most_intervals || a.size > most_kept) return 0;
  try {
    return DagForm(intervals_of(Members(RankMap::of_nest(*a.nest, a.world))), bits, most_nodes)
        .paths(BddForm::most_paths);
  } catch (const Error&) {
    return 0;
  }
}

/// Without a diagram, each range is taken for aligned blocks of powers of two, and
/// as many of them as ranges of that length have on average wherever they begin.
Index paths_of_ranges(const Analysis& a) {
  const double length = double(a.size) / double(a.ranges);
  return std::min(a.size, Index(double(a.ranges) * std::max(1.0, std::log2(length) + 0.25)));
}

Estimate estimate_bdd(const Analysis& a) {
  if (!a.ascending) return impossible(no_set);
  if (!buddy_available()) return impossible("needs the library libbdd.so.0 (Debian: apt-get install libbdd0c2)");
  if (a.size == 0 || a.size > most_kept) return impossible("no diagram of few paths");
  const int bits = std::max(1, FixedIntegers::bits_of(a.highest));
  Index paths = a.nest ? paths_of_nest(a, bits) : a.paths, most = BddForm::most_paths;
  const bool guessed = paths == 0 && !a.nest && a.enumerated;
  if (guessed) paths = paths_of_ranges(a), most /= 2;
  if (paths == 0 || paths > most) return impossible("no diagram of few paths");
  return kept<BddForm>(a, BddForm::bytes_of(paths, bits), 150 + 4.5 * double(paths), 200 + 8.5 * double(paths), 0,
                       (guessed ? "about " : "") + std::to_string(paths) + " paths");
}
RankMap::Form make_bdd(const Members& m, const Analysis& a) {
  const int bits = std::max(1, FixedIntegers::bits_of(a.highest));
  const auto intervals = intervals_of(a.runs.empty() ? m : Members(a.runs));
  return keep(BddForm(bdd_paths_by_buddy(intervals, bits, BddForm::most_paths), bits));
}

/// The thesis's representations of sets, which its permutations are of.
const Modules& set_modules() {
  static const Modules modules{&rank_module("stride"), &rank_module("bdd"), &rank_module("bitmap"),
                               &rank_module("gap")};
  return modules;
}

/// The set of a list, as far as it is known without sorting. Of
/// members at random, the largest gap is the mean one times ln(size).
Index bytes_of_set(const Analysis& a) {
  if (a.span() == a.size) return AffineNest::stride(a.lowest, a.size, 1).bytes();
  const double gap = double(a.span()) / double(a.size) * std::max(std::log(double(a.size)), 1.0);
  const Index gaps =
      kept_bytes<GapForm> + GapForm::bytes_of(a.size, std::min(Index(gap), a.span() - a.size + 1), a.highest);
  if (a.span() > most_kept_bits) return gaps;
  return std::min(gaps, kept_bytes<SumsBitmapForm> + SumsBitmapForm::bytes_of(a.span()));
}

double run_entropy(const Analysis& a) { return std::log2(double(a.ascents)); }

Estimate estimate_wavelet(const Analysis& a) {
  if (a.ascending) return impossible("the ranks ascend: there is nothing to permute");
  if (const char* why = not_listed(a)) return impossible(why);
  if (a.ascents > WaveletForm::most_runs) return impossible(std::to_string(a.ascents) + " ascending runs");
  Index bytes = WaveletForm::bytes_of(a.ascents, a.size, run_entropy(a));
  if (a.size < a.world)
    bytes += bytes_of_set(a) + 2 * Index(sizeof(RankMap)) + kept_bytes<ChildForm>;  // a child of its set
  return kept<WaveletForm>(a, bytes, 25 + 25 * run_entropy(a), 20 + 14 * run_entropy(a), 2,
                           std::to_string(a.ascents) + " ascending runs");
}
RankMap::Form make_wavelet(const Members& m, const Analysis& a) {
  std::vector<Index> members(std::size_t(m.size())), sorted;
  m.read(0, m.size(), members.data());
  sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const auto set = make_trusted(Members(sorted), a.world, {0, set_modules(), LookupKind::none});
  for (auto& w : members) w = std::lower_bound(sorted.begin(), sorted.end(), w) - sorted.begin();
  RankMap permutation(keep(WaveletForm(Members(members))), m.size(), false);
  if (set.size() == a.world) return permutation.form();
  return keep(ChildForm(set, std::move(permutation)));
}

Estimate estimate_bwt(const Analysis& a) {
  if (const char* why = not_listed(a)) return impossible(why);
  if (!bzip2_available()) return impossible("needs the library libbz2.so.1.0 (Debian: apt-get install libbz2-1.0)");
  if (a.sample.empty()) return impossible("the members were not looked at");
  const double each = double(BwtForm::compressed_bytes(a.sample, a.world)) / double(a.sample.size());
  const Index bytes = BwtForm::bytes_of(Index(double(a.size) * each), a.size);
  return kept<BwtForm>(a, bytes, a.size <= BwtForm::block ? 15 : 80000, searched, 0);
}
RankMap::Form make_bwt(const Members& m, const Analysis& a) { return keep(BwtForm(m, a.world)); }

const std::vector<Module>& modules() {
  static const std::vector<Module> list{
      {"stride", estimate_stride, make_nest},
      {"nest", estimate_nest, make_nest},
      {AffineRunsForm::name, estimate_affine_runs, make_affine_runs},
      {EliasFanoForm::name, estimate_elias_fano, make_elias_fano},
      {HolesForm::name, estimate_holes, make_holes},
      {BitmapForm::name, estimate_bitmap512, make_bitmap512},
      {RunsForm::name, estimate_runs, make_runs},
      {LinearForm::name, estimate_linear, make_linear},
      {GrammarForm::name, estimate_grammar, make_grammar},
      {ProductForm::name, estimate_product, make_product},
      {ChunksForm::name, estimate_chunks, make_chunks},
      {DagForm::name, estimate_dag, make_dag},
      {PackedForm::name, estimate_packed, make_packed},
      {ArrayForm::name, estimate_array, make_array},
      {GapForm::name, estimate_gap, make_gap},
      {SumsBitmapForm::name, estimate_bitmap, make_bitmap},
      {BddForm::name, estimate_bdd, make_bdd},
      {WaveletForm::name, estimate_wavelet, make_wavelet},
      {BwtForm::name, estimate_bwt, make_bwt},
  };
  return list;
}

Modules named(std::initializer_list<std::string_view> names) {
  Modules list;
  for (const auto name : names) list.push_back(&rank_module(name));
  return list;
}

}  // namespace

RankMap::Form RankModule::custom(std::shared_ptr<const CustomForm> form) { return keep(UserForm(std::move(form))); }

const RankModule& rank_module(std::string_view name) {
  std::string known;
  for (const auto& module : modules()) {
    if (module.name() == name) return module;
    known += (known.empty() ? "" : ", ") + std::string(module.name());
  }
  throw Error(ErrorKind::argument, "there is no representation \"" + std::string(name) + "\"; there are " + known);
}

const Modules& all_modules() {
  static const Modules all = [] {
    Modules list;
    for (const auto& module : modules()) list.push_back(&module);
    return list;
  }();
  return all;
}

// The array is no part of this: packed is hardly slower and smaller. Of
// the thesis's modules, none other is better at anything that these do.
const Modules& standard_modules() {
  static const Modules standard = named({"nest", "affine-runs", "elias-fano", "holes", "bitmap512", "runs", "linear",
                                         "grammar", "product", "chunks", "dag", "packed", "array"});
  return standard;
}

const Modules& thesis_modules() {
  static const Modules thesis = named({"stride", "bdd", "bitmap", "gap", "wavelet", "packed", "bwt", "array"});
  return thesis;
}

}  // namespace longshore
