#include "copies.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace longshore::bench {

namespace {

constexpr Index line_doubles = 8;

/// `run` is known to the compiler, or 0 where runs are long.
template <Index run>
void carry_out_runs(const RunsCopy& copy) {
  const auto& [inner, middle, outer] = copy.loops;
  for (Index k = 0; k < outer.count; ++k)
    for (Index j = 0; j < middle.count; ++j) {
      double* to = copy.to + k * outer.to + j * middle.to;
      const double* from = copy.from + k * outer.from + j * middle.from;
      for (Index i = 0; i < inner.count; ++i, to += inner.to, from += inner.from) {
        if constexpr (run == 0)
          std::memcpy(to, from, std::size_t(copy.run) * sizeof(double));
        else
          for (Index x = 0; x < run; ++x) to[x] = from[x];
      }
    }
}

}  // namespace

Cells::Cells(const Grid& grid, const Region& region) {
  const Region inside = grid.region & region;
  if (inside != region || inside.empty()) throw Error(ErrorKind::argument, region.to_string() + " is not in its box");
  first = reinterpret_cast<double*>(grid.data + grid.offset_of(region.lower()));
  for (std::size_t d = 0; d < 3; ++d) {
    extents[d] = region.extent(d);
    strides[d] = grid.strides[d] / Index(sizeof(double));
  }
}

Cells Cells::dense(double* at) const {
  Cells cells = *this;
  cells.first = at;
  Index stride = 1;
  for (std::size_t d = 0; d < 3; ++d) cells.strides[d] = stride, stride *= extents[d];
  return cells;
}

bool Cells::contiguous() const {
  const Cells there = dense(first);
  for (std::size_t d = 0; d < 3; ++d)
    if (extents[d] > 1 && strides[d] != there.strides[d]) return false;
  return true;
}

RunsCopy copy_of(const Cells& to, const Cells& from) {
  RunsCopy copy{to.first, from.first, to.extents[0], {}};
  std::size_t loops = 0;
  for (std::size_t d = 1; d < 3; ++d) {
    const RunsCopy::Loop loop{to.extents[d], to.strides[d], from.strides[d]};
    if (loop.count == 1) continue;
    if (loops == 0 && loop.to == copy.run && loop.from == copy.run)
      copy.run *= loop.count;
    else
      copy.loops[loops++] = loop;
  }
  return copy;
}

std::vector<RunsCopy> joined(const std::vector<RunsCopy>& copies) {
  std::vector<RunsCopy> result;
  for (const RunsCopy& copy : copies) {
    RunsCopy* last = result.empty() ? nullptr : &result.back();
    const bool twins = last != nullptr && copy.run == last->run && copy.run < line_doubles &&
                       std::equal(std::begin(copy.loops), std::end(copy.loops), std::begin(last->loops)) &&
                       last->loops[2].count == 1;
    if (!twins) {
      result.push_back(copy);
      continue;
    }
    std::swap(last->loops[2], last->loops[1]);
    std::swap(last->loops[1], last->loops[0]);
    last->loops[0] = {2, copy.to - last->to, copy.from - last->from};
  }
  return result;
}

void carry_out(const std::vector<RunsCopy>& copies) {
  for (const RunsCopy& copy : copies) switch (copy.run) {
      case 1: carry_out_runs<1>(copy); break;
      case 2: carry_out_runs<2>(copy); break;
      case 3: carry_out_runs<3>(copy); break;
      case 4: carry_out_runs<4>(copy); break;
      default: carry_out_runs<0>(copy);
    }
}

}  // namespace longshore::bench
