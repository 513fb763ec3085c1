// Windows of the `mpi` engine: within a node directly, or by the kernel, else by MPI's one-sided calls.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "core/digest.hpp"
#include "engines/mpi/mpi_mover.hpp"
#include "engines/mpi/remote_access.hpp"
#include "longshore/engines/mpi_window.hpp"
#include "mpi/agreement.hpp"
#include "mpi/attribute.hpp"
#include "mpi/gather.hpp"
#include "mpi/process_memory.hpp"
#include "mpi/progress_thread.hpp"
#include "mpi/shared_segment.hpp"

namespace longshore::mpi {

namespace {

const char* progress_name(Progress progress) {
  switch (progress) {
    case Progress::calls: return "calls";
    case Progress::thread: return "thread";
    case Progress::automatic: break;
  }
  return "automatic";
}

/// What a process tells all others of one of its arrays, before its shape and its strides.
struct PieceRecord {
  Index number = 0, owner = 0, dims = 0, read_only = 0;
  Interval reach;
  SharedSegment::Address address;  ///< of no descriptor: nobody else can see the memory
  Index offset = 0;                ///< of the first element, in that segment
  Index displacement = 0;          ///< of the first element, as MPI counts in its window
  std::uint64_t place = 0;         ///< of the first element, in the owner's memory
  MemoryProof proof;
};
constexpr std::size_t record_words = sizeof(PieceRecord) / sizeof(Index);

/// MPI's windows that are open, in the order in which they were made. MPI may abort where it is finalised with one, so
/// those that nobody has closed are freed when that begins, as all processes do.
class OpenWindows {
 public:
  static OpenWindows& of_this_process() {
    return *kept_with<OpenWindows>(MPI_COMM_SELF, [] { return std::make_shared<OpenWindows>(); });
  }
  void add(MPI_Win window) {
    const std::lock_guard lock(mutex_);
    windows_.push_back(window);
  }
  void remove(MPI_Win window) {
    const std::lock_guard lock(mutex_);
    std::erase(windows_, window);
  }
  void release() {
    const auto turn = turn_in_mpi();  // progress threads still call MPI
    for (auto& window : windows_)
      if (MPI_Win_unlock_all(window) == MPI_SUCCESS) MPI_Win_free(&window);
  }

 private:
  std::mutex mutex_;
  std::vector<MPI_Win> windows_;
};

/// How an array of another process that is not seen is got at.
struct Reached {
  Index displacement = 0;                       ///< of the first element, as MPI counts in its window
  std::uint64_t place = 0;                      ///< of the first element, in the owner's memory
  std::shared_ptr<const ProcessMemory> memory;  ///< the owner's; null: through MPI
};

/// A stretch of this process's memory with all of its arrays, and with nothing that others may not touch.
struct OwnRange {
  std::byte* first = nullptr;
  Index bytes = 0;
};

/// None where the arrays lie in memory of their own each. `pieces` are theirs.
std::optional<OwnRange> range_of(const std::vector<WindowPiece>& pieces) {
  OwnRange range;
  std::shared_ptr<const Memory> memory;
  for (const auto& piece : pieces) {
    if (piece.reach.empty()) continue;
    std::byte* const first = piece.seen + piece.reach.first;
    const auto here = array_memory_at(first, piece.reach.size());
    if (!range.first) {
      range = {first, piece.reach.size()}, memory = here;
      continue;
    }
    if (!here || here != memory) return std::nullopt;
    std::byte* const end = std::max(range.first + range.bytes, first + piece.reach.size());
    range.first = std::min(range.first, first), range.bytes = end - range.first;
  }
  return range;
}

class MpiWindow final : public Window, public std::enable_shared_from_this<MpiWindow> {
 public:
  MpiWindow(std::shared_ptr<Communicator> communicator, Index element_bytes, std::vector<WindowPiece> pieces,
            std::vector<Part> mine, std::vector<Reached> reached, std::vector<std::shared_ptr<SegmentView>> views,
            std::vector<std::shared_ptr<const Memory>> shown)
      : Window(element_bytes, std::move(pieces)),
        communicator_(communicator),
        mine_(std::move(mine)),
        reached_(std::move(reached)),
        views_(std::move(views)),
        shown_(std::move(shown)),
        remote_(std::make_shared<RemoteAccesses>(std::move(communicator))) {}

  ~MpiWindow() override {
    if (!is_open() || !mpi_alive()) return;
    // Nobody can be asked whether others still reach for what is here.
    new std::vector<Part>(std::move(mine_));
    static_cast<void>(progress_.release());
  }

