/// mpi: the numbers that keep messages of virtual communicators apart: which
/// are in use at this process, and how the members of a new one agree on one.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "mpi/subgroup.hpp"

namespace longshore::mpi {

class Contexts;

/// A context in use at this process until this goes. One of no `Contexts` is a number and no more.
class Context {
 public:
  Context(Contexts* in, int number) : in_(in), number_(number) {}
  Context(Context&& other) noexcept : in_(std::exchange(other.in_, nullptr)), number_(other.number_) {}
  Context& operator=(Context&&) = delete;
  ~Context();
  int number() const { return number_; }

 private:
  Contexts* in_;
  int number_;
};

/// Those in use at this process.
class Contexts {
 public:
  explicit Contexts(int count) : count_(count) {}
  int count() const { return count_; }
  /// Where those begin that are taken unasked; users have the ones below to themselves while there are others.
  int unasked() const { return count_ / 2; }

  /// Throws where there is no such context.
  void check(Index number) const;
  /// Nothing where it is in use.
  std::optional<Context> take(int number);
  /// That `rank` has it in use.
  Error clash(Index number, Index rank) const;

 private:
  friend class Context;
  const int count_;
  std::mutex mutex_;  // of the following
  std::set<int> living_;
};

/// A context that all members of the group have taken: the one given, if one is given, else the first from `wanted`, an
/// unasked one, on that is free at all of them. Collective over the members. A context given that is not the same
/// everywhere, or in use at one of them, is an error of all.
Context agreed_context(const Subgroup& group, Contexts& contexts, std::optional<int> given, int wanted);

}  // namespace longshore::mpi
