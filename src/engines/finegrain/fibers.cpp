#include "engines/finegrain/fibers.hpp"

#include "longshore/core/checked.hpp"
#include "longshore/engines/finegrain.hpp"

#ifdef LONGSHORE_WITH_FINEGRAIN

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <utility>
#include <vector>

#ifdef __has_feature
#define LONGSHORE_HAS_FEATURE(feature) __has_feature(feature)
#else
#define LONGSHORE_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || LONGSHORE_HAS_FEATURE(address_sanitizer)
#define LONGSHORE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || LONGSHORE_HAS_FEATURE(thread_sanitizer)
#define LONGSHORE_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace longshore::finegrain {

namespace {

/// The kernel's word for guards that take no mapping of their own (Linux 6.13).
constexpr int guard_install = 102;
/// Where it has none, guards are mappings, of which a process may have some 65,000.
constexpr std::size_t most_guard_mappings = 16384;
/// What lies below every stack, guarded or nobody's: more than
/// any frame, lest one steps over it. Addresses cost nothing.
constexpr std::size_t guard_bytes = 64 << 10;
/// What lies next to a stack's end stays zero, if nothing guards it.
constexpr std::size_t canary_words = 64;
/// Around the end of a suspended stack: what its next turn begins with.
constexpr std::ptrdiff_t hot_bytes = 512, line_bytes = 64;

/// What the C++ runtime knows of the exceptions of a thread (Itanium C++ ABI, 2.2.2).
struct Exceptions {
  void* caught = nullptr;
  unsigned int uncaught = 0;

  static Exceptions& current() { return *reinterpret_cast<Exceptions*>(abi::__cxa_get_globals()); }
};

struct Stack {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
};

/// Tells the sanitizers, and the C++ runtime, of a switch from the stack where it lives to another and back.
class Leave {
 public:
  explicit Leave(const Stack& to) : exceptions_(Exceptions::current()) {
#ifdef LONGSHORE_ASAN
    __sanitizer_start_switch_fiber(&fake_stack_, to.base, to.bytes);
#endif
    (void)to;
  }
  ~Leave() {
#ifdef LONGSHORE_ASAN
    __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
    Exceptions::current() = exceptions_;
  }
  Leave(const Leave&) = delete;

 private:
  Exceptions exceptions_;
#ifdef LONGSHORE_ASAN
  void* fake_stack_ = nullptr;
#endif
};

/// A stack as Boost takes and gives it back.
struct Lease {
  Stack stack;

  boost::context::stack_context allocate() const {
    boost::context::stack_context context;
    context.sp = stack.base + stack.bytes;
    context.size = stack.bytes;
    return context;
  }
  void deallocate(boost::context::stack_context&) const noexcept {
#ifdef LONGSHORE_ASAN
    __asan_unpoison_memory_region(stack.base, stack.bytes);  // frames that were left for good
#endif
  }
};

}  // namespace

struct Fibers::State {
  std::function<void()> body;
  std::size_t stack_bytes = 0, mapped_bytes = 0;
  std::byte* mapping = nullptr;
  bool guards = true;
  Slot guarded = 0;                             ///< so many stacks are guarded
  std::vector<boost::context::fiber> contexts;  ///< where each stack goes on
  std::vector<const std::byte*> tops;           ///< about where each stack ended when it was suspended
  std::vector<Slot> free;
  Slot running = 0;
  boost::context::fiber outside;  ///< where the one who called resume() goes on
  Stack outside_stack;
#ifdef LONGSHORE_TSAN
  std::vector<void*> fibers;
  void* outside_fiber = nullptr;
#endif

  Stack stack(Slot slot) const { return {mapping + slot * (guard_bytes + stack_bytes) + guard_bytes, stack_bytes}; }

  /// Protects what lies below a stack.
  void guard(Slot slot) {
    std::byte* const below = stack(slot).base - guard_bytes;
    if (guards && guarded == slot &&
        (madvise(below, guard_bytes, guard_install) == 0 ||
         (slot < most_guard_mappings && mprotect(below, guard_bytes, PROT_NONE) == 0)))
      ++guarded;
  }

  boost::context::fiber run(boost::context::fiber&& caller) {
#ifdef LONGSHORE_ASAN
    const void* base = nullptr;
    __sanitizer_finish_switch_fiber(nullptr, &base, &outside_stack.bytes);
    outside_stack.base = static_cast<std::byte*>(const_cast<void*>(base));
#endif
    Exceptions::current() = {};
    outside = std::move(caller);
    body();
    to_outside();
#ifdef LONGSHORE_ASAN
    __sanitizer_start_switch_fiber(nullptr, outside_stack.base, outside_stack.bytes);
#endif
    return std::move(outside);
  }
  void to_outside() {
#ifdef LONGSHORE_TSAN
    __tsan_switch_to_fiber(outside_fiber, 0);
#endif
  }
  void to_fiber([[maybe_unused]] Slot slot) {
#ifdef LONGSHORE_TSAN
    outside_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fibers[slot], 0);
#endif
  }
};

