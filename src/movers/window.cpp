#include "longshore/movers/window.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "longshore/copies/relation_program.hpp"

namespace longshore {

const WindowPiece& Window::piece(Index number) const& {
  const Index n = Index(pieces_.size());
  if (number < 0 || number >= n)
    throw Error(ErrorKind::argument, "there is no array " + std::to_string(number) + " in a window of " +
                                         std::to_string(n) + "; the first is number 0");
  const auto& found = pieces_[std::size_t(number)];
  if (found.owner < 0)
    throw Error(ErrorKind::argument, "nobody has laid open array " + std::to_string(number) + " in this window");
  return found;
}

void Window::complete_all() {
  const std::lock_guard lock(mutex_);
  for (auto* access : under_way_) access->wait();
}

void Window::end() {
  const std::lock_guard lock(mutex_);
  open_ = false;
  buffers_.clear();
}

Window::StripBuffer Window::take_buffer(Index bytes) {
  {
    const std::lock_guard lock(mutex_);
    for (auto& buffer : buffers_)
      if (buffer.bytes >= bytes && buffer.bytes / 2 <= bytes) {
        std::swap(buffer, buffers_.back());
        auto found = std::move(buffers_.back());
        buffers_.pop_back();
        return found;
      }
  }
  return {std::make_unique_for_overwrite<std::byte[]>(std::size_t(bytes)), bytes};
}

void Window::give_back(StripBuffer buffer) {
  constexpr std::size_t most_buffers = 4;
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  if (buffers_.size() == most_buffers) buffers_.erase(buffers_.begin());
  buffers_.push_back(std::move(buffer));
}

WindowPiece window_piece(Index owner, const LocalArray& array, Index element_bytes) {
  if (array.shape.dims() != array.strides.dims())
    throw Error(ErrorKind::shape, "an array of a window has " + std::to_string(array.strides.dims()) + " strides for " +
                                      std::to_string(array.shape.dims()) + " dimensions");
  WindowPiece piece{owner,     array.shape.to_vector(), array.strides.to_vector(), {0, element_bytes}, array.read_only,
                    array.data};
  for (std::size_t d = 0; d < array.shape.dims(); ++d) {
    const Index n = array.shape[d];
    if (n < 0)
      throw Error(ErrorKind::shape, "an array of a window has extent " + std::to_string(n) + " in dimension " +
                                        std::to_string(d) + "; it must not be negative");
    if (n == 0) {
      piece.reach = {};
      break;
    }
    const Index last = checked_mul(n - 1, array.strides[d]);
    piece.reach.first = checked_add(piece.reach.first, std::min<Index>(last, 0));
    piece.reach.last = checked_add(piece.reach.last, std::max<Index>(last, 0));
  }
  if (!piece.reach.empty() && array.data == nullptr)
    throw Error(ErrorKind::buffer, "an array of a window has elements but no memory");
  return piece;
}

// --- all arrays in this process

namespace {

class LocalWindow final : public Window {
 public:
  LocalWindow(Index element_bytes, std::vector<WindowPiece> pieces, std::vector<LocalArray> arrays)
      : Window(element_bytes, std::move(pieces)), arrays_(std::move(arrays)) {}
  void fence() override {
    complete_all();
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void close() override {
    complete_all();
    end();
  }
  std::string progress() const override { return "all arrays are in this process: whoever waits copies"; }

 private:
  std::unique_ptr<Access> begin_get(const WindowPiece&, const AddressRelation&, std::byte*) override { return {}; }
  std::unique_ptr<Access> begin_put(const WindowPiece&, const AddressRelation&, const std::byte*) override {
    return {};
  }
  std::vector<LocalArray> arrays_;  // with their owners
};

}  // namespace

std::shared_ptr<Window> open_window(std::vector<LocalArray> arrays, Index element_bytes) {
  if (element_bytes < 1)
    throw Error(ErrorKind::argument, "elements of " + std::to_string(element_bytes) + " bytes; there must be some");
  std::vector<WindowPiece> pieces;
  for (std::size_t k = 0; k < arrays.size(); ++k) pieces.push_back(window_piece(Index(k), arrays[k], element_bytes));
  return std::make_shared<LocalWindow>(element_bytes, std::move(pieces), std::move(arrays));
}

// --- sections

namespace {

struct WindowPart {
  const WindowPiece* piece;
  AddressRelation relation;  ///< the section's elements ascending
  Interval covers;           ///< of the section, in elements
  std::optional<RelationProgram> get;
  mutable std::once_flag once;
  mutable std::optional<AddressRelation> inverse;
  mutable std::optional<RelationProgram> put;

