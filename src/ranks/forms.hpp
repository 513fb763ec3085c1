/// All forms of the library, as the alternatives of one list: a question is a jump, not a virtual call. A new form is
/// named here once. What modules keep is one alternative more, which passes questions on to the module's `CustomForm`.
#pragma once

#include <array>
#include <utility>

#include "ranks/forms/affine_runs.hpp"
#include "ranks/forms/decision_dag.hpp"
#include "ranks/forms/grammar.hpp"
#include "ranks/forms/lists.hpp"
#include "ranks/forms/nested_maps.hpp"
#include "ranks/forms/sets.hpp"

namespace longshore::ranks {

/// What a module keeps, asked as the library's forms are.
class ModuleForm {
 public:
  explicit ModuleForm(const CustomForm& form) : form_(form) {}

  std::string_view own_name() const { return form_.name(); }
  Index size() const { return form_.size(); }
  Index select(Index i) const { return form_.select(i); }
  Index rank(Index w) const { return form_.rank(w).value_or(unknown); }
  void read(Index first, Index n, Index* out) const { form_.read(first, n, out); }
  Index bytes() const { return form_.bytes(); }
  Checked check(const FormHead& head) const {
    return form_.check(head.world, head.ascending) ? Checked::all : Checked::structure;
  }

 private:
  const CustomForm& form_;
};

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

using AllForms = FormList<ModuleForm, LinearForm, EliasFanoForm, BitmapForm, RunsForm, AffineRunsForm, PackedForm,
                          HolesForm, ProductForm, ChunksForm, GrammarForm, DagForm, ChildForm, ArrayForm>;
static_assert(AllForms::index_of<ModuleForm>() == RankForm::custom);

/// A form of the library as it is kept behind a map, so that it takes no more memory than its own.
template <class Form>
struct KeptForm : RankForm {
  explicit KeptForm(Form kept) : RankForm{AllForms::index_of<Form>()}, form(std::move(kept)) {}
  Form form;
};

/// What a map in this form takes beside the content of the form: the form's own numbers, and the counts of its owners.
template <class Form>
inline constexpr Index kept_bytes = Index(sizeof(KeptForm<Form>)) + RankForm::counts_bytes;
template <>
inline constexpr Index kept_bytes<ModuleForm> = RankForm::counts_bytes;  // a `CustomForm` counts itself

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
      if constexpr (which == RankForm::custom)
        return visitor(ModuleForm(static_cast<const CustomForm&>(kept)));
      else
        return visitor(static_cast<const KeptForm<AllForms::At<which>>&>(kept).form);
    }...};
  }
  (std::make_index_sequence<AllForms::size>());
  return visits[form.which](form, f);
}

/// What a map keeps that is of this kind, or nullptr.
template <class Kept>
const Kept* kept_as(const RankMap& map, std::uint8_t which) {
  const auto* kept = std::get_if<std::shared_ptr<const RankForm>>(&map.form());
  return kept == nullptr || (*kept)->which != which ? nullptr : static_cast<const Kept*>(kept->get());
}
/// The form of this class that a map is kept in, or nullptr.
template <class Form>
const Form* form_of(const RankMap& map) {
  const auto* kept = kept_as<KeptForm<Form>>(map, AllForms::index_of<Form>());
  return kept == nullptr ? nullptr : &kept->form;
}
inline const CustomForm* custom_form_of(const RankMap& map) { return kept_as<CustomForm>(map, RankForm::custom); }

}  // namespace longshore::ranks
