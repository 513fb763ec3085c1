// The library's own modules: what each would cost, from one analysis, and how it is built. Times are of questions at
// random on a server's core, as `longshore bench ranks` has measured them; what the nearer caches of such a core do not
// hold is added.
#include <algorithm>
#include <cmath>

#include "ranks/forms.hpp"
#include "ranks/make.hpp"

namespace longshore {

using namespace ranks;

Estimate Estimate::of(const Analysis& a, Index bytes, double select_ns, double rank_ns, int accesses,
                      std::string note) {
  constexpr double first_cache = 48e3, second_cache = 2e6, last_cache = 64e6;
  const double kept = double(std::max<Index>(bytes, 1));
  const double each = kept < first_cache ? 0 : kept < second_cache ? 0.7 : kept < last_cache ? 2.5 : 30;
  const double reached = accesses * each;
  if (rank_ns >= 0)
    rank_ns += reached;
  else if (a.ascending)
    rank_ns = std::log2(double(a.size) + 2) * (select_ns + 4);
  return {true, kept, select_ns + reached, rank_ns, std::move(note)};
}

namespace {

Estimate impossible(std::string why) { return Estimate::impossible(std::move(why)); }

/// Of what is no closed form: the form stands behind a pointer.
template <class Form>
Estimate kept(const Analysis& a, Index bytes, double select, double rank, int accesses, std::string note = {}) {
  return Estimate::of(a, kept_bytes<Form> + bytes, select, rank, accesses, std::move(note));
}

constexpr double searched = -1;

/// A module as its name and two functions; its forms are the library's, which `from_bytes` reads.
class Module : public RankModule {
 public:
  using Estimator = Estimate (*)(const Analysis&);
  using Maker = RankMap::Form (*)(const Members&, const Analysis&);
  Module(std::string_view name, Estimator estimator, Maker maker) : name_(name), estimator_(estimator), maker_(maker) {}

  std::string_view name() const override { return name_; }
  Estimate estimate(const Members&, const Analysis& analysis) const override { return estimator_(analysis); }
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

Estimate estimate_nest(const Analysis& a) {
  if (!a.nest) return impossible("the ranks are no nested loops");
  const auto depth = double(a.nest->depth());
  return Estimate::of(a, a.nest->bytes(), 1.4 + 0.6 * (depth - 1), 3 + 3 * depth, 0, a.nest->to_string());
}
RankMap::Form make_nest(const Members&, const Analysis& a) { return *a.nest; }

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
    const auto estimate = module->estimate(Members(a.product->outer), outer);
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

}  // namespace

std::optional<Index> CustomForm::rank(Index) const { return std::nullopt; }
void CustomForm::read(Index first, Index n, Index* out) const {
  for (Index k = 0; k < n; ++k) out[k] = select(first + k);
}
std::optional<std::vector<std::uint64_t>> CustomForm::words() const { return std::nullopt; }
bool CustomForm::check(Index, bool) const { return false; }

std::shared_ptr<const CustomForm> RankModule::read(std::span<const std::uint64_t>, Index, Index) const {
  throw Error(ErrorKind::argument, "the module \"" + std::string(name()) + "\" reads nothing that was stored");
}

const Modules& standard_modules() {
  static const Module modules[] = {
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
  };
  static const Modules list = [] {
    Modules all;
    for (const auto& module : modules) all.push_back(&module);
    return all;
  }();
  return list;
}

const Modules& all_modules() {
  static const Modules all = [] {
    Modules list = standard_modules();
    for (const auto* module : thesis_modules())
      if (std::find(list.begin(), list.end(), module) == list.end()) list.push_back(module);
    return list;
  }();
  return all;
}

const RankModule& rank_module(std::string_view name) {
  const auto& all = all_modules();
  const auto at = std::find_if(all.begin(), all.end(), [name](const auto* module) { return module->name() == name; });
  if (at != all.end()) return **at;
  std::string known;
  for (const auto* module : all) known += (known.empty() ? "" : ", ") + std::string(module->name());
  throw Error(ErrorKind::argument, "there is no representation \"" + std::string(name) + "\"; there are " + known);
}

}  // namespace longshore