  /// Collective: for what some process has to get at through MPI. Without a thread `why_none` may say what was in its
  /// way.
  void make(const std::optional<OwnRange>& range, std::unique_ptr<ProgressThread> thread, std::string why_none,
            bool threads_everywhere) {
    why_no_thread_ = std::move(why_none);
    if (range) {
      check_mpi(MPI_Win_create(range->first, MPI_Aint(range->bytes), 1, MPI_INFO_NULL, communicator_->world(),
                               &remote_->window),
                "MPI_Win_create");
    } else {
      check_mpi(MPI_Win_create_dynamic(MPI_INFO_NULL, communicator_->world(), &remote_->window),
                "MPI_Win_create_dynamic");
      for (const auto& [number, array] : mine_)
        if (const auto& reach = piece(number).reach; !reach.empty())
          check_mpi(MPI_Win_attach(remote_->window, array.data + reach.first, MPI_Aint(reach.size())),
                    "MPI_Win_attach");
    }
    check_mpi(MPI_Win_set_errhandler(remote_->window, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
    check_mpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, remote_->window), "MPI_Win_lock_all");
    OpenWindows::of_this_process().add(remote_->window);
    if (threads_everywhere) {
      std::map<Index, AccessMessages::Array> arrays;
      for (const auto& [number, array] : mine_)
        arrays[number] = {array.data, piece(number).reach, piece(number).read_only};
      remote_->messages = std::make_unique<AccessMessages>(*communicator_, std::move(arrays));
    }
    if (!thread) return;
    communicator_->add_besides(remote_.get(), [remote = remote_] { remote->go_on(); });
    progress_ = std::move(thread);
    remote_->progress = progress_.get();
    progress_->begin();
  }

  void fence() override {
    check_not_finalised();
    auto mine = submission("fence()");
    mine.attempt([&] {
      check_open();
      complete_all();
      if (remote_->window == MPI_WIN_NULL) return;
      const auto turn = turn_in_mpi();
      check_mpi(MPI_Win_flush_all(remote_->window), "MPI_Win_flush_all");
      check_mpi(MPI_Win_sync(remote_->window), "MPI_Win_sync");
    });
    std::atomic_thread_fence(std::memory_order_seq_cst);
    agree(*communicator_, mine);
    if (remote_->window != MPI_WIN_NULL) check_mpi(MPI_Win_sync(remote_->window), "MPI_Win_sync");
  }

  void close() override;

  std::string progress() const override {
    if (remote_->window == MPI_WIN_NULL) return "all arrays are reached within the node: whoever waits copies";
    if (progress_) return "a thread calls MPI for what others ask of this process";
    return "what others ask of this process gets on while it calls MPI, not while it does something else: " +
           (why_no_thread_.empty() ? "initialise MPI with MPI_THREAD_MULTIPLE, and leave progress as it is, for a "
                                     "thread that calls it"
                                   : why_no_thread_);
  }

 private:
  std::unique_ptr<Access> begin_get(const WindowPiece& piece, const AddressRelation& relation, std::byte* to) override;
  std::unique_ptr<Access> begin_put(const WindowPiece& piece, const AddressRelation& relation,
                                    const std::byte* from) override;
  /// What others must have called, too.
  static Submission submission(const char* call) {
    Submission mine;
    Digest digest;
    digest.mix(std::string_view(call));
    mine.digest = digest.value();
    mine.facts = [call] { return Facts{{"call", std::string(call) + " of a window"}}; };
    return mine;
  }
  void check_open() const {
    if (!is_open()) throw Error(ErrorKind::argument, "the window is closed");
  }
  Index number(const WindowPiece& piece) const { return &piece - pieces().data(); }
  std::unique_ptr<RemoteAccess> remote_access(const WindowPiece& piece, bool put) {
    check_not_finalised();
    return std::make_unique<RemoteAccess>(remote_, shared_from_this(), int(piece.owner), number(piece),
                                          reached(piece).displacement, put);
  }
  const Reached& reached(const WindowPiece& piece) const { return reached_[std::size_t(number(piece))]; }
  std::shared_ptr<Communicator> communicator_;
  std::vector<Part> mine_;        // with their owners
  std::vector<Reached> reached_;  // by number
  std::vector<std::shared_ptr<SegmentView>> views_;
  std::vector<std::shared_ptr<const Memory>> shown_;  ///< of this process, to others
  /// The thread outlives a window that nobody closes.
  const std::shared_ptr<RemoteAccesses> remote_;
  std::unique_ptr<ProgressThread> progress_;
  std::string why_no_thread_;
};

/// A get from the memory of a process of this node, which is copied when it is waited for, when it is wanted in the
/// cache.
class ProcessGet final : public Access {
 public:
  ProcessGet(const Reached& from, const AddressRelation& relation, std::byte* to)
      : from_(from), relation_(relation), to_(to) {}
  bool test() override {
    if (!done_) from_.memory->read(relation_, from_.place, to_);
    return done_ = true;
  }
  void wait() override { test(); }

