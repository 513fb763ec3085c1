#include "longshore/tune/copy_timing.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "longshore/core/checked.hpp"
#include "longshore/model/predict.hpp"
#include "movers/helpers.hpp"

namespace longshore {

// The model's numbers are the movers' own.
static_assert(threads_from_bytes == least_threaded_bytes);

namespace {

using Clock = std::chrono::steady_clock;
constexpr Index page = 4096;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// From one place in an array to the next.
Index step_of(Interval extent) { return std::max<Index>(ceil_div(extent.last, page), 1) * page; }

void check_fits(Interval extent, Index bytes, const char* side) {
  if (extent.first < 0 || extent.last > bytes)
    throw Error(ErrorKind::argument, std::string("the relation's ") + side + " bytes [" + std::to_string(extent.first) +
                                         ", " + std::to_string(extent.last) + ") lie beyond the timer's arrays of " +
                                         std::to_string(bytes) + " bytes");
}

}  // namespace

/// One thread's.
class CopyTimer::Arrays {
 public:
  explicit Arrays(Index bytes) : source_(pages(bytes)), destination_(pages(bytes)) {}
  void begin(Index places) { places_ = places, next_ = 0; }
  /// What the next run reads is written.
  void rewrite(const RelationProgram& program) {
    const Interval extent = program.source_extent();
    std::memset(source_.get() + next_ * step_of(extent), int(next_ & 127), std::size_t(extent.last));
  }
  void run(const RelationProgram& program, Index times) {
    const Index from = step_of(program.source_extent()), to = step_of(program.destination_extent());
    for (Index k = 0; k < times; ++k) {
      program.run(destination_.get() + next_ * to, source_.get() + next_ * from);
      next_ = next_ + 1 == places_ ? 0 : next_ + 1;
    }
  }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{page}); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  static Memory pages(Index bytes) {
    Memory memory(static_cast<std::byte*>(::operator new (std::size_t(bytes), std::align_val_t{page})));
    std::memset(memory.get(), 1, std::size_t(bytes));
    return memory;
  }

  Memory source_, destination_;
  Index places_ = 1, next_ = 0;
};

CopyTimer::CopyTimer(int threads, Index bytes) : threads_(threads), bytes_(bytes) {
  if (threads < 1 || bytes < 1)
    throw Error(ErrorKind::argument, "a timer of copies has one thread or more, and arrays of one byte or more");
  for (int k = 0; k < threads; ++k) arrays_.push_back(std::make_unique<Arrays>(bytes));
}

CopyTimer::~CopyTimer() = default;

std::vector<double> CopyTimer::time(const AddressRelation& relation, int at_once, const Options& options) {
  if (at_once < 1 || at_once > threads_)
    throw Error(ErrorKind::argument, std::to_string(at_once) + " threads at once; the timer has arrays for 1 to " +
                                         std::to_string(threads_));
  if (options.samples < 1) throw Error(ErrorKind::argument, "samples must be 1 or more");
  const RelationProgram program(relation, options.program);
  check_fits(program.source_extent(), bytes_, "source");
  check_fits(program.destination_extent(), bytes_, "destination");
  const bool another = options.writer == Writer::another;
  if (another && threads_ < 2)
    throw Error(ErrorKind::argument, "the timer has one thread; what another one writes needs two");
  const Index step = std::max(step_of(program.source_extent()), step_of(program.destination_extent()));
  const Index places = options.cold ? std::max<Index>(bytes_ / step, 1) : 1;

  // Each thread writes into a line of its own, which the first reads when all have met.
  struct alignas(64) Seconds {
    double value = 0;
  };
  const int team = another ? std::max(at_once, 2) : at_once;  // the last may write only
  const auto n = std::size_t(at_once);
  std::vector<Seconds> each(n);
  std::vector<double> samples;
  Index times = 1;
  bool more = true;
  std::barrier meet(team);
  auto serve = [&](int me) {
    Arrays& arrays = *arrays_[std::size_t(me)];
    arrays.begin(places);
    if (me < at_once) arrays.run(program, 1);
    meet.arrive_and_wait();
    const auto begin = Clock::now();
    while (more) {
      if (options.writer != Writer::nobody) {
        if (const int whose = another ? (me + 1) % team : me; whose < at_once)
          arrays_[std::size_t(whose)]->rewrite(program);
        meet.arrive_and_wait();
      }
      if (me < at_once) {
        const auto start = Clock::now();
        arrays.run(program, times);
        each[std::size_t(me)].value = since(start);
      }
      meet.arrive_and_wait();
      if (me == 0) {
        double longest = 0;
        for (const auto& one : each) longest = std::max(longest, one.value);
        // Until a sample is long enough to be timed it is as many runs again.
        if (options.writer == Writer::nobody && longest < options.sample_seconds)
          times = std::max(2 * times, Index(double(times) * options.sample_seconds / std::max(longest, 1e-9)));
        else
          samples.push_back(longest / double(times));
        more = samples.empty() || (int(samples.size()) < options.samples && since(begin) < options.seconds);
      }
      meet.arrive_and_wait();
    }
  };
  std::vector<std::jthread> others;
  try {
    for (int k = 1; k < team; ++k) others.emplace_back(serve, k);
  } catch (...) {  // those that there are wait for nobody else, and do one round
    more = false;
    for (int k = int(others.size()); k < team; ++k) meet.arrive_and_drop();
    throw;
  }
  serve(0);
  return samples;
}

}  // namespace longshore
