#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <thread>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "copies/kernel_probe.hpp"
#include "copies/kernels/tables.hpp"
#include "longshore/copies/joint_copy.hpp"

namespace longshore {

namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr Index sample_bytes = Index{2} << 20, sample_span = 2 * sample_bytes;
constexpr std::size_t least_rounds = 3, most_rounds = 41, most_rounds_of_probe = 9;
constexpr double clearly = 0.92;  ///< what is no faster than that may be slower where arrays lie elsewhere
/// The same of arrays of one place each: which of two is best there depends by a tenth on where that happens to be.
constexpr double clearly_in_one_place = 0.85;

using Run = std::function<void(std::byte*, const std::byte*)>;

/// What a sample touches of either array, and how far from there the next one lies. Samples in one place come in a
/// loop: before each of them its source is written, and what the last one brought is read.
struct Extent {
  Index bytes, step;
  bool in_one_place() const { return step == 0; }
};

/// One kind of copy, and the profiles that are tried with it.
struct Kind {
  std::string name;
  std::vector<KernelProfile> candidates;  ///< the first one stays where none is clearly better
  std::function<Run(const KernelTable&)> compile;
  Extent extent{sample_span, sample_span};
};

Run copy(LoopNest nest, const KernelTable& table, Stores stores = Stores::streaming) {
  auto program = std::make_shared<const CopyProgram>(nest, CopyProgram::Options{stores, &table, {}});
  return [program](std::byte* d, const std::byte* s) { program->run(d, s); };
}

/// Rows of `elements` of 8 bytes, `pitch` bytes from one to the next.
LoopNest rows(Index elements, Index pitch) {
  return {8, {{PairedRuns::run(sample_bytes / (8 * elements)), pitch, pitch}, {PairedRuns::run(elements), 8, 8}}};
}

/// Squares are this high, and their rows as far apart as those of a large matrix: which way is best depends on that.
constexpr Index square_bytes = Index{8} << 10, square_pitch = Index{64} << 10;

/// A square of elements of so many bytes turned.
LoopNest turned(Index element) {
  const PairedRuns side = PairedRuns::run(square_bytes / element);
  return {element, {{side, element, square_pitch}, {side, square_pitch, element}}};
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
  [[maybe_unused]] const auto add = [&](const auto& change) {
    KernelProfile other = now;
    change(other);
    if (std::find(all.begin(), all.end(), other) == all.end()) all.push_back(other);
  };
  (add(changes), ...);
  return all;
}

using Kinds = std::vector<std::function<Kind(const KernelProfile&)>>;

/// A move of so many bytes, all threads together, that comes again and again between the same arrays: whether ordinary
/// stores are better for it, too, or at most for moves of `fewer` bytes.
Kind again(const KernelProfile& now, Index bytes, Index fewer, int threads) {
  const Index mine = std::max(bytes / threads / 64, Index{1}) * 64;
  const auto cached = [](Index most) { return [=](KernelProfile& p) { p.cached_bytes = most; }; };
  return {"moves of " + std::to_string(bytes >> 20) + " MiB in a loop",
          now.cached_bytes < fewer ? candidates(now) : candidates(now, cached(bytes), cached(fewer)),
          [=](const KernelTable& t) {
            return copy(LoopNest(8, {{PairedRuns::run(mine / 8), 8, 8}}), t, far_stores(bytes, t.profile));
          },
          {mine, 0}};
}

/// Of the copies; a probe has no time but for those that differ most from CPU to CPU.
Kinds kinds(const KernelTable& table, int threads, bool all_of_them) {
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
                          now, [](Profile& p) { p.merged_rows = 4, p.merged_bytes = 64; },
                          [](Profile& p) { p.merged_rows = 4, p.merged_bytes = 512; },
                          [](Profile& p) { p.merged_rows = 1, p.merged_bytes = 64; }),
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
  if (!all_of_them) return all;
  all.push_back([](const Profile& now) -> Kind {
    const auto ahead = [](Index bytes) { return [=](Profile& p) { p.ahead_bytes = bytes; }; };
    return {"long runs read ahead", candidates(now, ahead(1024), ahead(0), ahead(512), ahead(2048)),
            [](const KernelTable& t) { return copy(rows(sample_bytes / 8, 0), t); }};
  });
  constexpr Extent square{square_bytes / 8 * square_pitch - square_pitch + square_bytes, square_bytes};
  all.push_back([square](const Profile& now) -> Kind {
    const auto wide = [](Index lines) {
      return [=](Profile& p) { p.tile_lines = lines, p.tiled_from = Profile::never; };
    };
    return {"transposes", candidates(now, wide(32), wide(8), wide(16), wide(64), [](Profile& p) { p.tiled_from = 1; }),
            [](const KernelTable& t) { return copy(turned(8), t); }, square};
  });
  all.push_back([square](const Profile& now) -> Kind {
    return {"transposes of large elements",
            candidates(now, [](Profile& p) { p.tiled_from = p.tiled_from <= 8 ? p.tiled_from : 16; }),
            [](const KernelTable& t) { return copy(turned(16), t); }, square};
  });
  Index fewer = 0;
  for (const Index bytes : {Index{8} << 20, Index{12} << 20, Index{16} << 20, Index{24} << 20, Index{32} << 20}) {
    all.push_back([=](const Profile& now) { return again(now, bytes, fewer, threads); });
    fewer = bytes;
  }
  return all;
}

