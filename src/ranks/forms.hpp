/// All forms, as the alternatives of one variant: a question is a jump, not a virtual call. A new form is named here once.
#pragma once

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

struct RankForm {
  using Kept =
      std::variant<ranks::LinearForm, ranks::EliasFanoForm, ranks::BitmapForm, ranks::RunsForm, ranks::AffineRunsForm,
                   ranks::PackedForm, ranks::HolesForm, ranks::ProductForm, ranks::ChunksForm, ranks::GrammarForm,
                   ranks::DagForm, ranks::ChildForm, ranks::ArrayForm, ranks::GapForm, ranks::SumsBitmapForm,
                   ranks::BddForm, ranks::WaveletForm, ranks::BwtForm, ranks::UserForm>;
  Kept kept;
};

namespace ranks {

/// What a map that is not in closed form takes beside the content of its form: the form itself, and the counts of its owners.
inline constexpr Index kept_bytes = Index(sizeof(RankForm)) + 2 * Index(sizeof(void*));

template <class Form>
RankMap::Form keep(Form form) {
  return std::make_shared<const RankForm>(RankForm{std::move(form)});
}

template <class F>
decltype(auto) visit_form(const RankForm& form, F&& f) {
  return std::visit(std::forward<F>(f), form.kept);
}

/// The form of this class that a map is kept in, or nullptr.
template <class Form>
const Form* form_of(const RankMap& map) {
  const auto* kept = std::get_if<std::shared_ptr<const RankForm>>(&map.form());
  return kept == nullptr ? nullptr : std::get_if<Form>(&(*kept)->kept);
}

}  // namespace ranks
}  // namespace longshore
