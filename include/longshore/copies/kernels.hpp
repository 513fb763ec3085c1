/// Copy kernels: the loops at the bottom of every move, one table chosen by CPU at run time, each with a plain twin.
///
/// A kernel moves `block` bytes at a time. Strides are in bytes and may be negative; source and destination do not
/// overlap. All kernels accept any alignment and any count including zero. Destination blocks do not overlap each other
/// either, and are written in any order; nothing between them is touched. Source blocks may overlap; what lies between
/// two of them may be read (and is discarded), nothing before the first or after the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "longshore/copies/kernel_profile.hpp"
#include "longshore/relations/block_loops.hpp"

namespace longshore {

/// Bytes that lie together in one source and in the destination.
struct LineRun {
  Index offset;          ///< in the source
  std::uint16_t source;  ///< which one
  std::uint16_t place;   ///< in the destination, from its group's first line on
  std::uint16_t bytes;
  /// Whether the source may be read, and lines of the group's written, up to the next multiple of 64 bytes.
  std::uint16_t rounded;
};

/// How consecutive lines of the destination are put together. The runs of a group follow each other in the order of
/// their places.
struct LineGroup {
  enum class Way : std::uint16_t {
    exact,   ///< from runs, some of whose bytes belong to others; nothing else is written
    whole,   ///< of one run
    turns2,  ///< elements of so many bytes are by turns of the runs, which tell each the first one, equally many of all
    turns4,  ///< the same
    turns8,  ///< the same
    turns16,  ///< the same, of two
    staged,   ///< from runs that leave nothing out
    /// The same for tables that expand, each line by itself: a run is what a source has in the line, its `place` is to
    /// which 4-byte words of it that goes in order, the lowest bit first, and `bytes` is how many runs of the line
    /// follow.
    expanded,
    /// The same of one source: a run is 64 bytes of it, its `place` which 4-byte words of these are taken, one after
    /// the other, the lowest bit first, and `bytes` how many they make.
    taken,
  };
  Way way;
  std::uint16_t lines;  ///< staged, expanded or taken: at most `most_staged_lines`
  std::uint16_t runs;   ///< whole: 1; by turns: 2 to `most_merged_sources`
};
inline constexpr Index most_staged_lines = 32, most_merged_sources = 64;

/// Rows of lines that are put together alike: row j at destination + j*destination_step, from source k's
/// sources[k] + j*source_steps[k]. Destination steps are multiples of 64.
struct MergeLoops {
  Index groups = 0, rows = 1, destination_step = 0;
  const Index* source_steps = nullptr;
  bool short_runs = false;  ///< of each source a row needs little: more such rows are read ahead, not more of this one
};

/// Blocks of one size whose places are listed: block i lies at
/// base + unit * index[i], i < n. Places need not be in any order.
struct BlockList {
  const std::uint32_t* index = nullptr;
  Index n = 0;
  Index block = 0;  ///< bytes
  Index unit = 0;   ///< bytes that an index counts, at least 1; the block may be smaller, the same or bigger
};

/// Places of `element` bytes one after the other, some of which are marked: place k lies at base + k * element, bit k
/// of the marks (from the lowest of the first byte on) tells whether it counts.
struct MarkedPlaces {
  const std::uint8_t* marks = nullptr;  ///< readable for 8 bytes beyond the last place's
  Index first = 0, last = 0;            ///< the places that are looked at
  Index marked = 0;                     ///< how many of them are marked
  Index element = 0;                    ///< 4 or 8
};

/// Rows of words of up to 8 bytes, and what each one's place in the whole counts for in a digest. Places wrap.
struct DigestLoop {
  Index n = 0, stride = 0;         ///< words of a row, bytes from one to the next
  Index rows = 1, row_stride = 0;  ///< bytes
  int width = 8;                   ///< bytes a word, 1 to 8
  std::uint64_t place = 0;         ///< of the first word
  std::uint64_t place_step = 0, row_step = 0;
  bool skips = false;  ///< whether words that are `skipped` add nothing
  std::uint64_t skipped = 0;
};

/// How a kernel should treat the destination's cache lines.
enum class Stores {
  cached,     ///< ordinary stores: somebody reads the destination soon, or it fits in cache
  streaming,  ///< non-temporal stores where a whole line can be completed: the destination is beyond the cache
  packing,    ///< ordinary stores, but the source is beyond the cache: long blocks of it are read side by side
};

/// From this many bytes a destination is taken to be beyond the cache that a core has to itself, and is written with
/// streaming stores unless somebody is known to read it soon.
inline constexpr Index far_bytes = Index{3} << 20;

/// `blocks` for certain loops and cached stores, decided beforehand:
/// small moves are over in the time that deciding takes.
struct PreparedBlocks {
  void (*run)(std::byte* destination, const std::byte* source,
              const BlockLoops& loops) = nullptr;  ///< null: call `blocks`
  BlockLoops loops;                                ///< to call it with
};

/// The kernels of one instruction set, as they are best for one CPU that has it.
struct KernelTable {
  using Bytes = std::byte*;
  using Source = const std::byte*;

