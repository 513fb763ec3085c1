/// model: what a loop over remote elements takes that gets them in strips, by LogGP and the recurrence of Iancu,
/// Husbands & Chen, "Message strip mining heuristics for high speed networks", section 3.
#pragma once

#include <vector>

#include "longshore/plans/strip_schedule.hpp"

namespace longshore {

/// What messages take between two ranks, in seconds and seconds a byte.
struct LogGP {
  double L = 0;    ///< latency: from the network interface of one to that of the other
  double o_s = 0;  ///< that the sender's processor spends on a message
  double o_r = 0;  ///< that the receiver's processor spends on a message
  double g = 0;    ///< gap: messages of one processor begin at least so far apart
  double G = 0;    ///< of each byte, at both network interfaces: 1 / bandwidth

  double o() const { return o_s + o_r; }
  bool operator==(const LogGP&) const = default;
};

/// What transfers that are under way at the same time do to each other.
enum class Link {
  independent,  ///< nothing: each takes G times its bytes, which is what the paper's equations say
  shared,       ///< they go one after the other, as through one network interface
};

/// A loop over remote elements, which does the same to each of them.
struct StripLoop {
  Index elements = 0;  ///< N
  Index element_bytes = 8;
  double compute = 0;  ///< K: seconds a byte that the loop computes
  double memory = 0;   ///< seconds a byte that it takes to load what has arrived; counted as computation
  Link link = Link::independent;
  bool rolling = false;  ///< a strip is issued before each one is worked on, instead of U before each U (figure 5)
};

/// Throw `Error(argument)` where a parameter is negative or not finite, and name it.
void check(const LogGP& loggp);
void check(const StripLoop& loop);

struct StripCost {
  Index strips = 0;
  double issuing = 0;    ///< of the sum of issue(S_i)
  double waiting = 0;    ///< of the sum of W(S_i)
  double computing = 0;  ///< K N, with what loading takes

  double communication() const { return issuing + waiting; }  ///< equation (2)
  double seconds() const { return issuing + waiting + computing; }
};

/// Equations (1) and (2), for any depth. A get of S bytes takes the processor o = o_s + o_r seconds to issue, more
/// where less than g has passed since the last one, and is complete 2 L + G S after that (the paper leaves the latency
/// of request and answer out). With m strips, C(S) = K S, and W(S_i) >= 0,
///
///   U = 1 (figure 4): strip i + 1 is issued, strip i is waited for and worked on:
///     W(S_i) = 2 L + G S_i - C(S_{i-1}) - W(S_{i-1}) - issue(S_{i+1})
///   U > 1 (figure 5): with a = 1, U + 1, 2 U + 1, ... strips a + 1 to a + U are issued, then a to a + U - 1 are waited
///   for and worked on, in turns. Between the issue of a strip and the wait for it there are
///     for i = a + p, 0 < p < U:  issue(S_{i+1}) + ... + issue(S_{a+U})  and  C(S_q) + W(S_q) of q = a to i - 1,
///     for i = a > 1:             issue(S_{a+1}) + ... + issue(S_{a+U})  and  C(S_q) + W(S_q) of q = a - U to a - 1,
///   and W(S_i) is 2 L + G S_i less that.
///   rolling: strip i + U is issued before strip i is waited for:
///     W(S_i) = 2 L + G S_i - (C + W)(S_{i-U}) - ... - (C + W)(S_{i-1}) - issue(S_{i+1}) - ... - issue(S_{i+U})
///
/// On a `shared` link, strip i begins to arrive when strip i - 1 has, if that is later than 2 L after its issue, and at
/// least g after it began. One transfer takes o + 2 L + G N (`vectorized`), elements one by one N times
/// EEL = o + 2 L + G w (`small`).
///
/// Takes as long as there are strips; fixed ones repeat themselves, and only what comes before that is gone through.
/// Throws `Error(argument)` for negative or infinite parameters.
StripCost strip_cost(const StripSchedule& schedule, const StripLoop& loop, const LogGP& loggp);

/// W(S_i) of the first strips, at most so many. Fixed strips let it swing between 0 and G S where K < G (section 3.1).
std::vector<double> strip_waits(const StripSchedule& schedule, const StripLoop& loop, const LogGP& loggp, Index most);

/// Bytes of the smallest strip that may be worth sending, max(o, g) / G (section 4.3).
double smallest_strip(const LogGP& loggp);

}  // namespace longshore
