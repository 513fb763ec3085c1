/// Fibers: many stacks from one mapping, and the switches between them. Only fibers.cpp knows Boost.Context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace longshore::finegrain {

/// A body that runs many times side by side, on a stack of its own each time, all by one
/// thread: whoever has its turn keeps it until it suspends itself or the body returns.
/// Exceptions that are being handled or thrown belong to their stack.
class Fibers {
 public:
  using Slot = std::uint32_t;

  /// For at most so many side by side. The body must not throw. Throws `Error(memory_limit)` where
  /// there are no addresses for all of the stacks, and `Error(argument)` in a build without
  /// Boost.Context. Without `guards`, as where the system has none.
  Fibers(std::size_t most, std::size_t stack_bytes, std::function<void()> body, bool guards = true);
  /// All bodies must have returned.
  ~Fibers();

  /// A stack on which the body has yet to begin.
  Slot add();
  /// Gives it its turn. True: it has suspended itself; false: its body has returned, and the stack is given to others.
  bool resume(Slot slot);
  /// Ends the turn of the one that calls it, until it gets the next one.
  void suspend();

  /// Brings what a suspended one needs first into the cache.
  void prefetch(Slot slot) const;

  /// False where a stack that nothing guards has overflowed.
  bool intact(Slot slot) const;
  std::size_t stacks() const;  ///< that have been in use side by side

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace longshore::finegrain
