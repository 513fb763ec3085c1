#include "longshore/relations/update.hpp"

namespace longshore {

void Update::check(Index element_bytes) const {
  if (!combine_.is_copy() && element_size(combine_.type()) != element_bytes)
    throw Error(ErrorKind::type, "alpha and beta are for " + std::string(element_name(combine_.type())) +
                                     ", the plan's elements have " + std::to_string(element_bytes) + " bytes");
  if (is_reduction() && reduction_.element_bytes() != element_bytes)
    throw Error(ErrorKind::type, std::string(reduce_name(reduction_.op())) + " is for elements of " +
                                     std::to_string(reduction_.element_bytes()) + " bytes, the arrays' have " +
                                     std::to_string(element_bytes));
}

bool Update::same_kind(const Update& other) const {
  const Combine &a = combine_, &b = other.combine_;
  return a.is_copy() == b.is_copy() && a.type() == b.type() && a.alpha() == b.alpha() && a.beta() == b.beta() &&
         a.conjugate() == b.conjugate() && reduction_.op() == other.reduction_.op() &&
         reduction_.type() == other.reduction_.type() && reduction_.element_bytes() == other.reduction_.element_bytes();
}

}  // namespace longshore
