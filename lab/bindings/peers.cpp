// `_peers`: other libraries' sets of ranks, for `longshore bench
// ranks`. A module of its own, for it needs these libraries.
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "peers.hpp"
#include "questions.hpp"

namespace longshore::bench {

namespace {

constexpr Index largest_world = Index{1} << 32;

void check_members(std::span<const Index> members) {
  Index before = -1;
  for (const Index w : members) {
    if (w <= before || w >= largest_world)
      throw Error(ErrorKind::argument, "rank " + std::to_string(w) + " follows rank " + std::to_string(before) +
                                           "; peers keep ascending ranks below 2^32");
    before = w;
  }
}

}  // namespace

}  // namespace longshore::bench

NB_MODULE(_peers, module) {
  using namespace longshore;
  using namespace longshore::bench;
  module.doc() = "Other libraries' sets of ranks.";
  nb::module_::import_("longshore");  // its errors are bound there
  module.def(
      "peers",
      [] {
        std::vector<std::string> names;
        for (const auto& peer : peers()) names.push_back(peer.name);
        return names;
      },
      "Those that were found when this was built.");
  nb::class_<PeerSet>(module, "PeerSet")
      .def_prop_ro("size", &PeerSet::size)
      .def_prop_ro("bytes", &PeerSet::bytes)
      .def(
          "select",
          [](const PeerSet& set, Index i) {
            if (i < 0 || i >= set.size())
              throw Error(ErrorKind::argument, "position " + std::to_string(i) + " is outside");
            return set.select(i);
          },
          nb::arg("position"))
      .def(
          "rank", [](const PeerSet& set, Index w) { return w < 0 || w >= largest_world ? Index{-1} : set.rank(w); },
          nb::arg("rank"))
      .def(
          "select_seconds",
          [](const PeerSet& set, const Numbers& positions, const std::string& q, Index passes) {
            check_questions(positions, set.size(), passes);
            return set.select_seconds(of(positions), questions(q), passes);
          },
          nb::arg("positions"), nb::arg("questions"), nb::arg("passes") = 1)
      .def(
          "rank_seconds",
          [](const PeerSet& set, const Numbers& ranks, const std::string& q, Index passes) {
            check_questions(ranks, largest_world, passes);
            return set.rank_seconds(of(ranks), questions(q), passes);
          },
          nb::arg("ranks"), nb::arg("questions"), nb::arg("passes") = 1);
  module.def(
      "make",
      [](const std::string& name, const Numbers& members) {
        check_members(of(members));
        for (const auto& peer : peers())
          if (peer.name == name) return peer.make(of(members));
        throw Error(ErrorKind::argument, "there is no peer \"" + name + "\" here");
      },
      nb::arg("name"), nb::arg("members"));
}
