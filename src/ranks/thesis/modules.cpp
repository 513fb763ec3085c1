#include "ranks/thesis/modules.hpp"

namespace longshore {

namespace {

/// Range and stride are one: what `AffineNest` is with a single axis.
class StrideModule : public RankModule {
 public:
  std::string_view name() const override { return "stride"; }
  Estimate estimate(const Members&, const Analysis& a) const override {
    if (!a.nest || a.nest->depth() > 1) return Estimate::impossible("the ranks are no stride");
    return Estimate::of(a, a.nest->bytes(), 1.4, 6, 0, a.nest->to_string());
  }
  RankMap::Form build(const Members&, const Analysis& a) const override {
    if (!a.nest || a.nest->depth() > 1) throw Error(ErrorKind::argument, "stride: the ranks are no stride");
    return *a.nest;
  }
};

}  // namespace

const RankModule& thesis::stride_module() {
  static const StrideModule module;
  return module;
}

const Modules& thesis_modules() {
  static const Modules modules = [] {
    Modules list{&thesis::stride_module(), &thesis::bdd_module(),     &thesis::bitmap_module(),
                 &thesis::gap_module(),    &thesis::wavelet_module(), &thesis::bwt_module()};
    // The optimized array and the array are ours too.
    for (const auto* module : standard_modules())
      if (module->name() == "packed" || module->name() == "array") list.push_back(module);
    return list;
  }();
  return modules;
}

}  // namespace longshore