  WindowPart(const WindowPiece& of, AddressRelation given)
      : piece(&of), relation(std::move(given)), covers(relation.destination_extent()) {
    const Index size = relation.element_bytes();
    covers = {covers.first / size, covers.last / size};
    if (piece->seen) get.emplace(relation);
  }

  /// The positions of the section's elements [first, last) among this part's.
  Interval positions(Index first, Index last) const { return {position(first), position(last)}; }
  Index position(Index element) const {
    if (element <= covers.first) return 0;
    if (element >= covers.last) return relation.elements();
    if (relation.elements() == covers.size()) return element - covers.first;
    const Index offset = element * relation.element_bytes();
    Index low = 0, high = relation.elements();
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (relation.at(middle).destination < offset)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  /// The section -> the array. What is written nobody may write twice, which its constructor sees to.
  void make_put() const {
    std::call_once(once, [this] {
      AddressRelation made = relation.inverse();
      if (piece->seen) put.emplace(made);
      inverse.emplace(std::move(made));
    });
  }
};

}  // namespace

struct Section::Body {
  std::shared_ptr<Window> window;
  Index elements = 0;
  std::vector<std::unique_ptr<const WindowPart>> parts;

  /// Whether elements at `data` may lie in memory of the section's own arrays: those go by a copy of their own, as
  /// NumPy's do.
  bool meets(const std::byte* data, Index bytes) const {
    return std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
      const WindowPiece& piece = *part->piece;
      return piece.seen && data < piece.seen + piece.reach.last && piece.seen + piece.reach.first < data + bytes;
    });
  }

  void check(Index first, Index last) const {
    if (!window->is_open()) throw Error(ErrorKind::argument, "the window of this section is closed");
    check_positions(first, last, elements);
  }
};

/// A get or put of several parts: what can be seen is copied here, the rest is accesses of the window's. A fence may
/// complete it from another thread than the one that waits.
class Section::PartAccesses final : public Access {
 public:
  explicit PartAccesses(std::shared_ptr<const Body> body) : body_(std::move(body)) {}
  ~PartAccesses() override {
    const std::lock_guard lock(body_->window->mutex_);
    body_->window->under_way_.erase(this);
  }
  /// It has all its parts: from now on a fence completes it.
  void begun() {
    const std::lock_guard lock(body_->window->mutex_);
    body_->window->under_way_.insert(this);
  }
  struct Copy {
    const RelationProgram* program;
    Interval positions;
    std::byte* to;
    const std::byte* from;
    void run() const { program->run(positions.first, positions.last, to, from); }
  };

  bool test() override {
    const std::lock_guard lock(mutex_);
    copy();
    while (!remote.empty() && remote.back()->test()) remote.pop_back();
    if (remote.empty()) hand_over();
    return remote.empty();
  }
  void wait() override {
    const std::lock_guard lock(mutex_);
    copy();
    for (; !remote.empty(); remote.pop_back()) remote.back()->wait();
    hand_over();
  }

  std::vector<std::byte> apart;      ///< the elements, where they are not to be where the section's arrays are
  std::byte* destination = nullptr;  ///< of a get, where `apart` goes in the end
  std::vector<Copy> copies;
  std::vector<std::unique_ptr<Access>> remote;  ///< gone before `apart`, which they may still use

