#include "phases.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace longshore::bench {

namespace {

/// Ghost cells on one side of a box, the box grown in the dimensions that have been swept.
struct Side {
  Point direction, swept;
};

/// The sides of every phase; those that mirror each other along x come one after the other.
std::vector<std::vector<Side>> sides(const HaloProblem& problem, bool sweeps) {
  std::vector<std::vector<Side>> phases;
  if (!sweeps) {
    auto& all = phases.emplace_back();
    for (const Point& direction : directions(3, 1, problem.corners ? 3 : 1)) all.push_back({direction, Point(3)});
    std::stable_sort(all.begin(), all.end(), [](const Side& a, const Side& b) {
      const auto mirrored = [](const Side& side) {
        return std::tuple(side.direction[2], side.direction[1], side.direction[0] != 0);
      };
      return mirrored(a) < mirrored(b);
    });
    return phases;
  }
  Point swept(3);
  for (std::size_t d = 0; d < 3; ++d) {
    Point up(3);
    up[d] = 1;
    phases.push_back({{-up, swept}, {up, swept}});
    swept[d] = problem.width;
  }
  return phases;
}

class Builder {
 public:
  Builder(const HaloProblem& problem, Index rank, const HaloWay& way) : problem_(problem), rank_(rank), way_(way) {}

  HaloPhase build(const std::vector<Side>& sides) const {
    HaloPhase phase;
    std::map<std::pair<int, int>, std::vector<Entry>> sent, received;
    for (Index k = rank_ * problem_.rank_boxes(); k < (rank_ + 1) * problem_.rank_boxes(); ++k)
      for (std::size_t s = 0; s < sides.size(); ++s) {
        const Point at = problem_.place(k);
        const BlockMotion in = motion(at, sides[s]);
        const Index source_rank = in.source / problem_.rank_boxes();
        const int tag = way_.by_direction ? int(s) : 0;
        if (source_rank == rank_)
          phase.own.push_back({{k, in.destination_region}, {in.source, in.source_region}});
        else
          received[{int(source_rank), tag}].push_back({k, s, {k, in.destination_region}});
        // The box on the other side wants this one's cells for its own side.
        const BlockMotion out = motion(on_lattice(at - sides[s].direction), sides[s]);
        const Index destination_rank = out.destination / problem_.rank_boxes();
        if (destination_rank != rank_)
          sent[{int(destination_rank), tag}].push_back({out.destination, s, {k, out.source_region}});
      }
    phase.sends = messages(sent), phase.receives = messages(received);
    return phase;
  }

 private:
  /// A part and what both sides sort by.
  struct Entry {
    Index destination;
    std::size_t side;
    Part part;
  };

  Point on_lattice(Point at) const {
    const Point many = problem_.lattice();
    for (std::size_t d = 0; d < 3; ++d) at[d] = (at[d] + many[d]) % many[d];
    return at;
  }

  /// What one side of a box is filled from.
  BlockMotion motion(const Point& destination, const Side& side) const {
    const Region ghosts = problem_.box(destination).grow(side.swept).side(side.direction, Point(3, problem_.width));
    const Point beyond = destination + side.direction, source = on_lattice(beyond);
    const Point shift = problem_.box(source).lower() - problem_.box(beyond).lower();
    return {problem_.number(source), problem_.number(destination), ghosts.shift(shift), ghosts};
  }

  static std::vector<HaloMessage> messages(std::map<std::pair<int, int>, std::vector<Entry>>& entries) {
    std::vector<HaloMessage> result;
    for (auto& [key, parts] : entries) {
      std::sort(parts.begin(), parts.end(), [](const Entry& a, const Entry& b) {
        return std::tie(a.destination, a.side) < std::tie(b.destination, b.side);
      });
      auto& message = result.emplace_back(HaloMessage{key.first, key.second, {}, 0});
      for (Entry& entry : parts) {
        message.doubles += entry.part.region.size();
        message.parts.push_back(std::move(entry.part));
      }
    }
    return result;
  }

  const HaloProblem& problem_;
  Index rank_;
  HaloWay way_;
};

}  // namespace

std::vector<HaloPhase> halo_phases(const HaloProblem& problem, Index rank, const HaloWay& way) {
  std::vector<HaloPhase> phases;
  const Builder builder(problem, rank, way);
  for (const auto& phase : sides(problem, way.sweeps)) phases.push_back(builder.build(phase));
  return phases;
}

}  // namespace longshore::bench
