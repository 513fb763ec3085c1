// The plain twin: what every other table must agree with, so nothing clever here.
#include <cstring>

#include "tables.hpp"

namespace longshore {
namespace {

void copy(std::byte* destination, const std::byte* source, Index n) {
  if (n > 0) std::memcpy(destination, source, static_cast<std::size_t>(n));
}

void blocks(std::byte* destination, const std::byte* source, const BlockLoops& loops) {
  for (Index j = 0; j < loops.n1; ++j)
    for (Index i = 0; i < loops.n0; ++i)
      copy(destination + j * loops.d1 + i * loops.d0, source + j * loops.s1 + i * loops.s0, loops.block);
}

PreparedBlocks prepare(const BlockLoops& loops) {
  return {[](std::byte* d, const std::byte* s, const BlockLoops& l) { blocks(d, s, l); }, loops};
}

void merge(std::byte* destination, const std::byte* const* sources, const LineGroup* groups, const LineRun* runs,
           const MergeLoops& loops) {
  for (Index row = 0; row < loops.rows; ++row) {
    const LineRun* run = runs;
    std::byte* to = destination + row * loops.destination_step;
    auto from = [&](const LineRun& r) { return sources[r.source] + row * loops.source_steps[r.source] + r.offset; };
    for (Index g = 0; g < loops.groups; ++g) {
      const auto& group = groups[g];
      if (group.way == LineGroup::Way::expanded) {
        for (Index k = 0; k < group.runs; ++k, ++run) {
          const std::byte* word = from(*run);
          for (int w = 0; w < 16; ++w)
            if (run->place >> w & 1) std::memcpy(to + 4 * w, word, 4), word += 4;
          if (run->bytes == 0) to += 64;
        }
        continue;
      }
      if (group.way == LineGroup::Way::taken) {
        for (Index k = 0; k < group.runs; ++k, ++run)
          for (int w = 0; w < 16; ++w)
            if (run->place >> w & 1) std::memcpy(to, from(*run) + 4 * w, 4), to += 4;
        continue;
      }
      const bool turns = LineGroup::Way::turns2 <= group.way && group.way <= LineGroup::Way::turns16;
      const Index element = turns ? Index{2} << (int(group.way) - int(LineGroup::Way::turns2)) : 0;
      for (Index k = 0; k < group.runs; ++k, ++run) {
        if (element == 0) std::memcpy(to + run->place, from(*run), run->bytes);
        for (Index e = 0; element > 0 && e < 64 * group.lines / (group.runs * element); ++e)
          std::memcpy(to + run->place + group.runs * e * element, from(*run) + e * element, std::size_t(element));
      }
      to += 64 * group.lines;
    }
  }
}

void gather(std::byte* destination, const std::byte* source, const BlockList& from, Stores) {
  for (Index i = 0; i < from.n; ++i) copy(destination + i * from.block, source + from.unit * from.index[i], from.block);
}

void scatter(std::byte* destination, const std::byte* source, const BlockList& to, Stores) {
  for (Index i = 0; i < to.n; ++i) copy(destination + to.unit * to.index[i], source + i * to.block, to.block);
}

void relocate(std::byte* destination, const std::uint32_t* to, const std::byte* source, const BlockList& from, Stores) {
  for (Index i = 0; i < from.n; ++i)
    copy(destination + from.unit * to[i], source + from.unit * from.index[i], from.block);
}

void expand(std::byte* destination, const std::byte* source, const MarkedPlaces& to) {
  for (Index k = to.first; k < to.last; ++k)
    if (to.marks[k / 8] >> k % 8 & 1) {
      copy(destination + k * to.element, source, to.element);
      source += to.element;
    }
}

std::uint64_t digest(const std::byte* data, const DigestLoop& loop) {
  std::uint64_t sum = 0;
  for (Index row = 0; row < loop.rows; ++row)
    for (Index i = 0; i < loop.n; ++i) {
      std::uint64_t word = 0;
      for (int byte = loop.width; byte-- > 0;)
        word = word << 8 | std::to_integer<std::uint64_t>(data[row * loop.row_stride + i * loop.stride + byte]);
      if (loop.skips && word == loop.skipped) continue;
      const std::uint64_t place = loop.place + std::uint64_t(row) * loop.row_step + std::uint64_t(i) * loop.place_step;
      const std::uint64_t key = place ^ place >> 32;
      sum += std::uint64_t(std::uint32_t(word + key)) * std::uint32_t((word >> 32) + (key >> 32));
    }
  return sum;
}

void fence() {}

}  // namespace

const KernelTable& plain_kernels() {
  static constexpr KernelTable table{
      "plain",
      [](std::byte* d, const std::byte* s, Index n, Stores, const KernelProfile&) { copy(d, s, n); },
      [](std::byte* d, const std::byte* s, const BlockLoops& l, Stores, const KernelProfile&) { blocks(d, s, l); },
      [](std::byte* d, const std::byte* s, const BlockLoops& l, Stores, const KernelProfile&) { blocks(d, s, l); },
      [](std::byte* d, const std::byte* const* s, const LineGroup* groups, const LineRun* runs, const MergeLoops& l,
         Stores, const KernelProfile&) { merge(d, s, groups, runs, l); },
      true,
      &prepare,
      &gather,
      &scatter,
      &relocate,
      &expand,
      &digest,
      &fence};
  return table;
}

}  // namespace longshore
