#include "longshore/copies/chunks.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "longshore/copies/copy_program.hpp"

namespace longshore {

namespace {

void check_dimensions(const char* what, std::size_t given, std::size_t wanted) {
  if (given != wanted)
    throw Error(ErrorKind::argument, std::string(what) + " has " + std::to_string(given) + " dimensions, the box has " +
                                         std::to_string(wanted));
}

/// A program for each shape of a part: a box has few, since only the parts at its ends differ from the others.
class PartPrograms {
 public:
  PartPrograms(Index element_bytes, const std::vector<Index>& from, const std::vector<Index>& to)
      : element_bytes_(element_bytes), from_(from), to_(to) {}

  const CopyProgram& of(const std::vector<Index>& extents) {
    for (const auto& made : made_)
      if (made.extents == extents) return *made.program;
    std::vector<RelationAxis> axes;
    for (std::size_t d = 0; d < extents.size(); ++d) axes.push_back({PairedRuns::run(extents[d]), from_[d], to_[d]});
    made_.push_back({extents, std::make_unique<CopyProgram>(LoopNest(element_bytes_, std::move(axes)))});
    return *made_.back().program;
  }

 private:
  struct Made {
    std::vector<Index> extents;
    std::unique_ptr<CopyProgram> program;
  };
  Index element_bytes_;
  std::vector<Index> from_, to_;
  std::vector<Made> made_;
};

/// Calls `each(chunk, from, to, extents)` for every chunk that has something of the box: its number, where the part
/// begins in the box and in the chunk, and how much it is.
template <class Each>
void for_each_part(const std::vector<Index>& start, const std::vector<Index>& extents, const ChunkBuffers& buffers,
                   const Each& each) {
  const std::size_t n = start.size();
  check_dimensions("the grid of chunks", buffers.chunk.size(), n);
  check_dimensions("the first chunk", buffers.first.size(), n);
  check_dimensions("the count of chunks", buffers.counts.size(), n);
  check_dimensions("the box's extents", extents.size(), n);
  std::vector<Index> begin(n), end(n), at(n), from(n), to(n), part(n);
  for (std::size_t d = 0; d < n; ++d) {
    const Index chunk = buffers.chunk[d];
    if (chunk < 1 || start[d] < 0 || extents[d] < 0)
      throw Error(ErrorKind::argument, "dimension " + std::to_string(d) + ": a chunk of " + std::to_string(chunk) +
                                           ", a box of " + std::to_string(extents[d]) + " from " +
                                           std::to_string(start[d]));
    const Index last = checked_add(start[d], extents[d]);
    begin[d] = std::max(start[d] / chunk, buffers.first[d]);
    end[d] = std::min(ceil_div(last, chunk), checked_add(buffers.first[d], buffers.counts[d]));
    at[d] = begin[d];
  }
  for (std::size_t d = 0; d < n; ++d)
    if (extents[d] == 0 || begin[d] >= end[d]) return;
  while (true) {
    Index number = 0;
    for (std::size_t d = 0; d < n; ++d) {
      const Index chunk = buffers.chunk[d], low = checked_mul(at[d], chunk);
      const Index lower = std::max(low, start[d]), upper = low + std::min(chunk, start[d] + extents[d] - low);
      from[d] = lower - start[d];
      to[d] = lower - low;
      part[d] = upper - lower;
      number = number * buffers.counts[d] + (at[d] - buffers.first[d]);
    }
    each(number, from, to, part);
    std::size_t d = n;
    while (d-- > 0 && ++at[d] == end[d]) at[d] = begin[d];
    if (d == std::size_t(-1)) return;
  }
}

constexpr std::uint64_t golden = 0x9E3779B97F4A7C15;  // places wrap, and become keys that have nothing in common

/// Digests of boxes of one array that have the same strides.
class BoxDigest {
 public:
  BoxDigest(const std::vector<Index>& shape, const std::vector<Index>& strides, Index element_bytes,
            const std::byte* fill)
      : strides_(strides), steps_(shape.size()), at_(shape.size(), 0), element_bytes_(element_bytes), fill_(fill) {
    std::uint64_t step = golden * std::uint64_t(ceil_div(element_bytes, 8));
    for (std::size_t d = shape.size(); d-- > 0;) {
      steps_[d] = step;
      step *= std::uint64_t(shape[d]);
    }
  }