 private:
  Reached from_;
  AddressRelation relation_;
  std::byte* to_;
  bool done_ = false;
};

std::unique_ptr<Access> MpiWindow::begin_get(const WindowPiece& piece, const AddressRelation& relation, std::byte* to) {
  if (const auto& from = reached(piece); from.memory) return std::make_unique<ProcessGet>(from, relation, to);
  auto access = remote_access(piece, false);
  access->begin_get(relation, to);
  return access;
}

std::unique_ptr<Access> MpiWindow::begin_put(const WindowPiece& piece, const AddressRelation& relation,
                                             const std::byte* from) {
  if (const auto& to = reached(piece); to.memory) {
    to.memory->write(relation, from, to.place);
    return nullptr;
  }
  auto access = remote_access(piece, true);
  access->begin_put(relation, from);
  return access;
}

void MpiWindow::close() {
  if (!is_open()) return;
  check_not_finalised();
  auto mine = submission("close()");
  mine.attempt([&] {
    complete_all();
    if (remote_->window == MPI_WIN_NULL) return;
    const auto turn = turn_in_mpi();
    check_mpi(MPI_Win_flush_all(remote_->window), "MPI_Win_flush_all");
  });
  // Nobody frees what another one has not come to the end of; those who wait need the threads of all.
  try {
    agree(*communicator_, mine);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::disagreement) end();  // else all of them still have it
    throw;
  }
  end();
  communicator_->remove_besides(remote_.get());
  progress_.reset();
  if (remote_->window == MPI_WIN_NULL) return;
  if (remote_->messages) remote_->messages->close();
  OpenWindows::of_this_process().remove(remote_->window);
  {
    const auto turn = turn_in_mpi();
    check_mpi(MPI_Win_unlock_all(remote_->window), "MPI_Win_unlock_all");
  }
  check_mpi(MPI_Win_free(&remote_->window), "MPI_Win_free");
}

/// What all processes tell of their arrays, in words. Memory that others can see is added to `shown`.
std::vector<Index> words_of(const std::vector<WindowPiece>& pieces, const std::vector<Part>& mine,
                            const std::optional<OwnRange>& range, const MemoryProof& proof,
                            std::vector<std::shared_ptr<const Memory>>& shown) {
  std::vector<Index> words;
  for (std::size_t k = 0; k < mine.size(); ++k) {
    const auto& piece = pieces[k];
    PieceRecord record{mine[k].rank,
                       piece.owner,
                       Index(piece.shape.size()),
                       piece.read_only,
                       piece.reach,
                       {},
                       0,
                       0,
                       reinterpret_cast<std::uintptr_t>(piece.seen),
                       proof};
    if (!piece.reach.empty()) {
      const auto* first = piece.seen + piece.reach.first;
      if (const auto memory = array_memory_at(first, piece.reach.size()))
        if (const auto* segment = dynamic_cast<const SharedMemory*>(memory.get())) {
          record.address = segment->address(), record.offset = piece.seen - segment->data();
          shown.push_back(memory);
        }
      MPI_Aint address = 0;
      check_mpi(MPI_Get_address(piece.seen, &address), "MPI_Get_address");
      record.displacement = range ? Index(piece.seen - range->first) : Index(address);
    }
    words.resize(words.size() + record_words);
    std::memcpy(&words[words.size() - record_words], &record, sizeof record);
    for (const auto* list : {&piece.shape, &piece.strides}) words.insert(words.end(), list->begin(), list->end());
  }
  return words;
}

}  // namespace

void stop_progress_threads() { keep_threads_out(); }

