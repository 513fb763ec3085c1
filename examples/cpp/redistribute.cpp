// Brings a matrix from row blocks on 4 ranks to a block-cyclic
// layout on a 2 x 2 grid, all in one process, and checks it.
#include <cstdio>
#include <vector>

#include "longshore/movers/mover.hpp"

int main() {
  using namespace longshore;
  const auto source = Layout::parse("(BLOCK, *) on 4", {1000, 700});
  const auto destination = Layout::parse("(CYCLIC(64), CYCLIC(64)) on 2x2", {1000, 700});

  // One array a rank. Every element holds its own global position, so that the result can be checked.
  auto make = [](const Layout& layout, std::vector<std::vector<double>>& memory) {
    std::vector<LocalArray> arrays;
    memory.resize(layout.processes());
    for (Index rank = 0; rank < layout.processes(); ++rank) {
      memory[rank].resize(layout.allocated_size(rank));
      arrays.push_back({reinterpret_cast<std::byte*>(memory[rank].data()), layout.local_shape(rank),
                        layout.local_strides(rank, sizeof(double))});
    }
    return arrays;
  };
  auto value = [&](const std::vector<Index>& index) { return double(index[0] * 700 + index[1]); };
  auto for_each = [](const Layout& layout, std::vector<std::vector<double>>& memory, auto&& f) {
    for (Index rank = 0; rank < layout.processes(); ++rank) {
      const auto shape = layout.local_shape(rank);
      for (Index i = 0; i < shape[0]; ++i)
        for (Index j = 0; j < shape[1]; ++j) f(layout.local_to_global(rank, {i, j}), memory[rank][i * shape[1] + j]);
    }
  };
  std::vector<std::vector<double>> from, to;
  auto sources = make(source, from), destinations = make(destination, to);
  for_each(source, from, [&](const std::vector<Index>& index, double& element) { element = value(index); });

  const MotionPlan plan(source, destination, sizeof(double));
  for (const auto& motion : plan.sends(0))
    std::printf("rank 0 sends %lld elements to rank %lld\n", (long long)motion.elements, (long long)motion.destination);

  const auto mover = bind_threads(plan, sources, destinations);
  mover->start();
  mover->wait();
  std::printf("%s\n", mover->describe().c_str());

  Index wrong = 0;
  for_each(destination, to,
           [&](const std::vector<Index>& index, double& element) { wrong += element != value(index); });
  std::printf("%lld of %lld elements are where they belong\n", (long long)(destination.size() - wrong),
              (long long)destination.size());
  return wrong == 0 ? 0 : 1;
}
