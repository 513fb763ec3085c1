/// profile: what the profile says at the end, in words and as JSON.
#pragma once

#include "profile/usage.hpp"

namespace longshore::profile {

/// For people: lists of one size, structure and history are one line, those that take most first.
std::string text_report(const Summary& summary);
/// For programs: every list with its members, a rank map's stored bytes in hexadecimal digits.
std::string json_report(const Summary& summary);

/// The text to the standard error, and JSON to the file that LONGSHORE_RANK_PROFILE names, which appears whole or not
/// at all. A world that another one spawned has no file, for it would be the same one.
void publish(const Summary& summary, bool spawned);

}  // namespace longshore::profile
