#include "ranks/forms/bwt.hpp"

#include <algorithm>
#include <cstring>

namespace longshore::ranks {

namespace {

/// The two functions of libbz2's stable interface that we call.
struct Bzip2 {
  int (*compress)(char* to, unsigned* to_bytes, char* from, unsigned from_bytes, int block_100k, int verbosity,
                  int work_factor);
  int (*decompress)(char* to, unsigned* to_bytes, char* from, unsigned from_bytes, int small, int verbosity);

  static const Bzip2& library() {
    static const Bzip2 bzip2;  // loaded once; the loader keeps it
    return bzip2;
  }

 private:
  Bzip2() {
    const LoadedLibrary library("libbz2.so.1.0", "the representation bwt", "libbz2-1.0");
    library.find(compress, "BZ2_bzBuffToBuffCompress"), library.find(decompress, "BZ2_bzBuffToBuffDecompress");
  }
};

std::vector<char> compressed(std::span<const Index> members, int width) {
  std::vector<char> plain(members.size() * std::size_t(width));
  for (std::size_t k = 0; k < members.size(); ++k)
    std::memcpy(&plain[k * std::size_t(width)], &members[k], std::size_t(width));
  std::vector<char> packed(plain.size() + plain.size() / 100 + 600);  // what libbz2 asks for at most
  auto bytes = unsigned(packed.size());
  if (Bzip2::library().compress(packed.data(), &bytes, plain.data(), unsigned(plain.size()), 1, 0, 0) != 0)
    throw Error(ErrorKind::argument, "bwt: libbz2 does not compress a block");
  packed.resize(bytes);
  return packed;
}

int width_of(Index world) { return world > INT32_MAX ? 8 : 4; }

}  // namespace

bool bzip2_available() {
  try {
    Bzip2::library();
    return true;
  } catch (const Error&) {
    return false;
  }
}

BwtForm::BwtForm(const Members& members, Index world) : BwtForm(members.size(), width_of(world)) {
  std::vector<Index> room;
  for (Index first = 0; first < size_; first += block) {
    room.resize(std::size_t(std::min(block, size_ - first)));
    members.read(first, Index(room.size()), room.data());
    const auto packed = compressed(room, width_);
    const auto* bytes = reinterpret_cast<const std::byte*>(packed.data());
    data_.insert(data_.end(), bytes, bytes + packed.size());
    ends_.push_back(Index(data_.size()));
  }
  data_.shrink_to_fit(), ends_.shrink_to_fit();
}

Index BwtForm::compressed_bytes(std::span<const Index> members, Index world) {
  return Index(compressed(members, width_of(world)).size());
}

const std::vector<Index>& BwtForm::members_of(Index b) const {
  if (last_->block == b) return last_->members;
  const Index first = b == 0 ? 0 : ends_[std::size_t(b) - 1], n = std::min(block, size_ - b * block);
  std::vector<char> packed(std::size_t(ends_[std::size_t(b)] - first)), plain(std::size_t(n * width_));
  std::memcpy(packed.data(), data_.data() + first, packed.size());
  auto bytes = unsigned(plain.size());
  last_->block = -1;
  if (Bzip2::library().decompress(plain.data(), &bytes, packed.data(), unsigned(packed.size()), 0, 0) != 0 ||
      bytes != plain.size())
    throw Error(ErrorKind::argument,
                "bwt: block " + std::to_string(b) + " does not decompress to " + std::to_string(n) + " members");
  last_->members.assign(std::size_t(n), 0);
  for (Index k = 0; k < n; ++k)
    std::memcpy(&last_->members[std::size_t(k)], &plain[std::size_t(k * width_)], std::size_t(width_));
  last_->block = b;
  return last_->members;
}

Index BwtForm::select(Index i) const {
  const std::lock_guard lock(last_->mutex);
  return members_of(i / block)[std::size_t(i % block)];
}

void BwtForm::read(Index first, Index n, Index* out) const {
  const std::lock_guard lock(last_->mutex);
  for (Index end = first + n; first < end;) {
    const Index from = first % block, here = std::min(end - first, block - from);
    std::copy_n(members_of(first / block).begin() + from, here, out);
    first += here, out += here;
  }
}

Index BwtForm::bytes_of(Index compressed, Index size) {
  return compressed + (ceil_div(size, block) + std::min(size, block)) * Index(sizeof(Index)) + Index(sizeof(Last));
}

Index BwtForm::bytes() const { return bytes_of(Index(data_.size()), size_); }

void BwtForm::write(WordWriter& out) const {
  out.index(width_), out.index(Index(ends_.size()));
  for (const Index end : ends_) out.index(end);
  out.bytes(data_);
}

BwtForm BwtForm::stored(WordReader& in, const FormHead& head) {
  BwtForm form(head.size, int(in.within(4, 8, "a width")));
  Bzip2::library();
  if (form.width_ != width_of(head.world)) in.refuse("has members of " + std::to_string(form.width_) + " bytes");
  const Index blocks = in.count(1);
  if (blocks != ceil_div(head.size, block)) in.refuse("has another number of blocks than its members need");
  Index before = 0;
  for (Index b = 0; b < blocks; ++b) {
    form.ends_.push_back(in.within(before, before + 64 * block, "the end of a block"));
    before = form.ends_.back();
  }
  form.ends_.shrink_to_fit();
  form.data_ = in.bytes();
  if (Index(form.data_.size()) != before) in.refuse("has another number of compressed bytes than its blocks");
  return form;
}

}  // namespace longshore::ranks
