#include "longshore/movers/strips.hpp"

#include <algorithm>
#include <chrono>

#include "copies/joint_row.hpp"

namespace longshore {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Index rows_of(const Section& section, Index row) {
  if (row < 1 || section.elements() % row != 0)
    throw Error(ErrorKind::argument,
                "rows of " + std::to_string(row) + " elements, of a section of " + std::to_string(section.elements()));
  return section.elements() / row;
}

}  // namespace

StripReader::StripReader(Section section, const StripSchedule& schedule, Index row)
    : section_(std::move(section)), row_(row) {
  const Index rows = rows_of(section_, row);
  next_ = schedule.strips(rows).begin();
  const Index strips = schedule.count(rows);
  slots_.resize(std::size_t(std::min(schedule.depth() + 1, strips)));
  // A slot has room for the largest strip that comes into it. Strips do not shrink, but for the last one.
  const Index n = Index(slots_.size());
  std::vector<Index> sizes(slots_.size());
  Index k = 0;
  for (const auto strip : schedule.strips(rows)) {
    auto& size = sizes[std::size_t(k++ % n)];
    size = std::max(size, strip.size());
    if (schedule.growth() == 0 && k == n) break;
  }
  const Index row_bytes = checked_mul(row, section_.element_bytes());
  Index bytes = line_bytes;
  for (const Index size : sizes)
    bytes = checked_add(bytes, ceil_div(checked_mul(size, row_bytes), line_bytes) * line_bytes);
  if (n == 0) return;
  buffer_ = section_.window()->take_buffer(bytes);
  std::byte* place = buffer_.data.get();
  place += -reinterpret_cast<std::uintptr_t>(place) % std::uintptr_t(line_bytes);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].data = place;
    place += ceil_div(sizes[i] * row_bytes, line_bytes) * line_bytes;
  }
}

StripReader::~StripReader() {
  slots_.clear();
  if (buffer_.data) section_.window()->give_back(std::move(buffer_));
}

void StripReader::ask() {
  if (next_ == std::default_sentinel) return;
  auto& slot = slots_[asked_++ % slots_.size()];
  const auto rows = *next_++;
  slot.elements = {rows.first * row_, rows.last * row_};
  slot.access = section_.nbget(slot.elements.first, slot.elements.last, slot.data);
}

std::optional<Strip> StripReader::next() {
  const auto begin = Clock::now();
  // The last strip was worked on: its slot is free again.
  while (asked_ < given_ + slots_.size() && !(next_ == std::default_sentinel)) ask();
  if (given_ == asked_) return std::nullopt;
  auto& slot = slots_[given_++ % slots_.size()];
  slot.access->wait();
  slot.access.reset();
  seconds_ += seconds_since(begin);
  return Strip{slot.elements, slot.data};
}

}  // namespace longshore
