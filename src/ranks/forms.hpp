/// All forms, as the alternatives of one list: a question is a jump, not a virtual call. A new form is named here once.
#pragma once

#include <array>
#include <utility>

#include "ranks/forms/affine_runs.hpp"
#include "ranks/forms/bwt.hpp"
#include "ranks/forms/decision_dag.hpp"
#include "ranks/forms/grammar.hpp"
#include "ranks/forms/lists.hpp"
#include "ranks/forms/nested_maps.hpp"
#include "ranks/forms/sets.hpp"
#include "ranks/forms/thesis_sets.hpp"
#include "ranks/forms/wavelet.hpp"

namespace longshore {

/// What a map that is not in closed form keeps: which form it is, and behind
/// that the form itself, so that it takes no more memory than its own.
struct RankForm {
  std::uint8_t which;
};

namespace ranks {

template <class... Form>
struct FormList {
  static constexpr std::size_t size = sizeof...(Form);
  template <std::size_t which>
  using At = std::tuple_element_t<which, std::tuple<Form...>>;
  template <class Wanted>
  static constexpr std::uint8_t index_of() {
    constexpr std::array same{std::is_same_v<Form, Wanted>...};
    return std::uint8_t(std::find(same.begin(), same.end(), true) - same.begin());
  }
};

using AllForms = FormList<LinearForm, EliasFanoForm, BitmapForm, RunsForm, AffineRunsForm, PackedForm, HolesForm,
                          ProductForm, ChunksForm, GrammarForm, DagForm, ChildForm, ArrayForm, GapForm, SumsBitmapForm,
                          BddForm, WaveletForm, BwtForm, UserForm>;

template <class Form>
struct KeptForm : RankForm {
  explicit KeptForm(Form kept) : RankForm{AllForms::index_of<Form>()}, form(std::move(kept)) {}
  Form form;
};

/// What a map in this form takes beside the content of the form: the form's own numbers, and the counts of its owners.
template <class Form>
inline constexpr Index kept_bytes = Index(sizeof(KeptForm<Form>)) + 2 * Index(sizeof(void*));

template <class Form>
RankMap::Form keep(Form form) {
  return std::shared_ptr<const RankForm>(std::make_shared<const KeptForm<Form>>(std::move(form)));
}

template <class F>
decltype(auto) visit_form(const RankForm& form, F&& f) {
  using Result = std::invoke_result_t<F&, const AllForms::At<0>&>;
  using Visit = Result (*)(const RankForm&, F&);
  static constexpr auto visits = []<std::size_t... which>(std::index_sequence<which...>) {
    return std::array<Visit, sizeof...(which)>{[](const RankForm& kept, F& visitor) -> Result {
      return visitor(static_cast<const KeptForm<AllForms::At<which>>&>(kept).form);
    }...};
  }
  (std::make_index_sequence<AllForms::size>());
  return visits[form.which](form, f);
}

/// The form of this class that a map is kept in, or nullptr.
template <class Form>
const Form* form_of(const RankMap& map) {
  const auto* kept = std::get_if<std::shared_ptr<const RankForm>>(&map.form());
  if (kept == nullptr || (*kept)->which != AllForms::index_of<Form>()) return nullptr;
  return &static_cast<const KeptForm<Form>&>(**kept).form;
}

}  // namespace ranks
}  // namespace longshore
