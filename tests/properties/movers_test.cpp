// The threads engine and the tasks under it against the dense oracle.
#include "support/generators.hpp"

#include <array>
#include <cstring>

#include "longshore/movers/local_moves.hpp"
#include "longshore/movers/mover.hpp"
#include "support/arrays.hpp"
#include "support/simulate.hpp"

namespace longshore::test {
namespace {

/// Moves whose parts interleave in memory, as well as any other; large elements make several tasks of few indices.
MoveSpec draw_engine_move() {
  auto spec = draw_move(500);
  if (chance(50)) {
    const Indices shape = chance(50) ? Indices{draw_extent(400)} : Indices{draw(1, 5), draw_extent(80)};
    spec.source = draw_layout(shape), spec.destination = draw_layout(shape);
    spec.axes.resize(shape.size());
    std::iota(spec.axes.begin(), spec.axes.end(), std::size_t{0});
    spec.destination.fortran = spec.source.fortran;
  }
  spec.element_bytes = *rc::gen::element<Index>(1, 4, 8, 12, 24, 256, 700, 1024);
  RC_LOG() << spec << '\n';
  return spec;
}

RC_GTEST_PROP(Movers, threads_deliver, ()) {
  const auto spec = draw_engine_move();
  const auto plan = plan_of(spec);
  Arrays source(plan.source(), spec.element_bytes), destination(plan.destination(), spec.element_bytes);
  source.memory = scatter(DenseLayout(spec.source), spec.element_bytes);
  const auto expected = scatter_permuted(DenseLayout(spec.destination), spec.element_bytes, spec.axes);
  MoveOptions options;
  options.threads = int(draw(0, 4));
  const auto mover = bind_threads(plan, source.local(), destination.local(), options);
  for (int round = 0; round < 2; ++round) {
    destination.clear();
    mover->start();
    if (chance(50)) mover->test();
    mover->wait();
    RC_ASSERT(destination.memory == expected);
  }
  RC_ASSERT(mover->moved_bytes() == plan.destination().size() * plan.destination().replicas() * spec.element_bytes);
}

RC_GTEST_PROP(Movers, threads_combine, ()) {
  auto spec = draw_engine_move();
  spec.element_bytes = 8;
  const auto plan = plan_of(spec);
  Arrays source(plan.source(), 8), destination(plan.destination(), 8);
  auto number = [](Arrays& arrays, Index factor) {
    Index n = 0;
    for (auto& part : arrays.memory)
      for (std::size_t at = 0; at < part.size(); at += 8) {
        const double value = double(++n * factor % 101 - 50);
        std::memcpy(part.data() + at, &value, 8);
      }
  };
  number(source, 7), number(destination, 13);
  const double alpha = double(draw(-3, 3)), beta = double(draw(-3, 3));
  ScalarBytes a{}, b{};
  std::memcpy(a.data(), &alpha, 8), std::memcpy(b.data(), &beta, 8);
  auto expected = destination.memory;
  for (Index rank = 0; rank < plan.world_size(); ++rank)
    plan.for_each_send(rank, [&](const Motion& motion) {
      const auto& from = source.memory[std::size_t(*plan.source().process_of(motion.source))];
      auto& to = expected[std::size_t(*plan.destination().process_of(motion.destination))];
      const auto relation = plan.relation(motion);
      for (Index p = 0; p < relation.elements(); ++p) {
        double x, y;
        std::memcpy(&x, from.data() + relation.at(p).source, 8);
        std::memcpy(&y, to.data() + relation.at(p).destination, 8);
        y = beta * y + alpha * x;
        std::memcpy(to.data() + relation.at(p).destination, &y, 8);
      }
    });
  MoveOptions options;
  options.update = Combine(ElementType::float64, a, b, false);
  const auto mover = bind_threads(plan, source.local(), destination.local(), options);
  mover->start();
  mover->wait();
  for (std::size_t p = 0; p < expected.size(); ++p)
    for (std::size_t at = 0; at < expected[p].size(); at += 8) {
      double x, y;
      std::memcpy(&x, expected[p].data() + at, 8), std::memcpy(&y, destination.memory[p].data() + at, 8);
      RC_ASSERT(x == y);  // by value: -0.0 is 0.0
    }
}

/// As one node of many sees a plan: some of the parts only.
RC_GTEST_PROP(Movers, tasks_carry_exactly_the_visible_motions, ()) {
  const auto spec = draw_engine_move();
  const auto plan = plan_of(spec);
  const int visible = int(draw(30, 100));
  Arrays source(plan.source(), spec.element_bytes), destination(plan.destination(), spec.element_bytes);
  source.memory = scatter(DenseLayout(spec.source), spec.element_bytes);
  auto parts = [&](Arrays& arrays) {
    std::vector<VisiblePart> result;
    for (Index p = 0; p < Index(arrays.memory.size()); ++p)
      if (chance(visible)) result.push_back({arrays.rank(p), arrays.memory[std::size_t(p)].data()});
    return result;
  };
  const auto from = parts(source), to = parts(destination);
  auto find = [](const std::vector<VisiblePart>& all, Index rank) {
    return std::find_if(all.begin(), all.end(), [&](const auto& part) { return part.rank == rank; });
  };

  Index bytes = 0;
  for (const auto& sender : from)
    plan.for_each_send(sender.rank, [&](const Motion& motion) {
      const auto receiver = find(to, motion.destination);
      if (receiver == to.end()) return;
      plan.relation(motion).move_plain(receiver->data, sender.data);
      bytes += motion.elements * spec.element_bytes;
    });
  const auto expected = destination.memory;
  destination.clear();

  CopyTaskOptions options;
  if (chance(60)) options.task_bytes = spec.element_bytes * draw(1, 100);
  if (chance(70)) options.far = draw(0, 2000);
  options.stores = std::array{Stores::cached, Stores::streaming, Stores::packing}[std::size_t(draw(0, 2))];
  const auto tables = available_kernels();
  options.table = tables[std::size_t(draw(0, Index(tables.size()) - 1))];
  const auto direction = chance(70) ? preferred_direction(plan) : chance(50) ? Direction::pull : Direction::push;
  for (const auto& task : copy_tasks(plan, from, to, direction, options)) {
    task.run();
    bytes -= task.bytes;
    RC_ASSERT(!task.describe().empty());
  }
  RC_ASSERT(destination.memory == expected);
  RC_ASSERT(bytes == 0);  // so no two tasks write the same element
}

}  // namespace
}  // namespace longshore::test
