/// tune: where it is kept what was found about loops over strips, so that the next run of a program need not search.
#pragma once

#include <string>
#include <vector>

#include "longshore/plans/strip_schedule.hpp"

namespace longshore {

/// A loop over remote rows, as far as its schedule depends on it.
struct TunedLoop {
  std::string pattern;  ///< which loop it is, and who has the rows: whatever tells it from others
  Index rows = 0, row_bytes = 8;
  bool operator==(const TunedLoop&) const = default;
};

/// What was found for loops of a pattern with this many rows, or up to twice as many.
struct StripChoice {
  TunedLoop loop;  ///< `rows` a power of two
  StripSchedule schedule = StripSchedule::vectorized();
  double seconds = 0, vectorized_seconds = 0;  ///< a row
};

/// Where this machine's profile is kept: what LONGSHORE_PROFILE says, or the user's configuration, a file a host.
std::string machine_profile_path();
/// Where the choices are: beside the machine profile, ".strips.json" for ".json". It is JSON, and the same for programs
/// in C++ and in Python.
std::string strip_choices_path();

/// The choices in a file; none where there is no such file. Throws `Error(transport)` where it cannot be read,
/// `Error(argument)` where it holds something else.
std::vector<StripChoice> read_strip_choices(const std::string& path);
/// Writes choices, with those of other loops that the file has: whole, or not at all. Throws as `read_strip_choices`
/// does: what holds something else may be somebody's who wants it back.
void keep_strip_choices(const std::string& path, const std::vector<StripChoice>& choices);

}  // namespace longshore
