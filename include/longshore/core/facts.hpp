/// A value in words, one fact after the other: where two values differ, the facts say in what.
#pragma once

#include <string>
#include <vector>

namespace longshore {

/// "halo", "width 2". Facts of one name follow each other in an order that all values of a kind have in common.
struct Fact {
  std::string name, value;
};
using Facts = std::vector<Fact>;

/// How many entries of a list become facts.
inline constexpr long most_facts_of_a_list = 256;

}  // namespace longshore
