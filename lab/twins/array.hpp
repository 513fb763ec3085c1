/// Memory of the hand-written twins: on huge pages where the machine has them, as Longshore's arrays are.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include <longshore/core/checked.hpp>

namespace longshore::apps::twins {

/// Elements, all zeros.
template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(Index elements) {
    constexpr std::size_t huge_page = std::size_t{1} << 21;
    const std::size_t bytes = std::size_t(elements) * sizeof(T), page = bytes < huge_page ? 64 : huge_page;
    const std::size_t whole = (bytes + page - 1) / page * page;
    data_.reset(static_cast<T*>(std::aligned_alloc(page, whole)));
    if (!data_ && whole > 0) throw std::bad_alloc();
    if (page == huge_page) madvise(data_.get(), whole, MADV_HUGEPAGE);
    std::fill_n(data_.get(), elements, T());
  }
  T* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T[], Free> data_;
};

}  // namespace longshore::apps::twins
