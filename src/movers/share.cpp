#include "movers/share.hpp"

#include <algorithm>
#include <array>

#include "core/digest.hpp"

namespace longshore {

std::uint64_t Share::digest() const {
  Digest digest(plan_digest());
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

void sort_by_peers(std::vector<Transfer>& transfers) {
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const Transfer& a, const Transfer& b) { return a.peer < b.peer; });
}

}  // namespace longshore
