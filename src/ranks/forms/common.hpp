/// What all forms of the library have in common. A form is a class, named in the list of `forms.hpp`, with
///   name                       a static std::string_view, which is also how it is stored
///   size(), select(i)
///   rank(w)                    the position, `nobody`, or `unknown` where the form has no way to tell
///   read(first, n, out)        members in order
///   bytes()
///   write(out), stored(in, head)
///   check(head)                whether it holds together without every member being looked at; throws what is wrong
#pragma once

#include "longshore/ranks/rank_module.hpp"
#include "sequences/stored_sequences.hpp"

namespace longshore::ranks {

/// `rank` of a form that cannot tell: who asks has an index, or searches.
inline constexpr Index unknown = -2;

/// What is known of a stored form before its content is read.
struct FormHead {
  Index size, world;
  bool ascending;
  Index most_members;
  const Modules* modules = nullptr;  ///< that read what modules wrote
  int depth = 0;                     ///< forms within forms
};
inline constexpr int most_depth = 8;

enum class Checked {
  all,        ///< members are distinct, in the world, and in the order that the head says
  structure,  ///< members can be read, but have to be looked at
};

/// Members in order for forms that have nothing better.
template <class Form>
void read_each(const Form& form, Index first, Index n, Index* out) {
  for (Index k = 0; k < n; ++k) out[k] = form.select(first + k);
}

void write_map(WordWriter& out, const RankMap& map);
RankMap read_map(WordReader& in, const FormHead& within);
/// Whether two maps that are not closed forms are kept in the same words; if not, they may be equal all the same.
bool same_words(const RankMap& a, const RankMap& b);

/// A member that is none, as an error.
[[noreturn]] void refuse_rank(Index w, Index position, Index world);

/// Distinct values of a list of any order; throws `Error(argument)` naming one that comes twice and where.
void check_distinct(const Members& members, Index lowest, Index highest);
/// Of runs: without enumeration where their extents do not overlap.
void check_distinct_runs(std::span<const AffineRun> runs);

}  // namespace longshore::ranks
