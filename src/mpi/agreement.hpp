/// mpi: agreement. Ranks compare what they were given before any data moves; all succeed or all throw.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "longshore/core/checked.hpp"
#include "longshore/core/error.hpp"
#include "longshore/core/facts.hpp"
#include "mpi/communicator.hpp"

namespace longshore::mpi {

/// What one rank brings: its own error if it has one, a digest of what it was given, and that in words, if asked.
struct Submission {
  std::optional<Error> failure;
  bool postponed = false;  ///< it cannot tell yet what it was given
  std::uint64_t digest = 0;
  std::function<Facts()> facts;

  /// Runs `work` unless something has failed already, and keeps its error.
  template <class Work>
  void attempt(Work&& work);
};

using Values = std::array<Index, 6>;

/// What agree() throws on every rank where one has postponed what it was asked for, and none has failed.
struct Postponed : Error {
  Postponed() : Error(ErrorKind::disagreement, "a rank has to ask the others something before it can go on") {}
};

/// Collective. Returns the smallest of each of the `values` of any rank. Throws on every rank where one has failed
/// (with the failing ranks' messages) or where digests differ (`Error(disagreement)` telling in what).
Values agree(const Communicator& communicator, const Submission& mine, const Values& values = {});

/// Runs `work`, keeping its error to be submitted.
template <class Work>
std::optional<Error> attempt(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorKind::memory_limit, "not enough memory to bind this move");
  } catch (const std::exception& error) {
    return Error(ErrorKind::argument, error.what());
  }
  return std::nullopt;
}

template <class Work>
void Submission::attempt(Work&& work) {
  if (!failure) failure = mpi::attempt(std::forward<Work>(work));
}

/// The same in words.
template <class Work>
std::optional<std::string> obstacle_to(Work&& work) {
  const auto failure = attempt(work);
  return failure ? std::optional<std::string>(failure->what()) : std::nullopt;
}

}  // namespace longshore::mpi
