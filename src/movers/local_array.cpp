#include <algorithm>
#include <string_view>

#include "longshore/movers/mover.hpp"

namespace longshore {

namespace {

std::string text_of(const Point& values) {
  std::string text = "(";
  for (std::size_t i = 0; i < values.dims(); ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text + (values.dims() == 1 ? ",)" : ")");
}

}  // namespace

void check_local_array(const LocalArray& array, const Layout& layout, Index rank, Index element_bytes,
                       const char* what) {
  auto who = [&] { return "rank " + std::to_string(rank) + ": the " + what + " array "; };
  const auto shape = layout.local_shape(rank);
  if (array.shape != shape) {
    std::string where;
    if (array.shape.dims() == shape.dims())
      for (std::size_t d = 0; d < shape.dims() && where.empty(); ++d)
        if (array.shape[d] != shape[d])
          where = "; dimension " + std::to_string(d) + " has " + std::to_string(array.shape[d]) + " instead of " +
                  std::to_string(shape[d]);
    throw Error(ErrorKind::shape, who() + "has shape " + text_of(array.shape) + ", the layout " + layout.to_string() +
                                      " gives this rank " + text_of(shape) + where);
  }
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  if (array.read_only && what == std::string_view("destination"))
    throw Error(ErrorKind::buffer, who() + "is read-only; give the move one that can be written");
  if (array.data == nullptr) throw Error(ErrorKind::buffer, who() + "has no memory");
  if (array.strides.dims() != shape.dims())
    throw Error(ErrorKind::buffer, who() + "has " + std::to_string(array.strides.dims()) + " strides for " +
                                       std::to_string(shape.dims()) + " dimensions");
  const auto strides = layout.local_strides(rank, element_bytes);
  for (std::size_t d = 0; d < shape.dims(); ++d)
    if (shape[d] > 1 && array.strides[d] != strides[d])
      throw Error(ErrorKind::buffer,
                  who() + "has a stride of " + std::to_string(array.strides[d]) + " bytes in dimension " +
                      std::to_string(d) + ", the layout (order=" + char(layout.order()) +
                      (layout.ld() > 0 ? ", ld=" + std::to_string(layout.ld()) : "") + ") wants " +
                      std::to_string(strides[d]) + "; make it contiguous, or say the order it has in the layout");
}

void check_no_array(const LocalArray& array, const Layout& layout, Index rank, const char* what) {
  if (array.shape.dims() > 0 && std::find(array.shape.begin(), array.shape.end(), 0) == array.shape.end())
    throw Error(ErrorKind::shape, "layout rank " + std::to_string(rank) + " takes no part in the " + what + " layout " +
                                      layout.to_string() + " and owns nothing, but brings an array");
}

}  // namespace longshore
