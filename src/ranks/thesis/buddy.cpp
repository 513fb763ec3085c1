// Binary decision diagrams by BuDDy (Debian: libbdd0c2). The library has one set of tables for a whole process. So it
// is started for one map and ended after it, under a lock; and where somebody else has started it, it is theirs.
#include <mutex>

#include "core/loaded_library.hpp"
#include "ranks/thesis/bdd.hpp"

namespace longshore::thesis {

namespace {

/// The functions of BuDDy 2.4 that we call. A diagram is a number; 0 is false, 1 is true.
struct Buddy {
  int (*init)(int nodes, int cache);
  void (*done)();
  int (*is_running)();
  int (*set_variables)(int);
  int (*variable)(int);
  int (*if_then_else)(int, int, int);
  int (*add_reference)(int);
  int (*remove_reference)(int);
  int (*low)(int);
  int (*high)(int);
  int (*variable_of)(int);
  int (*most_nodes)(int);
  using ErrorHook = void (*)(int);
  ErrorHook (*on_error)(ErrorHook);
  using CollectionHook = void (*)(int, void*);
  CollectionHook (*on_collection)(CollectionHook);

  static const Buddy& library() {
    static const Buddy buddy;  // loaded once; the loader keeps it
    return buddy;
  }

 private:
  Buddy() {
    const LoadedLibrary library("libbdd.so.0", "the representation bdd", "libbdd0c2");
    library.find(init, "bdd_init"), library.find(done, "bdd_done"), library.find(is_running, "bdd_isrunning");
    library.find(set_variables, "bdd_setvarnum"), library.find(variable, "bdd_ithvar"),
        library.find(if_then_else, "bdd_ite");
    library.find(add_reference, "bdd_addref"), library.find(remove_reference, "bdd_delref");
    library.find(low, "bdd_low"), library.find(high, "bdd_high"), library.find(variable_of, "bdd_var");
    library.find(most_nodes, "bdd_setmaxnodenum"), library.find(on_error, "bdd_error_hook"),
        library.find(on_collection, "bdd_gbc_hook");
  }
};

/// BuDDy, running for one map.
class Session {
 public:
  Session(const Buddy& buddy, int bits) : buddy_(buddy), bits_(bits) {
    constexpr int nodes = 1 << 14, cache = 1 << 12, most = 1 << 20;
    if (buddy_.is_running()) throw Error(ErrorKind::argument, "bdd: BuDDy is in use by another part of this program");
    if (buddy_.init(nodes, cache) < 0) throw Error(ErrorKind::argument, "bdd: BuDDy does not start");
    buddy_.most_nodes(most);
    buddy_.on_error([](int) {});    // or it ends the program; results are checked instead
    buddy_.on_collection(nullptr);  // or it writes to stderr
    if (buddy_.set_variables(bits) < 0)
      buddy_.done(), throw Error(ErrorKind::argument, "bdd: BuDDy has no memory for its variables");
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { buddy_.done(); }

  /// The diagram, referenced, of what intervals have in [base, base + 2^bit),
  /// and all of them have something. Variable 0 is the highest bit.
  int diagram(std::span<const Interval> intervals, Index base, int bit) {
    const Index half = (Index{1} << bit) / 2, middle = base + half;
    if (intervals.empty()) return 0;
    if (intervals[0].first <= base && intervals[0].last >= base + (Index{1} << bit)) return 1;
    const auto cut =
        std::partition_point(intervals.begin(), intervals.end(), [&](const Interval& i) { return i.last <= middle; });
    const auto below = std::size_t(cut - intervals.begin());
    const bool both = cut != intervals.end() && cut->first < middle;
    const int low = diagram(intervals.first(below + both), base, bit - 1);
    const int high = diagram(intervals.subspan(below), middle, bit - 1);
    const int node = checked(buddy_.if_then_else(buddy_.variable(bits_ - bit), high, low));
    buddy_.add_reference(node);
    buddy_.remove_reference(low), buddy_.remove_reference(high);
    return node;
  }

  /// The paths to true below a node that begins with bit `bit`.
  void paths(int node, int bit, BddPath path, std::vector<BddPath>& out, std::size_t most) const {
    if (node == 0) return;
    const int next = node == 1 ? 0 : bits_ - buddy_.variable_of(node);  // bits that the node looks at: next and below
    path.free |= ((std::uint64_t{1} << bit) - 1) & ~((std::uint64_t{1} << next) - 1);
    if (node == 1) {
      if (out.size() == most) throw Error(ErrorKind::argument, "bdd: more than " + std::to_string(most) + " paths");
      out.push_back(path);
      return;
    }
    paths(buddy_.low(node), next - 1, path, out, most);
    path.ones |= std::uint64_t{1} << (next - 1);
    paths(buddy_.high(node), next - 1, path, out, most);
  }

 private:
  static int checked(int node) {
    if (node < 0) throw Error(ErrorKind::argument, "bdd: the diagram is too large for BuDDy's tables");
    return node;
  }

  const Buddy& buddy_;
  int bits_;
};

std::mutex& turn() {
  static std::mutex mutex;  // of BuDDy's tables, which are one for the process
  return mutex;
}

}  // namespace

bool buddy_available() {
  try {
    Buddy::library();
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<BddPath> bdd_paths_by_buddy(std::span<const Interval> intervals, int bits, Index most) {
  const auto& buddy = Buddy::library();
  const std::lock_guard lock(turn());
  Session session(buddy, bits);
  std::vector<BddPath> paths;
  session.paths(session.diagram(intervals, 0, bits), bits, {0, 0}, paths, std::size_t(most));
  return paths;
}

}  // namespace longshore::thesis