bool available() { return true; }

Fibers::Fibers(std::size_t most, std::size_t stack_bytes, std::function<void()> body, bool guards)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.body = std::move(body);
  s.guards = guards;
  const Index page_bytes = sysconf(_SC_PAGESIZE);
  s.stack_bytes = std::size_t(ceil_div(Index(stack_bytes), page_bytes) * page_bytes);
  s.mapped_bytes = std::size_t(checked_mul(Index(most), Index(guard_bytes + s.stack_bytes)));
  if (s.mapped_bytes == 0) return;
  void* const mapping =
      mmap(nullptr, s.mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    throw Error(ErrorKind::memory_limit, "there are no addresses for " + std::to_string(most) + " stacks of " +
                                             std::to_string(s.stack_bytes) + " bytes; give ranks smaller ones");
  s.mapping = static_cast<std::byte*>(mapping);
  s.contexts.reserve(most), s.tops.reserve(most), s.free.reserve(most);
  madvise(mapping, s.mapped_bytes,
          MADV_NOHUGEPAGE);  // a huge page would be memory for dozens of stacks of which little is used
}

Fibers::~Fibers() {
  state_->contexts.clear();  // lie on the stacks
  if (state_->mapping) munmap(state_->mapping, state_->mapped_bytes);
}

Fibers::Slot Fibers::add() {
  State& s = *state_;
  Slot slot = Slot(s.contexts.size());
  if (s.free.empty()) {
    s.contexts.emplace_back();
    s.tops.emplace_back();
    s.guard(slot);
#ifdef LONGSHORE_TSAN
    s.fibers.push_back(nullptr);
#endif
  } else {
    slot = s.free.back();
    s.free.pop_back();
  }
#ifdef LONGSHORE_TSAN
  s.fibers[slot] = __tsan_create_fiber(0);
#endif
  s.to_fiber(slot);  // Boost looks into the new stack already
  s.contexts[slot] = boost::context::fiber(std::allocator_arg, Lease{s.stack(slot)},
                                           [&s](boost::context::fiber&& caller) { return s.run(std::move(caller)); });
  s.to_outside();
  return slot;
}

bool Fibers::resume(Slot slot) {
  State& s = *state_;
  auto& context = s.contexts[slot];
  {
    const Leave leave(s.stack(slot));
    s.to_fiber(slot);
    s.running = slot;
    context = std::move(context).resume();
  }
  if (context) return true;
#ifdef LONGSHORE_TSAN
  __tsan_destroy_fiber(s.fibers[slot]);
#endif
  s.free.push_back(slot);
  return false;
}

void Fibers::suspend() {
  State& s = *state_;
  const Leave leave(s.outside_stack);
  s.tops[s.running] = reinterpret_cast<const std::byte*>(&leave);
  s.to_outside();
  s.outside = std::move(s.outside).resume();
}

void Fibers::prefetch(Slot slot) const {
  for (std::ptrdiff_t k = -hot_bytes / 4; k < hot_bytes; k += line_bytes) __builtin_prefetch(state_->tops[slot] + k, 1);
}

bool Fibers::intact(Slot slot) const {
  if (slot < state_->guarded) return true;
  const auto* const end = reinterpret_cast<const std::uint64_t*>(state_->stack(slot).base);
  return std::all_of(end - canary_words, end, [](std::uint64_t word) { return word == 0; });
}

std::size_t Fibers::stacks() const { return state_->contexts.size(); }

}  // namespace longshore::finegrain

#else

namespace longshore::finegrain {

struct Fibers::State {};

bool available() { return false; }

Fibers::Fibers(std::size_t, std::size_t, std::function<void()>, bool) {
  throw Error(ErrorKind::argument,
              "this build of Longshore has no finegrain engine: it was made without Boost.Context (Debian: "
              "libboost-context-dev)");
}
Fibers::~Fibers() = default;
Fibers::Slot Fibers::add() { return 0; }
bool Fibers::resume(Slot) { return false; }
void Fibers::suspend() {}
void Fibers::prefetch(Slot) const {}
bool Fibers::intact(Slot) const { return true; }
std::size_t Fibers::stacks() const { return 0; }

}  // namespace longshore::finegrain

#endif