std::shared_ptr<Window> open_window(CommHandle comm, Index pieces, std::vector<Part> mine, Index element_bytes,
                                    const WindowOptions& options, const Error* failure) {
  const auto communicator = Communicator::of(comm);

  // 1. What we were given: checked here, then compared.
  Submission given;
  std::vector<WindowPiece> own;
  given.attempt([&] {
    if (failure) throw *failure;
    given.facts = [&] {
      return Facts{{"arrays in the window", std::to_string(pieces)},
                   {"bytes of an element", std::to_string(element_bytes)},
                   {"element", options.element},
                   {"node", path_name(options.node)},
                   {"progress", progress_name(options.progress)}};
    };
    Digest digest;
    digest.mix(std::array{pieces, element_bytes, Index(options.node), Index(options.progress)});
    digest.mix(options.element);
    given.digest = digest.value();
    if (element_bytes < 1)
      throw Error(ErrorKind::argument, "elements of " + std::to_string(element_bytes) + " bytes; there must be some");
    if (options.node == NodePath::ring || options.node == NodePath::direct)
      throw Error(ErrorKind::argument, "a window has no rings: its node is automatic or messages");
    if (options.progress == Progress::thread && !threads_may_call_mpi())
      throw Error(ErrorKind::argument,
                  "a thread for progress calls MPI beside this one: initialise MPI with "
                  "MPI_Init_thread and MPI_THREAD_MULTIPLE");
    for (const auto& [number, array] : mine) {
      if (number < 0 || number >= pieces)
        throw Error(ErrorKind::argument, "rank " + std::to_string(communicator->rank()) + " lays open array " +
                                             std::to_string(number) + " of a window that has " +
                                             std::to_string(pieces));
      own.push_back(window_piece(communicator->rank(), array, element_bytes));
    }
  });
  auto range = range_of(own);
  if (!agree(*communicator, given, {range.has_value()})[0]) range.reset();  // MPI has two kinds of windows

  // 2. Everybody's arrays.
  std::random_device random;
  const std::uint64_t value = (std::uint64_t(random()) << 32) | random();
  const MemoryProof proof{reinterpret_cast<std::uintptr_t>(&value), value};
  std::vector<std::shared_ptr<const Memory>> shown;
  const auto words = gather_lists(*communicator, Among::world, words_of(own, mine, range, proof, shown));
  std::vector<WindowPiece> all(static_cast<std::size_t>(pieces));
  std::vector<Reached> reached(all.size());
  std::map<Index, std::shared_ptr<const ProcessMemory>> processes;
  std::vector<std::shared_ptr<SegmentView>> views;
  bool all_reached = true;
  Submission seen;
  seen.attempt([&] {
    for (std::size_t at = 0; at < words.size();) {
      PieceRecord record;
      std::memcpy(static_cast<void*>(&record), &words[at], sizeof record);
      const auto shape = words.begin() + Index(at + record_words), strides = shape + record.dims;
      at += record_words + 2 * std::size_t(record.dims);
      auto& piece = all[std::size_t(record.number)];
      if (piece.owner >= 0)  // everybody finds that
        throw Error(ErrorKind::argument,
                    "array " + std::to_string(record.number) + " of the window is laid open twice, by rank " +
                        std::to_string(piece.owner) + " and by rank " + std::to_string(record.owner));
      const bool same_node = communicator->node_rank_of(int(record.owner)) >= 0;
      piece = {record.owner, {shape, strides}, {strides, strides + record.dims}, record.reach, record.read_only != 0,
               nullptr,      same_node};
      auto& way = reached[std::size_t(record.number)] = {record.displacement, record.place, nullptr};
      if (record.owner == communicator->rank()) {
        const auto part =
            std::find_if(mine.begin(), mine.end(), [&](const Part& p) { return p.rank == record.number; });
        piece.seen = part->array.data;
      } else if (options.node != NodePath::messages && same_node && !piece.reach.empty()) {
        if (record.address.descriptor >= 0)
          static_cast<void>(attempt([&] {
            views.push_back(communicator->memory().view(record.address, !piece.read_only));
            piece.seen = views.back()->data() + record.offset;
          }));
        if (!piece.seen) {
          const auto [known, fresh] = processes.try_emplace(record.owner);
          if (fresh) known->second = ProcessMemory::of(*communicator, int(record.owner), record.proof);
          way.memory = known->second;
        }
      }
      all_reached = all_reached && (piece.seen || way.memory || piece.reach.empty());
    }
  });

  // 3. MPI for the rest, if any process needs it.
  auto window = std::make_shared<MpiWindow>(communicator, element_bytes, std::move(all), std::move(mine),
                                            std::move(reached), std::move(views), std::move(shown));
  // Nobody goes on while others may look at its proof.
  if (!agree(*communicator, seen, {all_reached})[0]) {
    // A thread that one process alone cannot have must be known before the others are in MPI with it.
    std::unique_ptr<ProgressThread> thread;
    std::optional<Error> no_thread;
    if (options.progress != Progress::calls && threads_may_call_mpi())
      no_thread = attempt([&] { thread = std::make_unique<ProgressThread>(communicator); });
    Submission started;
    if (options.progress == Progress::thread) started.failure = no_thread;
    const bool threads_everywhere = agree(*communicator, started, {thread != nullptr})[0];
    Submission made;
    made.attempt(
        [&] { window->make(range, std::move(thread), no_thread ? no_thread->what() : "", threads_everywhere); });
    agree(*communicator, made);
  }
  return window;
}

}  // namespace longshore::mpi
