// A plan in words: what ranks tell each other where they have been given different ones.
#include <algorithm>

#include "longshore/plans/block_plan.hpp"

namespace longshore {

namespace {

std::string counted(Index n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

/// "1" where it is the same in every dimension, else "(1, 2)".
std::string width_of(const Point& width) {
  const bool even = std::all_of(width.begin(), width.end(), [&](Index w) { return w == width[0]; });
  return even && width.dims() > 0 ? std::to_string(width[0]) : width.to_string();
}

void add_blocks(Facts& facts, const char* side, const FloorPlan& blocks, bool lists) {
  facts.push_back({std::string(side) + " blocks",
                   counted(blocks.size(), "block") + " of " + counted(Index(blocks.dims()), "dimension")});
  if (!lists) return;
  for (Index k = 0; k < std::min<Index>(blocks.size(), most_facts_of_a_list); ++k)
    facts.push_back({std::string(side) + " blocks", "block " + std::to_string(k) + " " + blocks.region(k).to_string() +
                                                        " on rank " + std::to_string(blocks.owner(k))});
}

}  // namespace

Facts BlockPlan::facts(bool lists) const {
  Facts facts;
  const char* const how = kind_ == Kind::halo      ? "a halo"
                          : kind_ == Kind::between ? "a copy between floor plans"
                                                   : "motions by hand";
  facts.push_back({"plan", std::string(how) + (reversed_ && kind_ != Kind::by_hand ? ", reversed" : "")});
  if (kind_ == Kind::halo) {
    const bool same = halo().below == halo().above;
    facts.push_back(
        {"halo", "width " + width_of(halo().below) + (same ? "" : " below, " + width_of(halo().above) + " above")});
    facts.push_back({"halo", halo().corners ? "corners" : "no corners"});
    for (const std::size_t d : swept()) facts.push_back({"halo", "swept along dimension " + std::to_string(d)});
  }
  if (kind_ != Kind::by_hand) {
    std::string periodic;
    for (std::size_t d = 0; d < halo().periodic.size(); ++d)
      if (halo().periodic[d]) periodic += (periodic.empty() ? "" : ", ") + std::to_string(d);
    facts.push_back({"periodic", periodic.empty() ? "no dimensions" : "dimensions " + periodic});
    facts.push_back({"domain", halo().domain.to_string()});
  }
  std::string permuted;
  for (const std::size_t axis : axes()) permuted += (permuted.empty() ? "" : ", ") + std::to_string(axis);
  facts.push_back({"axes", permuted.empty() ? "none" : permuted});
  add_blocks(facts, "source", source(), lists);
  add_blocks(facts, "destination", destination(), lists);
  facts.push_back({"motions by hand", std::to_string(everybodys_.motions)});
  if (lists && !rank_)  // else every rank has others
    for (std::size_t k = 0; k < std::min<std::size_t>(by_hand().size(), most_facts_of_a_list); ++k)
      facts.push_back({"motions by hand", "number " + std::to_string(k) + ", " +
                                              (reversed_ ? by_hand()[k].reverse() : by_hand()[k]).to_string()});
  return facts;
}

}  // namespace longshore
