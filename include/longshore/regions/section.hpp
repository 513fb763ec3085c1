/// regions: index-space geometry; no ranks, no memory. `Section` is a product of index sequences, one a dimension.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "longshore/sequences/runs.hpp"

namespace longshore {

/// The set of multi-indices (i0, i1, ...) with i_d in dimensions()[d].
class Section {
 public:
  Section() = default;
  explicit Section(std::vector<Runs> dimensions) : dimensions_(std::move(dimensions)) {}

  const std::vector<Runs>& dimensions() const& { return dimensions_; }
  std::vector<Runs> dimensions() && { return std::move(dimensions_); }
  Index size() const {
    for (const auto& runs : dimensions_)
      if (runs.empty()) return 0;  // however large the others are
    Index n = 1;
    for (const auto& runs : dimensions_) n = checked_mul(n, runs.size());
    return n;
  }
  bool empty() const { return size() == 0; }
  bool contains(const std::vector<Index>& index) const {
    if (index.size() != dimensions_.size()) return false;
    for (std::size_t d = 0; d < index.size(); ++d)
      if (!dimensions_[d].contains(index[d])) return false;
    return true;
  }
  std::string to_string() const {
    std::string text = "[";
    for (std::size_t d = 0; d < dimensions_.size(); ++d) text += (d ? "] x [" : "") + dimensions_[d].to_string();
    return text + "]";
  }
  bool operator==(const Section&) const = default;

 private:
  std::vector<Runs> dimensions_;
};

}  // namespace longshore
