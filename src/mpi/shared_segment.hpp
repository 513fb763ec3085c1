/// mpi: a peer's view of a `SharedSegment`.
#pragma once

#include <string>

#include "longshore/mpi/shared_segment.hpp"

namespace longshore::mpi {

/// Another process's segment, mapped into this one; unmapped with the object. The owner may free its own side
/// meanwhile.
class SegmentView {
 public:
  /// Throws `Error(transport)` that says why where the machine forbids it or where the address leads somewhere else
  /// (another process namespace).
  static std::shared_ptr<SegmentView> map(const SharedSegment::Address& address, bool writable);
  ~SegmentView();
  SegmentView(const SegmentView&) = delete;
  SegmentView& operator=(const SegmentView&) = delete;
  std::byte* data() const { return data_; }

 private:
  SegmentView(std::byte* data, Index mapped_bytes) : data_(data), mapped_bytes_(mapped_bytes) {}
  std::byte* data_;
  Index mapped_bytes_;
};

}  // namespace longshore::mpi
