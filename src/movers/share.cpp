#include "movers/share.hpp"

#include <algorithm>
#include <array>

#include "core/digest.hpp"

namespace longshore {

std::uint64_t Share::digest(std::uint64_t plan) const {
  Digest digest;
  digest.mix(plan);
  mix_arrays(digest);
  digest.mix(std::uint64_t(element_bytes_)), digest.mix(element_);
  const Combine& combine = update_.combine();
  const Reduction& reduction = update_.reduction();
  if (!combine.is_copy()) {
    digest.mix(std::array{Index(combine.type()), Index(combine.conjugate())});
    for (const auto& scalar : {combine.alpha(), combine.beta()})
      digest.mix(std::string_view(reinterpret_cast<const char*>(scalar.data()), scalar.size()));
  }
  if (!reduction.is_replace())
    digest.mix(std::array{Index(reduction.op()), Index(reduction.type()), reduction.element_bytes()});
  return digest.value();
}

const Transfers& Share::transfers() const& {
  static const Transfers none;
  return transfers_ ? *transfers_ : none;
}

Facts facts_of(std::span<Share* const> shares) {
  Facts facts{{"fields", std::to_string(shares.size())}};
  for (std::size_t f = 0; f < shares.size(); ++f)
    for (auto& fact : shares[f]->facts()) {
      if (shares.size() > 1) fact.name = "field " + std::to_string(f) + ": " + fact.name;
      facts.push_back(std::move(fact));
    }
  return facts;
}

std::pair<const std::byte*, Index> touched(const std::byte* data, std::span<const Index> shape,
                                           std::span<const Index> strides, Index element_bytes) {
  Index first = 0, last = element_bytes;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return {data, 0};
    const Index reach = checked_mul(shape[d] - 1, strides[d]);
    (reach < 0 ? first : last) = checked_add(reach < 0 ? first : last, reach);
  }
  return {data + first, checked_sub(last, first)};
}

Index moved_bytes(const Transfers& transfers) {
  Index bytes = 0;
  for (const auto* list : {&transfers.incoming, &transfers.local})
    for (const auto& transfer : *list) bytes = checked_add(bytes, transfer.bytes);
  return bytes;
}

Stages stages_of(const std::vector<Field>& fields, bool checked, bool bounded) {
  Stages stages(1);
  KnownPhases known;
  Index number = 0;
  for (const auto& field : fields) {
    auto phases = field.share().phases(known, checked, bounded);
    if (phases.empty()) phases.push_back(field.shared());
    for (const auto& share : phases) share->field = number;
    ++number;
    if (stages.size() < phases.size()) stages.resize(phases.size());
    for (std::size_t k = 0; k < phases.size(); ++k) stages[k].push_back(std::move(phases[k]));
  }
  return stages;
}

void resolve(const Stages& stages, const Holders& holders, int me, OverlapCheck& overlaps) {
  for (const auto& stage : stages) {
    std::vector<Share*> before;
    for (const auto& share : stage) {
      share->check(holders, me);
      share->resolve(before);
      before.push_back(share.get());
      if (&stage == &stages.front()) share->add_to(overlaps);
    }
  }
}

void sort_by_peers(std::vector<Transfer>& transfers) {
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const Transfer& a, const Transfer& b) { return a.peer < b.peer; });
}

}  // namespace longshore
