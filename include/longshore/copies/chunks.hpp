/// Arrays that are cut into chunks: elements of any box into buffers of the chunks they belong to, and a digest of them
/// that does not depend on how an array is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "longshore/core/checked.hpp"

namespace longshore {

/// A box of an array in memory, in any strides. Dimensions are in C order of the array's indices.
struct ArrayBox {
  const std::byte* data = nullptr;
  std::vector<Index> start, extents;
  std::vector<Index> strides;  ///< bytes
};

/// Which chunks of an array are to be filled, and how far they are. Of the chunks in the box [first, first + counts) of
/// the grid, numbered in C order, chunk k has `slots[k]`, where its buffer begins in `memory`; -1: it has none. A
/// buffer has all of a chunk's extents, dense, in C order.
struct ChunkBuffers {
  std::vector<Index> shape;          ///< of the array
  std::vector<Index> chunk;          ///< extents, in elements
  std::vector<Index> first, counts;  ///< in chunks
  Index element_bytes = 0;
  std::vector<std::byte> fill;  ///< an element, for `element_digest`; empty: there is none
  std::byte* memory = nullptr;
  const Index* slots = nullptr;
  Index* missing = nullptr;          ///< how many elements each chunk still lacks
  std::uint64_t* digests = nullptr;  ///< of what has come to each chunk
};

/// Copies each element of `box` that belongs to one of the chunks into that chunk's buffer, where it has one, adds it
/// to the chunk's digest and takes it from what the chunk lacks. Returns the chunks that lack nothing any more, each of
/// which exactly one call returns: several threads may bring different boxes at once. Strides may be 0: one element for
/// all. Throws `Error(argument)` where the two do not have the same dimensions, and `Error(overflow)`.
std::vector<Index> scatter_to_chunks(const ArrayBox& box, const ChunkBuffers& buffers);

/// Counts the elements of a box that the buffers hold already, as `scatter_to_chunks` does when it brings them. Chunks
/// without a buffer stay as they are. Returns and throws what that does.
std::vector<Index> count_in_chunks(const std::vector<Index>& start, const std::vector<Index>& extents,
                                   const ChunkBuffers& buffers);

/// A digest of the elements of a box of an array of this shape: sums of boxes (they wrap) that cover an array once are
/// the digest of the array, however it is cut. Elements whose bytes are `fill` add nothing, so that chunks that are not
/// there and hold `fill` need not be looked at; null: there are none.
std::uint64_t element_digest(const ArrayBox& box, const std::vector<Index>& shape, Index element_bytes,
                             const std::byte* fill = nullptr);

}  // namespace longshore
