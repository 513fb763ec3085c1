/// movers: one-sided access. A `Window` is arrays that several processes lay open to each other: any of them gets and
/// puts sections of any array while its owner does something else (get, nbget and sync of Iancu, Husbands & Chen,
/// "Message strip mining heuristics for high speed networks", section 2).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "longshore/movers/mover.hpp"
#include "longshore/plans/box_parts.hpp"
#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// An array of a window, as every process knows it.
struct WindowPiece {
  Index owner = -1;                   ///< the process that has it; -1: nobody does
  std::vector<Index> shape, strides;  ///< strides in bytes
  Interval reach;                     ///< bytes that it touches, counted from its first element on
  bool read_only = false;
  /// The first element, where this process can see it: in its own memory, or in memory that it shares with the owner.
  std::byte* seen = nullptr;
  bool same_node = true;  ///< the owner is a process of this node
};

/// From where elements come: what accesses take depends on it most.
enum class Reach { seen, same_node, other_node };
/// "seen", "same node", "other node".
const char* reach_name(Reach reach);

/// A get or a put under way. Its buffer must not be touched before wait() or test() says that it is complete; then what
/// was to be got is there, or what was put is in the owner's memory. Used by one thread at a time. One that goes before
/// that waits for what would still touch its buffer.
class Access {
 public:
  virtual ~Access() = default;
  /// True when it is complete. Makes progress without waiting for anybody.
  virtual bool test() = 0;
  virtual void wait() = 0;

 protected:
  Access() = default;
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
};

/// Arrays laid open by their owners, by number: of the processes (number = rank), or of an array's blocks. Between two
/// fences, what one process puts no other may get or put, nor its owner touch; what is only got may be read by all.
/// Threads may share it, if MPI lets several threads call it where data goes through MPI.
class Window {
 public:
  virtual ~Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  Index element_bytes() const { return element_bytes_; }
  const std::vector<WindowPiece>& pieces() const& { return pieces_; }
  /// Throws `Error(argument)` where nobody has such an array.
  const WindowPiece& piece(Index number) const&;
  /// Completes what this process has under way, and waits until all have come so far: then all see what all have put.
  /// Collective. Throws on every process what goes wrong at one of them.
  virtual void fence() = 0;
  /// Ends all access: what is under way is completed first. Collective; a second call does nothing. A window that goes
  /// without it keeps its arrays and stays open to others until MPI is finalised.
  virtual void close() = 0;
  bool is_open() const { return open_; }
  /// How accesses get on while nobody here calls this library, in words; where they do not, what to do about it.
  virtual std::string progress() const = 0;

 protected:
  Window(Index element_bytes, std::vector<WindowPiece> pieces)
      : element_bytes_(element_bytes), pieces_(std::move(pieces)) {}
  /// Of all accesses that are under way here.
  void complete_all();
  /// From now on nothing is got or put, and no memory is kept for strips.
  void end();

 private:
  friend class Section;
  friend class StripReader;
  /// Memory that strips come into. A window keeps that of the last loops for the next ones: memory that is fresh from
  /// the system costs more than a transfer within a node.
  struct StripBuffer {
    std::unique_ptr<std::byte[]> data;
    Index bytes = 0;
  };
  StripBuffer take_buffer(Index bytes);
  void give_back(StripBuffer buffer);
  /// Of pieces that are not seen here. Offsets of one side count from the piece's first element, of the other from
  /// `to` or `from`. Null: it is done.
  virtual std::unique_ptr<Access> begin_get(const WindowPiece& piece, const AddressRelation& relation,
                                            std::byte* to) = 0;
  virtual std::unique_ptr<Access> begin_put(const WindowPiece& piece, const AddressRelation& relation,
                                            const std::byte* from) = 0;
  Index element_bytes_;
  std::vector<WindowPiece> pieces_;
  std::atomic<bool> open_ = true;
  std::mutex mutex_;
  std::set<Access*> under_way_;
  std::vector<StripBuffer> buffers_;
};

/// What array `number` looks like to others. Throws `Error(shape)` and `Error(overflow)` for shapes and strides that
/// are none.
WindowPiece window_piece(Index owner, const LocalArray& array, Index element_bytes);

/// The `threads` engine: all arrays are in this process; the first has number 0. Throws `Error(buffer)` where an array
/// with elements has no memory.
std::shared_ptr<Window> open_window(std::vector<LocalArray> arrays, Index element_bytes);

/// Elements of a window's arrays in an order of their own, as one dense sequence: a value that says where they are. The
/// window is held as long.
class Section {
 public:
  /// Where elements of the section lie in one array: its bytes, counted from its first element, -> the section's.
  struct Part {
    Index piece = 0;
    AddressRelation relation;
  };
  /// Every element of the section must be in one part. Throws `Error(argument)` where their numbers do not add up or an
  /// offset is outside its array, naming both; `Error(type)` for elements of another size.
  Section(std::shared_ptr<Window> window, Index elements, std::vector<Part> parts);
  /// All elements of one array, the last index running fastest.
  Section(std::shared_ptr<Window> window, Index piece);

  const std::shared_ptr<Window>& window() const&;
  Index elements() const;
  Index element_bytes() const;
  Index bytes() const { return elements() * element_bytes(); }
  /// The farthest of its parts.
  Reach reach() const;

  /// Elements [first, last) into dense memory. What can be seen is copied when it is waited for, when it is wanted in
  /// the cache; the rest is under way at once. All four throw `Error(argument)` outside [0, elements()) and where the
  /// window is closed. Not collective.
  std::unique_ptr<Access> nbget(Index first, Index last, std::byte* to) const;
  void get(Index first, Index last, std::byte* to) const;
  /// From dense memory into elements [first, last). Throw `Error(buffer)` where an array is read-only,
  /// `Error(argument)` where two elements of the section are the same one of an array.
  std::unique_ptr<Access> nbput(Index first, Index last, const std::byte* from) const;
  void put(Index first, Index last, const std::byte* from) const;

 private:
  struct Body;
  class PartAccesses;
  std::shared_ptr<const Body> body_;
};

/// What a plan between layouts brings to a rank, from a window over the local arrays of its source, in the order of the
/// memory of the array that the plan gives the rank. Throws what `incoming_parts` throws.
Section incoming(std::shared_ptr<Window> window, const MotionPlan& plan, Index rank);
/// What a plan between blocks brings to the blocks of a rank, from a window over the grids of its source, a number a
/// block, which have these ghost cells: the motions that `plan.receives(rank)` lists, one after the other, the points
/// of each in this order. Throws what `receives` and `incoming_parts` throw, and `Error(shape)` where an array is no
/// grid of its block, naming it.
Section incoming(std::shared_ptr<Window> window, const BlockPlan& plan, Index rank, const GhostWidths& ghost = {},
                 Order visit = Order::C);

}  // namespace longshore