 private:
  void copy() {
    for (const auto& each : copies) each.run();
    copies.clear();
  }
  void hand_over() {
    if (destination) std::memcpy(std::exchange(destination, nullptr), apart.data(), apart.size());
  }
  std::shared_ptr<const Body> body_;
  std::mutex mutex_;
};

Section::Section(std::shared_ptr<Window> window, Index elements, std::vector<Part> parts) {
  auto body = std::make_shared<Body>();
  const Index size = window->element_bytes();
  Index there = 0;
  for (auto& [number, relation] : parts) {
    const auto& piece = window->piece(number);
    if (relation.empty()) continue;
    if (relation.element_bytes() != size)
      throw Error(ErrorKind::type, "a section of elements of " + std::to_string(relation.element_bytes()) +
                                       " bytes, in a window of elements of " + std::to_string(size));
    if (!relation.reduction().is_replace())
      throw Error(ErrorKind::argument, "a section is got and put as it is; its relation must not reduce");
    const auto from = relation.source_extent(), to = relation.destination_extent();
    if (from.first < piece.reach.first || from.last > piece.reach.last)
      throw Error(ErrorKind::argument, "a section has bytes [" + std::to_string(from.first) + ", " +
                                           std::to_string(from.last) + ") of array " + std::to_string(number) +
                                           ", which has [" + std::to_string(piece.reach.first) + ", " +
                                           std::to_string(piece.reach.last) + ")");
    if (to.first < 0 || to.last > checked_mul(elements, size))
      throw Error(ErrorKind::argument, "a part goes to bytes [" + std::to_string(to.first) + ", " +
                                           std::to_string(to.last) + ") of a section of " + std::to_string(elements) +
                                           " elements");
    there = checked_add(there, relation.elements());
    if (!relation.is_sorted(PairOrder::destination_first)) relation = relation.sorted(PairOrder::destination_first);
    body->parts.push_back(std::make_unique<WindowPart>(piece, std::move(relation)));
  }
  if (there != elements)
    throw Error(ErrorKind::argument, "a section of " + std::to_string(elements) + " elements has parts of " +
                                         std::to_string(there) + " together");
  body->window = std::move(window), body->elements = elements;
  body_ = std::move(body);
}

namespace {

std::vector<Section::Part> all_of(const Window& window, Index number) {
  const auto& piece = window.piece(number);
  std::vector<Index> dense(piece.shape.size());
  Index stride = window.element_bytes();
  for (std::size_t d = dense.size(); d-- > 0; stride = checked_mul(stride, std::max<Index>(piece.shape[d], 1)))
    dense[d] = stride;
  return {{number, AddressRelation::strided(window.element_bytes(), piece.shape, piece.strides, dense)}};
}

Index elements_of(const WindowPiece& piece) {
  Index n = 1;
  for (const Index extent : piece.shape) n = checked_mul(n, extent);
  return n;
}

}  // namespace

Section::Section(std::shared_ptr<Window> window, Index piece)
    : Section(window, elements_of(window->piece(piece)), all_of(*window, piece)) {}

Section incoming(std::shared_ptr<Window> window, const MotionPlan& plan, Index rank) {
  std::vector<Section::Part> parts;
  for (auto& [piece, nest] : incoming_parts(plan, rank)) parts.push_back({piece, std::move(nest)});
  return {std::move(window), plan.destination().local_size(rank), std::move(parts)};
}

Section incoming(std::shared_ptr<Window> window, const BlockPlan& plan, Index rank, const GhostWidths& ghost,
                 Order visit) {
  const auto& blocks = plan.source();
  const Point none(blocks.dims(), 0);
  const bool grows = ghost.below.dims() > 0;
  const auto grid = [&](Index block) {
    const auto& piece = window->piece(block);
    const Region region = blocks.region(block).grow(grows ? ghost.below : none, grows ? ghost.above : none);
    if (piece.shape != region.shape().to_vector())
      throw Error(ErrorKind::shape, "array " + std::to_string(block) + " of the window has not the shape of block " +
                                        std::to_string(block) + " with its ghost cells, " + region.to_string());
    return Grid{region, nullptr, piece.strides, window->element_bytes()};
  };
  std::vector<Section::Part> parts;
  Index elements = 0;
  for (auto& [block, relation] : incoming_parts(plan.receives(rank), grid, visit)) {
    elements += relation.elements();
    parts.push_back({block, std::move(relation)});
  }
  return {std::move(window), elements, std::move(parts)};
}

const char* reach_name(Reach reach) {
  constexpr const char* names[] = {"seen", "same node", "other node"};
  return names[std::size_t(reach)];
}

const std::shared_ptr<Window>& Section::window() const& { return body_->window; }
Index Section::elements() const { return body_->elements; }
Index Section::element_bytes() const { return body_->window->element_bytes(); }

Reach Section::reach() const {
  auto farthest = Reach::seen;
  for (const auto& part : body_->parts)
    if (!part->piece->seen)
      farthest = std::max(farthest, part->piece->same_node ? Reach::same_node : Reach::other_node);
  return farthest;
}

std::unique_ptr<Access> Section::nbget(Index first, Index last, std::byte* to) const {
  body_->check(first, last);
  auto access = std::make_unique<PartAccesses>(body_);
  if (first == last) return access;
  if (const Index bytes = (last - first) * element_bytes(); body_->meets(to, bytes)) {
    access->apart.resize(std::size_t(bytes));
    access->destination = std::exchange(to, access->apart.data());
  }
  std::byte* const begin = to - first * element_bytes();
  for (const auto& part : body_->parts) {
    const auto positions = part->positions(first, last);
    if (positions.empty()) continue;
    if (part->piece->seen)
      access->copies.push_back({&*part->get, positions, begin, part->piece->seen});
    else
      access->remote.push_back(
          body_->window->begin_get(*part->piece, part->relation.restrict(positions.first, positions.last), begin));
  }
  access->begun();
  return access;
}

void Section::get(Index first, Index last, std::byte* to) const {
  body_->check(first, last);
  if (reach() != Reach::seen || body_->meets(to, (last - first) * element_bytes()))
    return nbget(first, last, to)->wait();
  if (first == last) return;  // and `to` may be null
  for (const auto& part : body_->parts) {
    const auto positions = part->positions(first, last);
    part->get->run(positions.first, positions.last, to - first * element_bytes(), part->piece->seen);
  }
}

std::unique_ptr<Access> Section::nbput(Index first, Index last, const std::byte* from) const {
  body_->check(first, last);
  for (const auto& part : body_->parts) {
    if (part->piece->read_only && !part->positions(first, last).empty())
      throw Error(ErrorKind::buffer, "the array of owner " + std::to_string(part->piece->owner) +
                                         " is read-only; its owner has to lay open one that can be written");
    part->make_put();
  }
  auto access = std::make_unique<PartAccesses>(body_);
  if (first == last) return access;
  if (const Index bytes = (last - first) * element_bytes(); body_->meets(from, bytes)) {
    access->apart.assign(from, from + bytes);
    from = access->apart.data();
  }
  const std::byte* const begin = from - first * element_bytes();
  for (const auto& part : body_->parts) {
    const auto positions = part->positions(first, last);
    if (positions.empty()) continue;
    if (part->piece->seen)
      PartAccesses::Copy{&*part->put, positions, part->piece->seen, begin}.run();
    else if (auto put = body_->window->begin_put(*part->piece, part->inverse->restrict(positions.first, positions.last),
                                                 begin))
      access->remote.push_back(std::move(put));
  }
  access->begun();
  return access;
}

void Section::put(Index first, Index last, const std::byte* from) const { nbput(first, last, from)->wait(); }

}  // namespace longshore
