#include "longshore/model/strips.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

namespace longshore {

namespace {

/// Fixed strips that are gone through in search of a round that repeats. What is not periodic by then changes so slowly
/// that its mean is as good.
constexpr Index most_strips = Index{1} << 20;

void check_parameter(const char* name, double value) {
  if (!(value >= 0 && std::isfinite(value)))
    throw Error(ErrorKind::argument,
                std::string(name) + " is " + std::to_string(value) + "; it must be finite and not negative");
}

/// Carries the loop out in time, round by round: strips are issued until U + 1 are under way, and then worked on. Times
/// are counted from the beginning of the round, so that rounds can be compared, and however many have passed, nothing
/// is lost of those that are added.
class StripPipeline {
 public:
  StripPipeline(const StripSchedule& schedule, const StripLoop& loop, const LogGP& loggp)
      : schedule_(schedule), loop_(loop), loggp_(loggp), left_(loop.elements), next_(schedule.strips(left_).begin()) {
    check(loggp);
    check(loop);
    now_.issue_end = -loggp.g;
  }

  StripCost run() {
    Index rounds = 0, next_kept = 1;
    bool repeats = schedule_.growth() == 0;  // as far as strips are of one size
    while (begin_round()) {
      if (repeats && rounds > 0 && (same_as_kept() || cost_.strips >= most_strips)) {
        skip();
        repeats = false;
      } else if (repeats && ++rounds == next_kept) {
        kept_ = now_, kept_cost_ = cost_, next_kept *= 2;
      }
      round();
    }
    return cost_;
  }
  std::vector<double> waits(Index most) {
    std::vector<double> waits;
    waits_ = &waits, most_waits_ = most;
    while (Index(waits.size()) < most && begin_round()) round();
    return waits;
  }

 private:
  struct Transfer {
    double arrives = 0, bytes = 0;
  };
  struct State {
    double time = 0;       ///< 0 where a round begins
    double issue_end = 0;  ///< of the last strip
    double link_free = 0;
    std::deque<Transfer> under_way;
  };

  /// What is past by now has no influence any more. False where nothing is left to be done.
  bool begin_round() {
    now_.issue_end = std::max(-loggp_.g, now_.issue_end - now_.time);
    now_.link_free = std::max(0.0, now_.link_free - now_.time);
    for (auto& one : now_.under_way) one.arrives = std::max(0.0, one.arrives - now_.time);
    now_.time = 0;
    return left_ > 0 || !now_.under_way.empty();
  }

  void round() {
    while (Index(now_.under_way.size()) <= schedule_.depth() && left_ > 0) issue();
    const Index strips = loop_.rolling ? 1 : std::max<Index>(schedule_.depth(), 1);
    for (Index k = 0; k < strips && !now_.under_way.empty(); ++k) work();
  }

  void issue() {
    const Index elements = (*next_).size();
    left_ -= elements, ++next_;
    const double bytes = double(elements) * double(loop_.element_bytes), end = now_.issue_end + loggp_.g;
    now_.issue_end = std::max(now_.time + loggp_.o(), end);
    cost_.issuing += now_.issue_end - now_.time;
    now_.time = now_.issue_end;
    double begins = now_.time + 2 * loggp_.L;
    if (loop_.link == Link::shared) {
      begins = std::max(begins, now_.link_free);
      now_.link_free = begins + std::max(loggp_.g, loggp_.G * bytes);
    }
    now_.under_way.push_back({begins + loggp_.G * bytes, bytes});
  }

  void work() {
    const auto strip = now_.under_way.front();
    now_.under_way.pop_front();
    const double wait = std::max(0.0, strip.arrives - now_.time);
    const double computing = (loop_.compute + loop_.memory) * strip.bytes;
    if (waits_ && Index(waits_->size()) < most_waits_) waits_->push_back(wait);
    cost_.waiting += wait, cost_.computing += computing, ++cost_.strips;
    now_.time += wait + computing;
  }

  bool same_as_kept() const {
    const auto& kept = kept_.under_way;
    if (kept.size() != now_.under_way.size()) return false;
    const double close = 1e-12 * (cost_.seconds() - kept_cost_.seconds());  // of what these rounds took
    auto same = [&](double a, double b) { return std::abs(a - b) <= close; };
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (!same(kept[i].arrives, now_.under_way[i].arrives) || kept[i].bytes != now_.under_way[i].bytes) return false;
    return same(kept_.issue_end, now_.issue_end) && same(kept_.link_free, now_.link_free);
  }

  /// The rounds since the kept one, as often as there are whole strips for them.
  void skip() {
    const Index strips = cost_.strips - kept_cost_.strips, n = left_ / schedule_.size() / strips;
    left_ -= n * strips * schedule_.size();
    next_ = schedule_.strips(left_).begin();
    cost_.strips += n * strips;
    cost_.issuing += double(n) * (cost_.issuing - kept_cost_.issuing);
    cost_.waiting += double(n) * (cost_.waiting - kept_cost_.waiting);
    cost_.computing += double(n) * (cost_.computing - kept_cost_.computing);
  }

  const StripSchedule& schedule_;
  const StripLoop& loop_;
  const LogGP& loggp_;
  Index left_;  ///< elements that are not issued yet
  Strips::Iterator next_;
  State now_, kept_;
  StripCost cost_, kept_cost_;
  std::vector<double>* waits_ = nullptr;
  Index most_waits_ = 0;
};

}  // namespace

void check(const LogGP& loggp) {
  for (const auto& [name, value] :
       {std::pair{"L", loggp.L}, {"o_s", loggp.o_s}, {"o_r", loggp.o_r}, {"g", loggp.g}, {"G", loggp.G}})
    check_parameter(name, value);
}

void check(const StripLoop& loop) {
  check_parameter("the time to compute a byte", loop.compute);
  check_parameter("the time to load a byte", loop.memory);
  if (loop.element_bytes < 1)
    throw Error(ErrorKind::argument, "elements of " + std::to_string(loop.element_bytes) + " bytes");
}

StripCost strip_cost(const StripSchedule& schedule, const StripLoop& loop, const LogGP& loggp) {
  return StripPipeline(schedule, loop, loggp).run();
}

std::vector<double> strip_waits(const StripSchedule& schedule, const StripLoop& loop, const LogGP& loggp, Index most) {
  return StripPipeline(schedule, loop, loggp).waits(most);
}

double smallest_strip(const LogGP& loggp) {
  check(loggp);
  return std::max(loggp.o(), loggp.g) / loggp.G;
}

}  // namespace longshore
