#include "mpi/rank_split.hpp"

#include <algorithm>

#include "longshore/mpi/groups.hpp"
#include "mpi/agreement.hpp"

namespace longshore::mpi {

namespace {

/// What a member wants, and where it gets it.
struct Claim {
  Index colour, key;
};
struct Delivery {
  Index sender;  ///< the position of the member that sends the map; the kind of an error
  Index bytes;   ///< of the map; 0: in no part; negative: of the words of an error
  Index place;   ///< the member's position in the map
};

class Split {
 public:
  explicit Split(const Subgroup& group) : group_(group), n_(group.members.size()), below_(below(group.me, n_)) {}

  RankMap run(Index colour, Index key) {
    const auto claims = gather({colour, key});
    if (group_.me == 0) {
      if (const auto failure = attempt([&] { deal(claims); })) {
        words_ = failure->what();
        deliveries_.assign(std::size_t(n_), {Index(failure->kind()), -Index(words_.size()) - 1, 0});
      }
    }
    scatter();
    const auto mine = deliveries_.front();
    if (mine.bytes < 0) fail(mine);
    if (group_.me == 0)
      for (const auto& [first, bytes] : maps_)
        if (first != 0) group_.send(first, bytes.data(), Index(bytes.size()));
    if (mine.bytes == 0) return RankMap::of({}, n_);
    return take(mine);
  }

 private:
  template <class T>
  static Index bytes_of(Index n) {
    return checked_mul(n, Index(sizeof(T)));
  }

  /// The claims of this member's branch.
  std::vector<Claim> gather(Claim mine) const {
    std::vector<Claim> claims(std::size_t(branch(group_.me, n_)));
    claims[0] = mine;
    for (auto child = below_.rbegin(); child != below_.rend(); ++child)
      group_.receive(*child, &claims[std::size_t(*child - group_.me)], bytes_of<Claim>(branch(*child, n_)));
    if (group_.me > 0) group_.send(above(group_.me), claims.data(), bytes_of<Claim>(Index(claims.size())));
    return claims;
  }

  /// The maps, and for each member where its own comes from.
  void deal(const std::vector<Claim>& claims) {
    std::vector<Index> colours, keys;
    for (const auto& claim : claims) {
      if (claim.colour == no_number || claim.key == no_number)
        throw Error(ErrorKind::argument, "rank " + std::to_string(group_.members.select(Index(colours.size()))) +
                                             " gave a colour, a key or a context that is no number, or one too large");
      colours.push_back(claim.colour), keys.push_back(claim.key);
    }
    deliveries_.assign(claims.size(), {0, 0, 0});
    for (const auto& part : longshore::by_colour(RankMap::whole(n_), colours, keys)) {
      const auto members = part.members.to_vector();
      maps_.push_back({members[0], part.members.to_bytes()});
      const auto bytes = Index(maps_.back().bytes.size());
      for (Index k = 0; k < Index(members.size()); ++k) {
        const Index sender = k == 0 ? 0 : members[std::size_t(above(k))];
        deliveries_[std::size_t(members[std::size_t(k)])] = {sender, bytes, k};
      }
    }
  }

  void scatter() {
    deliveries_.resize(std::size_t(branch(group_.me, n_)));
    if (group_.me > 0)
      group_.receive(above(group_.me), deliveries_.data(), bytes_of<Delivery>(Index(deliveries_.size())));
    for (const Index child : below_)
      group_.send(child, &deliveries_[std::size_t(child - group_.me)], bytes_of<Delivery>(branch(child, n_)));
  }

  [[noreturn]] void fail(const Delivery& mine) {
    words_.resize(std::size_t(-mine.bytes - 1));
    if (group_.me > 0) group_.receive(above(group_.me), words_.data(), Index(words_.size()));
    for (const Index child : below_) group_.send(child, words_.data(), Index(words_.size()));
    throw Error(ErrorKind(mine.sender), words_);
  }

  /// The map, from the member above in it, and on to those below.
  RankMap take(const Delivery& mine) {
    std::vector<std::byte> bytes(std::size_t(mine.bytes));
    if (group_.me == 0 && mine.place == 0)
      bytes = std::find_if(maps_.begin(), maps_.end(), [](const Dealt& map) { return map.first == 0; })->bytes;
    else
      group_.receive(mine.sender, bytes.data(), mine.bytes);
    auto map = RankMap::from_bytes(bytes, n_);
    for (const Index child : below(mine.place, map.size())) group_.send(map.select(child), bytes.data(), mine.bytes);
    return map;
  }

  struct Dealt {
    Index first;  ///< the position of its first member
    std::vector<std::byte> bytes;
  };

  const Subgroup& group_;
  Index n_;
  std::vector<Index> below_;
  std::vector<Delivery> deliveries_;  ///< of this member's branch
  std::vector<Dealt> maps_;
  std::string words_;
};

}  // namespace

RankMap split_along(const Subgroup& group, Index colour, Index key) { return Split(group).run(colour, key); }

}  // namespace longshore::mpi
