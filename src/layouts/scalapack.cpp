#include <algorithm>

#include "longshore/layouts/layout.hpp"

namespace longshore {

namespace {

enum Entry { dtype_, ctxt_, m_, n_, mb_, nb_, rsrc_, csrc_, lld_ };
constexpr const char* entry_name[] = {"DTYPE_", "CTXT_", "M_", "N_", "MB_", "NB_", "RSRC_", "CSRC_", "LLD_"};
constexpr Index dense_block_cyclic = 1;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::layout, "descriptor: " + message); }

}  // namespace

Layout layout_from_descriptor(const Descriptor& desc, Index rows, Index columns, Order rank_order) {
  auto require = [&](Entry e, bool good, const std::string& wanted) {
    if (good) return;
    refuse(std::string(entry_name[e]) + " (entry " + std::to_string(e + 1) + ") is " + std::to_string(desc[e]) + "; " +
           wanted);
  };
  if (rows < 1 || columns < 1)
    refuse("a grid of " + std::to_string(rows) + "x" + std::to_string(columns) + " is empty");
  require(dtype_, desc[dtype_] == dense_block_cyclic, "only 1, a dense block-cyclic matrix, is understood");
  require(m_, desc[m_] >= 0, "it must not be negative");
  require(n_, desc[n_] >= 0, "it must not be negative");
  require(mb_, desc[mb_] >= 1, "it must be at least 1");
  require(nb_, desc[nb_] >= 1, "it must be at least 1");
  require(rsrc_, desc[rsrc_] >= 0 && desc[rsrc_] < rows, "it must be within [0, " + std::to_string(rows) + ")");
  require(csrc_, desc[csrc_] >= 0 && desc[csrc_] < columns, "it must be within [0, " + std::to_string(columns) + ")");
  auto row = Distribution::cyclic(desc[m_], rows, desc[mb_], desc[rsrc_]);
  auto column = Distribution::cyclic(desc[n_], columns, desc[nb_], desc[csrc_]);
  const Index largest = std::max<Index>(row.largest_count(), 1);  // LLD_ is at least 1 even without rows
  require(lld_, desc[lld_] >= 1, "it must be at least 1");
  ProcessGrid grid{{rows, columns}, {false, false}, rank_order, {}};
  // LLD_ belongs to one process: another may own fewer rows and
  // say a smaller one. It is padding only above the largest.
  return Layout({std::move(row), std::move(column)}, std::move(grid), Order::F, desc[lld_] > largest ? desc[lld_] : 0);
}

Descriptor descriptor_of(const Layout& layout, Index rank, Index context) {
  if (layout.rank_of_array() != 2)
    refuse("the array has " + std::to_string(layout.rank_of_array()) + " dimensions, not 2");
  if (layout.order() != Order::F) refuse("ScaLAPACK stores columns contiguously; the layout must say order=F");
  if (layout.replicas() != 1) refuse("a replicated layout has no descriptor");
  Index block[2], source[2];
  for (std::size_t d = 0; d < 2; ++d) {
    const auto& dimension = layout.dimensions()[d];
    if (dimension.kind() == Distribution::Kind::general_block)
      refuse("dimension " + std::to_string(d) + " is " + dimension.to_string() + ", which is not block-cyclic");
    if (dimension.origin() != 0)
      refuse("dimension " + std::to_string(d) + " begins inside a block; use IA and JA instead");
    block[d] = dimension.block();
    source[d] = dimension.source();
  }
  const Index rows = layout.local_shape(rank)[0];
  const Index lld = layout.ld() > 0 ? layout.ld() : std::max<Index>(rows, 1);
  return {dense_block_cyclic, context, layout.shape()[0], layout.shape()[1], block[0], block[1], source[0],
          source[1],          lld};
}

}  // namespace longshore