/// How big arrays are, and how samples come to find them in no cache.
struct Places {
  Index bytes;
  bool flushed;
};
/// Samples lie one after the other in arrays beyond the third-level cache, which misleads where it holds much of them.
constexpr Places many_places{Index{64} << 20, false};
/// All samples have one place. Streaming stores leave nothing of a destination in caches.
constexpr Places one_place{sample_span, true};

/// A thread's arrays.
class Arrays {
 public:
  explicit Arrays(Places places) : places_(places), source_(pages()), destination_(pages()) {}
  /// By the thread that they are of; no more of them where `goes_on` says no.
  template <class GoesOn>
  void touch(const GoesOn& goes_on) {
    for (Index at = 0; at < places_.bytes; at += 4096) {
      if (at % (Index{1} << 19) == 0 && !goes_on()) return;
      source_.get()[at] = destination_.get()[at] = std::byte{1};
    }
  }
  void prepare(const Extent& extent) {
    if (extent.in_one_place()) {
      at_ = 0;
      std::memset(static_cast<void*>(source_.get()), ++writes_, std::size_t(extent.bytes));
      read_ = std::accumulate(destination_.get(), destination_.get() + extent.bytes, std::byte{},
                              [](std::byte a, std::byte b) { return a ^ b; });
      return;
    }
    if (at_ + extent.bytes > places_.bytes) {
      at_ = 0;
      // Programs move what somebody has just written.
      if (!places_.flushed) std::memset(static_cast<void*>(source_.get()), ++writes_, std::size_t(places_.bytes));
    }
    if (!places_.flushed) return;
    put_out_of_caches(source_.get() + at_, extent.bytes);
    put_out_of_caches(destination_.get() + at_, extent.bytes);
  }
  void run(const Run& sample, const Extent& extent) {
    sample(destination_.get() + at_, source_.get() + at_);
    at_ += extent.step;
  }

 private:
  static constexpr Index huge_page = Index{2} << 20;
  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{huge_page}); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  Memory pages() const {
    const auto bytes = std::size_t(places_.bytes);
    Memory memory(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{huge_page})));
#ifdef __linux__
    madvise(memory.get(), bytes, MADV_HUGEPAGE);
#endif
    return memory;
  }

  Places places_;
  Index at_ = 0;
  int writes_ = 0;
  volatile std::byte read_{};
  Memory source_, destination_;
};

