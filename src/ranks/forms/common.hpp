/// What all forms have in common. A form is a class, named in the variant of `forms.hpp`, with
///   name                       a static std::string_view, which is also how it is stored
///   size(), select(i)
///   rank(w)                    the position, `nobody`, or `unknown` where the form has no way to tell
///   read(first, n, out)        members in order
///   bytes()
///   write(out), stored(in, head)
///   check(head)                whether it holds together without every member being looked at; throws what is wrong
#pragma once

#include "longshore/ranks/rank_module.hpp"
#include "longshore/sequences/elias_fano.hpp"
#include "sequences/stored_words.hpp"

namespace longshore::ranks {

/// `rank` of a form that cannot tell: who asks has an index, or searches.
inline constexpr Index unknown = -2;

/// What is known of a stored form before its content is read.
struct FormHead {
  Index size, world;
  bool ascending;
  Index most_members;
  int depth = 0;  ///< forms within forms
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

void write_fixed(WordWriter& out, const FixedIntegers& list);
FixedIntegers read_fixed(WordReader& in, Index size);
void write_sequence(WordWriter& out, const EliasFano& sequence);
/// At most `most` values.
EliasFano read_sequence(WordReader& in, Index most);
void write_map(WordWriter& out, const RankMap& map);
RankMap read_map(WordReader& in, const FormHead& within);

/// A member that is none, as an error.
[[noreturn]] void refuse_rank(Index w, Index position, Index world);

/// The maximal runs of consecutive ranks of ascending members.
struct Interval {
  Index first, last;  ///< half-open
};
std::vector<Interval> intervals_of(const Members& members);

/// Distinct values of a list of any order; throws `Error(argument)` naming one that comes twice and where.
void check_distinct(const Members& members, Index lowest, Index highest);
/// Of runs: without enumeration where their extents do not overlap.
void check_distinct_runs(std::span<const AffineRun> runs);

/// A function of a library that is looked for when it is first wanted, so that nothing else depends on it.
class LoadedLibrary {
 public:
  /// Throws `Error(argument)`: `needed_by` needs `file`, which `package` of Debian has.
  LoadedLibrary(const char* file, const char* needed_by, const char* package);
  template <class Function>
  void find(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;
  void* handle_;
  const char *file_, *needed_by_, *package_;
};

}  // namespace longshore::ranks
