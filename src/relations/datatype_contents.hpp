/// movers: what an MPI datatype says that it was made of, as numbers
/// without MPI's names, and the typemap that follows from it.
#pragma once

#include <vector>

#include "relations/typemap.hpp"

namespace longshore {

/// How a datatype was made (MPI-4.1, section 5.1.13). Those that
/// were made of Fortran integers are the same as the others.
enum class Combiner {
  named,
  dup,
  contiguous,
  vector,
  hvector,
  indexed,
  hindexed,
  indexed_block,
  hindexed_block,
  structure,
  subarray,
  darray,
  f90_real,
  f90_complex,
  f90_integer,
  resized,
  value_index
};

enum class ArrayOrder { c, fortran };
enum class ArrayDistribution { none, block, cyclic };

/// A datatype within another one.
struct InnerType {
  Typemap map;
  Index extent = 0;  ///< bytes from one element to the next
};

/// The numbers that MPI_Type_get_contents(_c) gives, in its order.
struct DatatypeContents {
  Combiner combiner = Combiner::dup;
  std::vector<Index> integers, addresses, counts;
  std::vector<InnerType> types;
};

/// How a library writes what `subarray` and `darray` say with constants of its own.
struct ArrayConstants {
  Index order_c, order_fortran, distribute_none, distribute_block, distribute_cyclic, default_argument;
};

/// The typemap of a datatype that is neither named nor of Fortran's parametrised ones: those have no content. Throws
/// `Error(argument)` where the numbers are not as the standard has them, `Error(overflow)`, `Error(memory_limit)`.
Typemap typemap_of(const DatatypeContents& contents, const ArrayConstants& constants);

}  // namespace longshore
