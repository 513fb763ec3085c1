/// core: files that appear whole or not at all.
#pragma once

#include <string>

namespace longshore {

/// Empty if it went well, or what went wrong.
std::string write_whole(const std::string& path, const std::string& text);

}  // namespace longshore