  std::uint64_t of(const std::byte* data, const std::vector<Index>& start, const std::vector<Index>& extents) {
    const std::size_t n = steps_.size();
    std::uint64_t place = golden, sum = 0;
    // The loops are over what lies closest in memory: sums do not depend on it.
    std::size_t inner = n, outer = n;
    for (std::size_t d = 0; d < n; ++d) {
      if (extents[d] == 0) return 0;
      place += std::uint64_t(start[d]) * steps_[d];
      if (extents[d] == 1) continue;
      if (inner == n || strides_[d] <= strides_[inner]) {
        outer = inner;
        inner = d;
      } else if (outer == n || strides_[d] <= strides_[outer]) {
        outer = d;
      }
    }
    DigestLoop loop;
    loop.n = inner == n ? 1 : extents[inner];
    loop.stride = inner == n ? element_bytes_ : strides_[inner];
    loop.place_step = inner == n ? 0 : steps_[inner];
    if (outer != n) {
      loop.rows = extents[outer];
      loop.row_stride = strides_[outer];
      loop.row_step = steps_[outer];
    }
    loop.skips = fill_ != nullptr;
    while (true) {
      for (Index byte = 0; byte < element_bytes_; byte += 8) {
        loop.width = int(std::min<Index>(8, element_bytes_ - byte));
        loop.place = place + golden * std::uint64_t(byte / 8);
        loop.skipped = 0;
        if (fill_) std::memcpy(&loop.skipped, fill_ + byte, std::size_t(loop.width));
        sum += digest_(data + byte, loop);
      }
      std::size_t d = n;
      while (d-- > 0) {
        if (d == inner || d == outer) continue;
        data += strides_[d];
        place += steps_[d];
        if (++at_[d] < extents[d]) break;
        data -= strides_[d] * extents[d];
        place -= steps_[d] * std::uint64_t(extents[d]);
        at_[d] = 0;
      }
      if (d == std::size_t(-1)) return sum;
    }
  }

 private:
  const std::vector<Index>& strides_;
  std::vector<std::uint64_t> steps_;
  std::vector<Index> at_;  // all 0 between two calls
  Index element_bytes_;
  const std::byte* fill_;
  std::uint64_t (*digest_)(const std::byte*, const DigestLoop&) = kernels().digest;
};

/// Of a chunk's buffer, in bytes.
std::vector<Index> strides_of_chunk(const ChunkBuffers& buffers, std::size_t dimensions) {
  check_dimensions("the array", buffers.shape.size(), dimensions);
  check_dimensions("the grid of chunks", buffers.chunk.size(), dimensions);
  std::vector<Index> strides(dimensions);
  Index stride = buffers.element_bytes;
  for (std::size_t d = dimensions; d-- > 0;) {
    strides[d] = stride;
    stride = checked_mul(stride, buffers.chunk[d]);
  }
  return strides;
}

const std::byte* fill_of(const ChunkBuffers& buffers) { return buffers.fill.empty() ? nullptr : buffers.fill.data(); }

/// A part of so many elements with this digest has come to a chunk. Whether that lacks nothing any more.
bool has_come(const ChunkBuffers& buffers, Index chunk, const std::vector<Index>& extents, std::uint64_t digest) {
  Index elements = 1;
  for (const Index extent : extents) elements *= extent;
  std::atomic_ref(buffers.digests[chunk]).fetch_add(digest, std::memory_order_relaxed);
  return std::atomic_ref(buffers.missing[chunk]).fetch_sub(elements, std::memory_order_acq_rel) == elements;
}

}  // namespace

std::vector<Index> scatter_to_chunks(const ArrayBox& box, const ChunkBuffers& buffers) {
  const std::size_t n = box.start.size();
  check_dimensions("the box's memory", box.strides.size(), n);
  const auto strides = strides_of_chunk(buffers, n);
  PartPrograms programs(buffers.element_bytes, box.strides, strides);
  BoxDigest digest(buffers.shape, box.strides, buffers.element_bytes, fill_of(buffers));
  std::vector<Index> complete, place(n);
  for_each_part(box.start, box.extents, buffers,
                [&](Index chunk, const std::vector<Index>& from, const std::vector<Index>& to,
                    const std::vector<Index>& extents) {
                  Index source = 0, destination = buffers.slots[chunk];
                  for (std::size_t d = 0; d < n; ++d) {
                    source += from[d] * box.strides[d];
                    destination += to[d] * strides[d];
                    place[d] = box.start[d] + from[d];
                  }
                  if (buffers.slots[chunk] >= 0)
                    programs.of(extents).run(buffers.memory + destination, box.data + source);
                  if (has_come(buffers, chunk, extents, digest.of(box.data + source, place, extents)))
                    complete.push_back(chunk);
                });
  return complete;
}

std::vector<Index> count_in_chunks(const std::vector<Index>& start, const std::vector<Index>& extents,
                                   const ChunkBuffers& buffers) {
  const std::size_t n = start.size();
  const auto strides = strides_of_chunk(buffers, n);
  BoxDigest digest(buffers.shape, strides, buffers.element_bytes, fill_of(buffers));
  std::vector<Index> complete, place(n);
  for_each_part(
      start, extents, buffers,
      [&](Index chunk, const std::vector<Index>& from, const std::vector<Index>& to, const std::vector<Index>& part) {
        if (buffers.slots[chunk] < 0) return;
        const std::byte* held = buffers.memory + buffers.slots[chunk];
        for (std::size_t d = 0; d < n; ++d) {
          held += to[d] * strides[d];
          place[d] = start[d] + from[d];
        }
        if (has_come(buffers, chunk, part, digest.of(held, place, part))) complete.push_back(chunk);
      });
  return complete;
}

std::uint64_t element_digest(const ArrayBox& box, const std::vector<Index>& shape, Index element_bytes,
                             const std::byte* fill) {
  const std::size_t n = box.start.size();
  check_dimensions("the array", shape.size(), n);
  check_dimensions("the box's extents", box.extents.size(), n);
  check_dimensions("the box's memory", box.strides.size(), n);
  return BoxDigest(shape, box.strides, element_bytes, fill).of(box.data, box.start, box.extents);
}

}  // namespace longshore
