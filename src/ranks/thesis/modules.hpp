/// The thesis's own representations, each a module as a user would write one: nothing here knows more of the library
/// than its public headers, and nothing in the library knows of these but their names in `thesis_modules()`.
#pragma once

#include "longshore/ranks/rank_module.hpp"

namespace longshore::thesis {

const RankModule& stride_module();   ///< section 4.1.1
const RankModule& bdd_module();      ///< section 4.1.2
const RankModule& bitmap_module();   ///< section 4.1.3
const RankModule& gap_module();      ///< section 4.1.4
const RankModule& wavelet_module();  ///< section 4.2.1
const RankModule& bwt_module();      ///< section 4.3.2

constexpr Index most_members = Index{1} << 31;  ///< that each take some bits
constexpr Index most_bits = Index{1} << 33;     ///< of a bitmap

/// Why a form of these with bits for each member is out of the question, or nullptr.
inline const char* no_list(const Analysis& a) { return a.size > most_members ? "too many members" : nullptr; }
inline const char* no_set(const Analysis& a) {
  return !a.ascending ? "the ranks do not ascend" : a.size == 0 ? "no members" : no_list(a);
}

/// All that a form keeps whose content takes so many bytes.
template <class Form>
constexpr Index with_form(Index content) {
  return content + Index(sizeof(Form)) + RankForm::counts_bytes;
}

}  // namespace longshore::thesis
