/// What a move does where it writes: it copies, computes `destination = beta * destination + alpha * op(source)`, or
/// `destination = destination op source`.
#pragma once

#include <string>
#include <utility>

#include "longshore/relations/combine.hpp"
#include "longshore/relations/reduction.hpp"

namespace longshore {

class Update {
 public:
  Update() = default;                                                ///< a copy
  Update(const Combine& combine) : combine_(combine) {}              // NOLINT: each of the two is an update
  Update(Reduction reduction) : reduction_(std::move(reduction)) {}  // NOLINT
  bool is_copy() const { return combine_.is_copy() && !is_reduction(); }
  bool is_reduction() const { return !reduction_.is_replace(); }
  const Combine& combine() const& { return combine_; }        ///< the plain copy where it is a reduction
  const Reduction& reduction() const& { return reduction_; }  ///< `replace` where it is none
  Combine combine() && { return combine_; }
  Reduction reduction() && { return std::move(reduction_); }

  /// Throws `Error(type)` where it is not for elements of so many bytes.
  void check(Index element_bytes) const;
  /// Whether ranks that are given these two mean the same: functions of one's own cannot be compared.
  bool same_kind(const Update& other) const;
  bool operator==(const Update&) const = default;  ///< of functions of one's own, the same one

 private:
  Combine combine_;
  Reduction reduction_;
};

}  // namespace longshore
