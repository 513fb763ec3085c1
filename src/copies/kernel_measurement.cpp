#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <thread>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "longshore/copies/joint_copy.hpp"

namespace longshore {

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr Index sample_bytes = Index{2} << 20, sample_span = 2 * sample_bytes;
constexpr std::size_t least_rounds = 3, most_rounds = 41;
constexpr Index array_bytes = Index{64} << 20;  ///< beyond the third-level cache, which misleads
constexpr double clearly = 0.97;                ///< what is no faster than that is not worth another profile

using Run = std::function<void(std::byte*, const std::byte*)>;

/// One kind of copy, and the profiles that are tried with it. A sample writes `sample_bytes`, and stays within
/// `sample_span` on either side.
struct Kind {
  const char* name;
  std::vector<KernelProfile> candidates;  ///< the first one stays where none is clearly better
  std::function<Run(const KernelTable&)> compile;
};

Run copy(LoopNest nest, const KernelTable& table) {
  auto program = std::make_shared<const CopyProgram>(nest, CopyProgram::Options{Stores::streaming, &table, {}});
  return [program](std::byte* d, const std::byte* s) { program->run(d, s); };
}

/// Rows of `elements` of 8 bytes, `pitch` bytes from one to the next.
LoopNest rows(Index elements, Index pitch) {
  return {8, {{PairedRuns::run(sample_bytes / (8 * elements)), pitch, pitch}, {PairedRuns::run(elements), 8, 8}}};
}

/// Rows of 32 KiB put together from two sources, which take turns with runs of so many elements of 8 bytes.
Run join(Index first, Index second, const KernelTable& table) {
  constexpr Index row_bytes = 32 << 10;
  const Index period = first + second, repeats = row_bytes / 8 / period, row_count = sample_bytes / row_bytes;
  const auto member = [&](Index length, Index at) {
    const PairedRun run{at, 0, at, length, repeats, period, length, period};
    return LoopNest(8, {{PairedRuns::run(row_count), row_bytes, row_bytes},
                        {PairedRuns(std::vector<PairedPeriod>{{{run}, 1, 0, 0, 0}}), 8, 8}});
  };
  auto program = std::make_shared<const JointCopy>(std::vector<LoopNest>{member(first, 0), member(second, first)},
                                                   JointCopy::Shared::destination,
                                                   CopyProgram::Options{Stores::streaming, &table, {}});
  return [program](std::byte* d, const std::byte* s) {
    auto* const source = const_cast<std::byte*>(s);  // of the members, which are only read
    program->run(d, {source, source + sample_bytes});
  };
}

/// `now` and others, which differ in some numbers.
template <class... Changes>
std::vector<KernelProfile> candidates(const KernelProfile& now, const Changes&... changes) {
  std::vector<KernelProfile> all{now};
  const auto add = [&](const auto& change) {
    KernelProfile other = now;
    change(other);
    if (std::find(all.begin(), all.end(), other) == all.end()) all.push_back(other);
  };
  (add(changes), ...);
  return all;
}

using Kinds = std::vector<std::function<Kind(const KernelProfile&)>>;

Kinds kinds(const KernelTable& table) {
  using Profile = KernelProfile;
  constexpr Index long_run = Index{1} << 20, long_row = Index{16} << 10;
  Kinds all{[](const Profile& now) -> Kind {
              return {"one long run",
                      candidates(
                          now, [](Profile& p) { p.paged_bytes = p.string_bytes = Profile::never; },
                          [](Profile& p) { p.paged_bytes = long_run, p.string_bytes = Profile::never; },
                          [](Profile& p) { p.paged_bytes = Profile::never, p.string_bytes = long_run; }),
                      [](const KernelTable& t) { return copy(rows(sample_bytes / 8, 0), t); }};
            },
            [](const Profile& now) -> Kind {
              const auto how = [](Index rows, Index burst, Index stagger) {
                return [=](Profile& p) { p.rows = rows, p.burst_bytes = burst, p.stagger_bytes = stagger; };
              };
              return {"long rows",
                      candidates(now, how(4, 256, 1024), how(4, 64, 1024), how(4, 1024, 1024), how(4, 256, 0),
                                 how(2, 256, 1024), how(1, 256, 0), [](Profile& p) { p.string_bytes = long_row; }),
                      [](const KernelTable& t) { return copy(rows(4096, Index{64} << 10), t); }};
            },
            [](const Profile& now) -> Kind {
              return {"rows put together from two sources",
                      candidates(
                          now, [](Profile& p) { p.merged_rows = 4; }, [](Profile& p) { p.merged_rows = 1; }),
                      [](const KernelTable& t) -> Run {
                        return [a = join(1, 1, t), b = join(32, 32, t)](std::byte* d, const std::byte* s) {
                          a(d, s), b(d, s);
                        };
                      }};
            }};
  if (table.expands)
    all.push_back([](const Profile& now) -> Kind {
      return {"rows put together from short runs",
              candidates(
                  now, [](Profile& p) { p.expands = true; }, [](Profile& p) { p.expands = false; }),
              [](const KernelTable& t) { return join(3, 2, t); }};
    });
  return all;
}

/// A thread's arrays, in which samples lie one after the other: no cache holds much of them.
class Arrays {
 public:
  Arrays() : source_(pages()), destination_(pages()) {}
  /// By the thread that they are of.
  void touch() {
    for (Index at = 0; at < array_bytes; at += 4096) source_.get()[at] = destination_.get()[at] = std::byte{1};
  }
  void run(const Run& sample) {
    sample(destination_.get() + at_, source_.get() + at_);
    at_ = (at_ + sample_span) % array_bytes;
  }

