// Brings a matrix from row blocks on 4 ranks to a block-cyclic layout on a 2 x 2 grid, all in one process.
#include <cstdio>
#include <numeric>
#include <vector>

#include <longshore/longshore.hpp>

int main() {
  std::vector<double> whole(1000 * 700);
  std::iota(whole.begin(), whole.end(), 0);  // every element is its own place
  const auto rows = longshore::Layout::parse("(BLOCK, *) on 4", {1000, 700});
  const auto tiles = longshore::Layout::parse("(CYCLIC(64), CYCLIC(64)) on 2x2", {1000, 700});

  const auto parts = longshore::scatter(whole, rows);  // a std::vector for each rank
  auto moved = longshore::make_local_arrays<double>(tiles);
  longshore::redistribute(parts, rows, moved, tiles);

  const bool right = longshore::gather(moved, tiles) == whole;
  std::printf("every element is where it belongs: %s\n", right ? "yes" : "no");
  return right ? 0 : 1;
}
