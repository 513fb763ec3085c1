/// What must hold for any layout text and shape whatsoever: an `Error` in printable words, or a layout that prints as
/// text that parses back to it and answers without wrapping.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string>

#include "longshore/layouts/layout.hpp"

namespace longshore::test {

inline void require(bool good, const std::string& text, const char* what) {
  if (good) return;
  std::cerr << what << ": " << text << '\n';
  std::abort();
}

/// True where the text is a layout.
inline bool check_layout_text(const std::string& text, const std::vector<Index>& shape) {
  try {
    const auto layout = Layout::parse(text, shape);
    const auto canonical = layout.to_string();
    require(Layout::parse(canonical, shape) == layout, text, "does not survive its own text");
    require(layout.processes() >= 1 && layout.world_size() >= layout.processes(), text, "has no processes");
    const std::vector<Index> origin(shape.size(), 0);
    if (layout.size() > 0) {
      const auto place = layout.global_to_local(origin);
      require(layout.process_of(place.rank).has_value(), text, "is owned by nobody");
      require(layout.local_to_global(place.rank, place.local) == origin, text, "loses its first element");
    }
    for (const Index rank : {Index{0}, layout.world_size() - 1}) {
      require(layout.local_size(rank) <= layout.size(), text, "owns more than there is");
      Index owned = 1;
      for (const auto& runs : layout.owned(rank))
        owned = runs.empty() ? 0 : owned == 0 ? 0 : checked_mul(owned, runs.size());
      require(owned == layout.local_size(rank), text, "counts two ways");
    }
    require(layout.digest() == Layout::parse(canonical, shape).digest(), text, "has two digests");
    return true;
  } catch (const Error& error) {
    for (const char c : std::string(error.what()))
      require(c == '\n' || (c >= ' ' && c <= '~'), text, "has an unprintable error");
    return false;
  }
}

/// One fuzz input: a text, and the shape chosen by its first byte.
inline bool check_layout_input(const std::string& input) {
  static const std::vector<Index> shapes[] = {{},
                                              {0},
                                              {10},
                                              {INT64_MAX},
                                              {137, 150},
                                              {8192, 8192},
                                              {0, INT64_MAX},
                                              {-1},
                                              {4, 6, 8},
                                              {1 << 20, 1 << 20},
                                              {INT64_MAX, INT64_MAX},
                                              {2, 2, 2, 2, 2, 2, 2, 2}};
  if (input.empty()) return false;
  return check_layout_text(input.substr(1), shapes[static_cast<unsigned char>(input[0]) % std::size(shapes)]);
}

}  // namespace longshore::test