 private:
  static constexpr Index huge_page = Index{2} << 20;
  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{huge_page}); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  static Memory pages() {
    Memory memory(static_cast<std::byte*>(::operator new (std::size_t(array_bytes), std::align_val_t{huge_page})));
#ifdef __linux__
    madvise(memory.get(), std::size_t(array_bytes), MADV_HUGEPAGE);
#endif
    return memory;
  }

  Index at_ = 0;
  Memory source_, destination_;
};

/// Threads that copy at the same time, of which the caller is one.
class Team {
 public:
  explicit Team(int threads) : meet_(threads), seconds_(std::size_t(threads)) {
    for (int k = 0; k < threads; ++k) arrays_.push_back(std::make_unique<Arrays>());
    try {
      for (std::size_t k = 1; k < arrays_.size(); ++k) others_.emplace_back([this, k] { serve(k); });
    } catch (...) {  // those that there are go home
      const auto missing = threads - std::ptrdiff_t(others_.size());
      meet_.wait(meet_.arrive(missing));
      (void)meet_.arrive(missing);
      throw;
    }
    arrays_[0]->touch();
    meet_.arrive_and_wait();
  }
  ~Team() {
    sample_ = nullptr;
    if (!others_.empty()) meet_.arrive_and_wait();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Seconds of whoever takes longest.
  double time(const Run& sample) {
    sample_ = &sample;
    copy(0);
    meet_.arrive_and_wait();
    return *std::max_element(seconds_.begin(), seconds_.end());
  }

 private:
  void serve(std::size_t k) {
    arrays_[k]->touch();
    meet_.arrive_and_wait();
    while (copy(k)) meet_.arrive_and_wait();
  }
  bool copy(std::size_t k) {
    meet_.arrive_and_wait();
    if (sample_ == nullptr) return false;
    const auto begin = Clock::now();
    arrays_[k]->run(*sample_);
    seconds_[k] = since(begin);
    return true;
  }

  std::barrier<> meet_;
  std::vector<double> seconds_;
  const Run* sample_ = nullptr;
  std::vector<std::unique_ptr<Arrays>> arrays_;
  std::vector<std::jthread> others_;
};

/// Tries a kind's candidates by turns until the deadline, each of them a few times at least.
std::vector<KernelTrial> tried(const Kind& kind, const KernelTable& table, Team& team, Clock::time_point deadline) {
  const std::size_t n = kind.candidates.size();
  std::vector<KernelTable> tables(n, table);
  std::vector<Run> runs;
  for (std::size_t k = 0; k < n; ++k) {
    tables[k].profile = kind.candidates[k];
    runs.push_back(kind.compile(tables[k]));
  }
  std::vector<std::vector<double>> samples(n);
  for (std::size_t round = 0; round < least_rounds || (round < most_rounds && Clock::now() < deadline); ++round)
    for (std::size_t k = 0; k < n; ++k) samples[k].push_back(team.time(runs[k]));
  std::vector<KernelTrial> trials;
  std::size_t best = 0;
  for (std::size_t k = 0; k < n; ++k) {
    auto& s = samples[k];
    std::sort(s.begin(), s.end());
    trials.push_back({kind.name, kind.candidates[k], s[s.size() / 2], s[s.size() / 4], s[s.size() - 1 - s.size() / 4]});
    if (trials[k].seconds < trials[best].seconds) best = k;
  }
  if (trials[best].seconds > clearly * trials[0].seconds) best = 0;
  trials[best].chosen = true;
  return trials;
}

}  // namespace

KernelMeasurement measure_kernels(const KernelTable& table, int threads, double seconds) {
  if (threads < 1) throw Error(ErrorKind::argument, std::to_string(threads) + " threads; it takes 1 or more");
  const auto begin = Clock::now();
  KernelMeasurement found{table.profile, {}};
  Team team(threads);
  const auto all = kinds(table);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::chrono::duration<double> left{std::max(0.0, seconds - since(begin)) / double(all.size() - k)};
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
    for (auto& trial : tried(all[k](found.profile), table, team, deadline)) {
      if (trial.chosen) found.profile = trial.profile;
      found.trials.push_back(std::move(trial));
    }
  }
  return found;
}

}  // namespace longshore
