/// Machine profiles made by hand, for what is worked out from them.
#pragma once

#include "longshore/model/machine_profile.hpp"

namespace longshore::test {

using Rates = std::vector<std::pair<const char*, double>>;

inline CopyRates copies_at(const Rates& megabytes_per_second, CopySituation situation, Index word_bytes = 8,
                           CopyLoops loops = CopyLoops::rows) {
  std::vector<MeasuredTransfer> transfers;
  for (const auto& [text, rate] : megabytes_per_second)
    transfers.push_back({TransferExpression::parse(text).transfer(), rate});
  return {word_bytes, loops, situation, ThroughputTable("by hand", std::move(transfers))};
}

/// The same rates wherever data lie.
inline CopyRates copies_at(const Rates& megabytes_per_second) {
  return copies_at(megabytes_per_second, {CopyRates::beyond_caches, 1, false});
}

/// A start takes a microsecond, a transfer 100 ns, waking threads 5 us, a kernel's call 40 ns and a loop of it 3 ns.
inline MachineProfile profile_of(std::vector<CopyRates> copies, std::vector<ExchangeTimes> exchanges = {},
                                 bool coarse = false) {
  return MachineProfile("by hand", coarse, std::move(copies), std::move(exchanges), {1e-6, 1e-7, 5e-6, 4e-8, 3e-9});
}

}  // namespace longshore::test
