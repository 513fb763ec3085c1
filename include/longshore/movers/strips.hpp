/// movers: loops over the elements of a section, strip by strip: the next strips are under way while one is worked on
/// (Iancu, Husbands & Chen, "Message strip mining heuristics for high speed networks", section 2).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "longshore/movers/window.hpp"
#include "longshore/plans/strip_schedule.hpp"

namespace longshore {

/// Elements of a section that have arrived.
struct Strip {
  Interval elements;          ///< which of the section
  std::byte* data = nullptr;  ///< theirs, until the next strip is asked for
};

/// The strips of a section, one after the other. Holds a buffer for the one that is worked on and for as many as are
/// under way meanwhile, U + 1 of them; never the whole, unless the schedule is `vectorized`.
class StripReader {
 public:
  /// Of sections of rows, of `row` elements each, strips are whole rows, and the schedule counts those. Throws
  /// `Error(argument)` where `row` is less than 1 or does not divide the section's elements.
  StripReader(Section section, const StripSchedule& schedule, Index row = 1);
  /// Waits for what is under way, whose buffer goes back to the window.
  ~StripReader();
  StripReader(const StripReader&) = delete;
  StripReader& operator=(const StripReader&) = delete;

  /// The next strip, when it has come; none when all have been. Strip i + U is asked for before strip i is waited for.
  std::optional<Strip> next();
  /// Where strips arrive.
  std::byte* buffer() const { return buffer_.data.get(); }
  Index buffer_bytes() const { return buffer_.bytes; }
  /// Seconds spent so far in asking for strips and waiting for them.
  double communication_seconds() const { return seconds_; }

 private:
  struct Slot {
    std::byte* data = nullptr;
    Interval elements;
    std::unique_ptr<Access> access;
  };
  void ask();

  Section section_;
  Index row_;
  Strips::Iterator next_;
  Window::StripBuffer buffer_;
  std::vector<Slot> slots_;  ///< used in turns
  std::size_t asked_ = 0, given_ = 0;
  double seconds_ = 0;
};

/// Calls `body(std::span<const T>, first)` for the strips of a section in their order; `first` is the strip's first
/// element. Returns the seconds that were spent in asking for strips and waiting for them. Throws `Error(type)` where
/// the section's elements are not of T's size, and what accesses throw.
template <class T, class Body>
double for_each_strip(const Section& section, const StripSchedule& schedule, Body&& body) {
  if (section.element_bytes() != Index(sizeof(T)))
    throw Error(ErrorKind::type, "strips of elements of " + std::to_string(sizeof(T)) +
                                     " bytes, of a section of elements of " + std::to_string(section.element_bytes()));
  StripReader strips(section, schedule);
  while (const auto strip = strips.next())
    body(std::span<const T>(reinterpret_cast<const T*>(strip->data), std::size_t(strip->elements.size())),
         strip->elements.first);
  return strips.communication_seconds();
}

}  // namespace longshore