/// Threads that copy at the same time, of which the caller is one.
class Team {
 public:
  Team(int threads, Places places, Watch& watch) : meet_(threads), watch_(watch), seconds_(std::size_t(threads)) {
    for (int k = 0; k < threads; ++k) arrays_.push_back(std::make_unique<Arrays>(places));
    try {
      for (std::size_t k = 1; k < arrays_.size(); ++k) others_.emplace_back([this, k] { serve(k); });
    } catch (...) {  // those that there are go home
      const auto missing = threads - std::ptrdiff_t(others_.size());
      meet_.wait(meet_.arrive(missing));
      (void)meet_.arrive(missing);
      throw;
    }
    arrays_[0]->touch([&] { return watch_.fits(); });
    meet_.arrive_and_wait();
  }
  ~Team() {
    sample_ = nullptr;
    if (!others_.empty()) meet_.arrive_and_wait();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Seconds of whoever takes longest.
  double time(const Run& sample, const Extent& extent) {
    sample_ = &sample, extent_ = extent;
    const double begin = watch_.now();
    copy(0);
    meet_.arrive_and_wait();
    watch_.longest = std::max(watch_.longest, watch_.now() - begin);
    return *std::max_element(seconds_.begin(), seconds_.end());
  }

 private:
  void serve(std::size_t k) {
    arrays_[k]->touch([] { return true; });
    meet_.arrive_and_wait();
    while (copy(k)) meet_.arrive_and_wait();
  }
  bool copy(std::size_t k) {
    meet_.arrive_and_wait();
    if (sample_ == nullptr) return false;
    arrays_[k]->prepare(extent_);
    const double begin = watch_.now();
    arrays_[k]->run(*sample_, extent_);
    seconds_[k] = watch_.now() - begin;
    return true;
  }

  std::barrier<> meet_;
  Watch& watch_;
  std::vector<double> seconds_;
  const Run* sample_ = nullptr;
  Extent extent_{};
  std::vector<std::unique_ptr<Arrays>> arrays_;
  std::vector<std::jthread> others_;
};

/// Tries a kind's candidates by turns until it is time for others, each of them a few times at least, else none is
/// told. A `steady` one is also faster round by round, for a few samples by themselves say little.
std::vector<KernelTrial> tried(const Kind& kind, const KernelTable& table, Team& team, Watch& watch, double until,
                               bool steady) {
  const std::size_t n = kind.candidates.size();
  std::vector<KernelTable> tables(n, table);
  std::vector<Run> runs;
  for (std::size_t k = 0; k < n; ++k) {
    tables[k].profile = kind.candidates[k];
    runs.push_back(kind.compile(tables[k]));
  }
  std::vector<std::vector<double>> samples(n);
  const std::size_t most = steady ? most_rounds_of_probe : most_rounds;
  for (std::size_t round = 0; watch.fits() && (round < least_rounds || (round < most && watch.now() < until)); ++round)
    for (std::size_t k = 0; k < n && watch.fits(); ++k) samples[k].push_back(team.time(runs[k], kind.extent));
  if (samples[n - 1].size() < least_rounds) return {};
  std::vector<KernelTrial> trials;
  std::size_t best = 0;
  const auto first = samples[0];
  for (std::size_t k = 0; k < n; ++k) {
    const bool may_be_best = !steady || steadily_faster(samples[k], first, clearly_in_one_place);
    auto& s = samples[k];
    std::sort(s.begin(), s.end());
    trials.push_back({kind.name, kind.candidates[k], s[s.size() / 2], s[s.size() / 4], s[s.size() - 1 - s.size() / 4]});
    if (may_be_best && trials[k].seconds < trials[best].seconds) best = k;
  }
  if (trials[best].seconds > clearly * trials[0].seconds) best = 0;
  trials[best].chosen = true;
  return trials;
}

/// All kinds, of which each has an equal share of what time is left.
KernelProbe carry_out(const KernelTable& table, int threads, Places places, double seconds, Watch& watch, bool steady) {
  const double begin = watch.now();
  KernelProbe done{{table.profile, {}}, {}, 0};
  Team team(threads, places, watch);
  const auto all = kinds(table, threads, !steady);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const double now = watch.now(), left = std::max(0.0, begin + seconds - now) / double(all.size() - k);
    const Kind kind = all[k](done.found.profile);
    auto trials = tried(kind, table, team, watch, now + left, steady);
    if (trials.empty()) done.untried.push_back(kind.name);
    for (auto& trial : trials) {
      if (trial.chosen) done.found.profile = trial.profile;
      done.found.trials.push_back(std::move(trial));
    }
  }
  done.seconds = watch.now() - begin;
  return done;
}

}  // namespace

bool steadily_faster(const std::vector<double>& one, const std::vector<double>& other, double clearly_below) {
  const std::size_t rounds = std::min(one.size(), other.size());
  std::size_t won = 0;
  for (std::size_t k = 0; k < rounds; ++k) won += one[k] < clearly_below * other[k];
  return 4 * won >= 3 * rounds && rounds >= least_rounds;
}

KernelMeasurement measure_kernels(const KernelTable& table, int threads, double seconds) {
  if (threads < 1) throw Error(ErrorKind::argument, std::to_string(threads) + " threads; it takes 1 or more");
  Watch watch{steady_seconds, std::numeric_limits<double>::infinity()};
  return carry_out(table, threads, many_places, seconds, watch, false).found;
}

KernelProbe probe_kernels(const KernelTable& table, double seconds, const std::function<double()>& now) {
  Watch watch{now ? now : steady_seconds, 0};
  watch.end = watch.now() + seconds;
  return carry_out(table, 1, one_place, seconds, watch, true);
}

}  // namespace longshore
