#include "ranks.hpp"
#include "questions.hpp"

namespace longshore::bench {

namespace {

using Narrow = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

}  // namespace

void bind_ranks_bench(nb::module_& module) {
  const auto map = nb::arg("map"), how = nb::arg("questions");
  const auto passes = nb::arg("passes") = 1;
  module.def(
      "rank_select_seconds",
      [](const RankMap& m, const Numbers& positions, const std::string& q, Index n) {
        check_questions(positions, m.size(), n);
        const nb::gil_scoped_release release;
        return select_seconds(m, of(positions), questions(q), n);
      },
      map, nb::arg("positions"), how, passes, "Seconds of one pass of SELECT over these positions.");
  module.def(
      "rank_rank_seconds",
      [](const RankMap& m, const Numbers& ranks, const std::string& q, Index n) {
        check_questions(ranks, m.world(), n);
        const nb::gil_scoped_release release;
        return rank_seconds(m, of(ranks), questions(q), n);
      },
      map, nb::arg("ranks"), how, passes, "Seconds of one pass of RANK over these world ranks.");
  module.def(
      "rank_read_seconds",
      [](const RankMap& m, Index n) {
        const nb::gil_scoped_release release;
        return read_seconds(m, n);
      },
      map, passes, "Seconds to read all members in order.");
  module.def(
      "rank_array_seconds",
      [](const Narrow& array, const Numbers& positions, const std::string& q, Index n) {
        check_questions(positions, Index(array.size()), n);
        const nb::gil_scoped_release release;
        return array_select_seconds({array.data(), array.size()}, of(positions), questions(q), n);
      },
      nb::arg("array"), nb::arg("positions"), how, passes, "Seconds of one pass over the plain array of 32-bit ranks.");
  module.def(
      "rank_analysis_seconds",
      [](const Numbers& members, Index world, Index n) {
        const nb::gil_scoped_release release;
        return analysis_seconds(of(members), world, n);
      },
      nb::arg("members"), nb::arg("world"), passes, "Seconds of the analysis that estimates are made from.");
  module.def(
      "rank_union_seconds",
      [](const RankMap& a, const RankMap& b, Index n) {
        const nb::gil_scoped_release release;
        return union_seconds(a, b, n);
      },
      nb::arg("a"), nb::arg("b"), passes, "Seconds of the union of two maps.");
}

}  // namespace longshore::bench