  const char* name;  ///< "plain"; "baseline" (SSE2), "avx2", "avx512"; "neon"
  void (*copy_as)(Bytes, Source, Index n, Stores, const KernelProfile&);
  void (*blocks_as)(Bytes, Source, const BlockLoops&, Stores, const KernelProfile&);
  void (*transpose_as)(Bytes, Source, const BlockLoops&, Stores, const KernelProfile&);
  void (*merge_as)(Bytes, const Source*, const LineGroup*, const LineRun*, const MergeLoops&, Stores,
                   const KernelProfile&);
  bool expands;  ///< whether `merge` takes groups that are `expanded` or `taken`
  /// Null where the loops are empty or take several kernels.
  PreparedBlocks (*prepare)(const BlockLoops& loops);
  /// Listed blocks of the source to a contiguous destination, block i to
  /// destination + i * block. The list may name a place more than once.
  void (*gather)(std::byte* destination, const std::byte* source, const BlockList& from, Stores stores);
  /// Blocks of a contiguous source to their listed places in the destination, which do not overlap.
  void (*scatter)(std::byte* destination, const std::byte* source, const BlockList& to, Stores stores);
  /// From list to list: block i of `from` to destination + from.unit * to[i].
  void (*relocate)(std::byte* destination, const std::uint32_t* to, const std::byte* source, const BlockList& from,
                   Stores stores);
  /// Elements of a contiguous source to the marked places of the destination, in order. Null where the instruction set
  /// has no way faster than `scatter`; the plain table has it to compare with.
  void (*expand)(std::byte* destination, const std::byte* source, const MarkedPlaces& to);
  /// The sum, which wraps, of what each word adds at its place: the same in whatever order and pieces words are
  /// visited.
  std::uint64_t (*digest)(const std::byte* data, const DigestLoop& loop);
  /// Makes streaming stores visible to other threads and processes; call once after a series of streaming kernels.
  void (*fence)();
  KernelProfile profile = {};

  /// n contiguous bytes.
  void copy(Bytes destination, Source source, Index n, Stores stores) const {
    copy_as(destination, source, n, stores, profile);
  }
  /// Blocks in two loops, any strides; the caller has ordered the loops, n0 innermost. Specialised on block size and on
  /// unit-to-strided, strided-to-unit and contiguous n0 loops.
  void blocks(Bytes destination, Source source, const BlockLoops& loops, Stores stores) const {
    blocks_as(destination, source, loops, stores, profile);
  }
  /// Transposition, tiled: the n0 loop is (nearly) unit stride in the destination, the n1 loop (nearly) unit stride in
  /// the source. Same meaning as `blocks`, other visiting order.
  void transpose(Bytes destination, Source source, const BlockLoops& loops, Stores stores) const {
    transpose_as(destination, source, loops, stores, profile);
  }
  /// Lines of a destination, aligned to 64 bytes, put together from several sources.
  void merge(Bytes destination, const Source* sources, const LineGroup* groups, const LineRun* runs,
             const MergeLoops& loops, Stores stores) const {
    merge_as(destination, sources, groups, runs, loops, stores, profile);
  }
};

/// The plain twin: one memcpy a block, in loop order. Tests compare every other table with it.
const KernelTable& plain_kernels();
/// The fastest table this CPU can run, with the profile of `kernel_choice` where it is to stream. With cached stores
/// profiles make no difference, and none is chosen. LONGSHORE_KERNELS=plain|baseline|avx2|avx512|neon in the
/// environment asks for another table (ignored where the CPU cannot run it).
const KernelTable& kernels(Stores stores = Stores::cached);
/// How parts of `far_bytes` and more are written where all destinations of a move have so many bytes together.
inline Stores far_stores(Wide all_bytes, const KernelProfile& profile) {
  return all_bytes <= profile.cached_bytes ? Stores::packing : Stores::streaming;
}
/// Every table this CPU can run, for tests and benchmarks.
std::vector<const KernelTable*> available_kernels();

}  // namespace longshore
