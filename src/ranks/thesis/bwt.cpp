// Blocks of 1000 members through bzip2's block sorting (section 4.3.2), with the block that was decompressed last at
// hand.
#include <cstring>
#include <mutex>

#include "core/loaded_library.hpp"
#include "ranks/thesis/modules.hpp"
#include "sequences/stored_words.hpp"

namespace longshore::thesis {

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

class Bwt : public CustomForm {
 public:
  static constexpr Index block = 1000;

  /// Compressed blocks, one behind the other, and where each ends.
  Bwt(Index size, int width, std::vector<Index> ends, std::vector<std::byte> data)
      : size_(size), width_(width), ends_(std::move(ends)), data_(std::move(data)) {
    ends_.shrink_to_fit(), data_.shrink_to_fit();
  }

  /// With the block at hand, whether there is one yet or not.
  static Index bytes_of(Index packed, Index size) {
    return packed + (ceil_div(size, block) + std::min(size, block)) * Index(sizeof(Index)) + Index(sizeof(Bwt));
  }

  std::string_view name() const override { return "bwt"; }
  Index size() const override { return size_; }
  Index select(Index i) const override {
    const std::lock_guard lock(mutex_);
    return members_of(i / block)[std::size_t(i % block)];
  }
  void read(Index first, Index n, Index* out) const override;
  Index bytes() const override { return bytes_of(Index(data_.size()), size_); }
  std::optional<std::vector<std::uint64_t>> words() const override {
    WordWriter out;
    out.index(width_), out.index(Index(ends_.size()));
    for (const Index end : ends_) out.index(end);
    out.bytes(data_);
    return out.words();
  }

 private:
  const std::vector<Index>& members_of(Index b) const;

  Index size_;
  int width_;  ///< bytes of a member before compression: 4, or 8 where the world needs them
  std::vector<Index> ends_;
  std::vector<std::byte> data_;
  // The one-block cache: questions one after the other are answered from it. Threads take turns.
  mutable std::mutex mutex_;
  mutable Index at_hand_ = -1;
  mutable std::vector<Index> members_;
};

const std::vector<Index>& Bwt::members_of(Index b) const {
  if (at_hand_ == b) return members_;
  const Index first = b == 0 ? 0 : ends_[std::size_t(b) - 1], n = std::min(block, size_ - b * block);
  std::vector<char> packed(std::size_t(ends_[std::size_t(b)] - first)), plain(std::size_t(n * width_));
  std::memcpy(packed.data(), data_.data() + first, packed.size());
  auto bytes = unsigned(plain.size());
  at_hand_ = -1;
  if (Bzip2::library().decompress(plain.data(), &bytes, packed.data(), unsigned(packed.size()), 0, 0) != 0 ||
      bytes != plain.size())
    throw Error(ErrorKind::argument,
                "bwt: block " + std::to_string(b) + " does not decompress to " + std::to_string(n) + " members");
  members_.assign(std::size_t(n), 0);
  for (Index k = 0; k < n; ++k)
    std::memcpy(&members_[std::size_t(k)], &plain[std::size_t(k * width_)], std::size_t(width_));
  at_hand_ = b;
  return members_;
}

void Bwt::read(Index first, Index n, Index* out) const {
  const std::lock_guard lock(mutex_);
  for (Index end = first + n; first < end;) {
    const Index from = first % block, here = std::min(end - first, block - from);
    std::copy_n(members_of(first / block).begin() + from, here, out);
    first += here, out += here;
  }
}

class BwtModule : public RankModule {
 public:
  std::string_view name() const override { return "bwt"; }
  Estimate estimate(const Members& members, const Analysis& a) const override {
    if (const char* why = no_list(a)) return Estimate::impossible(why);
    try {
      Bzip2::library();
    } catch (const Error& missing) {
      return Estimate::impossible(missing.what());
    }
    if (a.size == 0) return Estimate::impossible("no members");
    std::vector<Index> sample(std::size_t(std::min(a.size, Bwt::block)));
    members.read((a.size - Index(sample.size())) / 2, Index(sample.size()), sample.data());
    const double each = double(compressed(sample, width_of(a.world)).size()) / double(sample.size());
    const Index bytes = Bwt::bytes_of(Index(double(a.size) * each), a.size) + RankForm::counts_bytes;
    return Estimate::of(a, bytes, a.size <= Bwt::block ? 15 : 80000, -1, 0);
  }
  RankMap::Form build(const Members& members, const Analysis& a) const override {
    const int width = width_of(a.world);
    std::vector<Index> ends, room;
    std::vector<std::byte> data;
    for (Index first = 0; first < a.size; first += Bwt::block) {
      room.resize(std::size_t(std::min(Bwt::block, a.size - first)));
      members.read(first, Index(room.size()), room.data());
      const auto packed = compressed(room, width);
      const auto bytes = std::as_bytes(std::span(packed));
      data.insert(data.end(), bytes.begin(), bytes.end());
      ends.push_back(Index(data.size()));
    }
    return custom(std::make_shared<Bwt>(a.size, width, std::move(ends), std::move(data)));
  }
  std::shared_ptr<const CustomForm> read(std::span<const std::uint64_t> words, Index size, Index world) const override {
    WordReader in(words, "the rank map");
    Bzip2::library();
    const int width = int(in.within(4, 8, "a width"));
    if (width != width_of(world)) in.refuse("has members of " + std::to_string(width) + " bytes");
    std::vector<Index> ends(std::size_t(in.count(1)));
    if (Index(ends.size()) != ceil_div(size, Bwt::block))
      in.refuse("has another number of blocks than its members need");
    for (Index before = 0; auto& end : ends)
      before = end = in.within(before, before + 64 * Bwt::block, "the end of a block");
    auto data = in.bytes();
    in.end();
    if (Index(data.size()) != (ends.empty() ? 0 : ends.back()))
      in.refuse("has another number of compressed bytes than its blocks");
    return std::make_shared<Bwt>(size, width, std::move(ends), std::move(data));
  }
};

}  // namespace

const RankModule& bwt_module() {
  static const BwtModule module;
  return module;
}

}  // namespace longshore::thesis
