#include "mpi/process_memory.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace longshore::mpi {

/// Stretches of both sides, handed to the kernel many at a time.
class ProcessMemory::Batch {
 public:
  Batch(const ProcessMemory& memory, bool write) : memory_(memory), write_(write) {}

  void add(std::byte* here, std::uint64_t there, Index bytes) {
    while (bytes > 0) {
      if (n_ == most_stretches || bytes_ == most_bytes) flush();
      const Index now = std::min(bytes, most_bytes - bytes_);
      const auto size = std::size_t(now);
      bytes_ += now;
      if (n_ > 0 && ends(here_[n_ - 1]) == here && ends(there_[n_ - 1]) == pointer(there)) {
        here_[n_ - 1].iov_len += size, there_[n_ - 1].iov_len += size;
      } else {
        here_[n_] = {here, size}, there_[n_] = {pointer(there), size};
        ++n_;
      }
      here += now, there += std::uint64_t(now), bytes -= now;
    }
  }

  void flush() {
    if (n_ == 0) return;
    const auto process = pid_t(memory_.process_);
    const ssize_t moved = write_ ? process_vm_writev(process, here_.data(), n_, there_.data(), n_, 0)
                                 : process_vm_readv(process, here_.data(), n_, there_.data(), n_, 0);
    if (moved != bytes_)
      throw Error(ErrorKind::transport,
                  "rank " + std::to_string(memory_.rank_) + " (process " + std::to_string(memory_.process_) +
                      " of this node) has " + (moved < 0 && errno == ESRCH ? "ended" : "let go of the memory") +
                      " that a window is over: what was to be " + (write_ ? "put is not there" : "got holds anything"));
    n_ = 0, bytes_ = 0;
  }

 private:
  static constexpr std::size_t most_stretches = 1024;  // of a call, IOV_MAX
  static constexpr Index most_bytes = Index{1} << 30;  // of a call; Linux moves at most 2^31 - 4096

  static void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
  static void* ends(const iovec& stretch) { return static_cast<std::byte*>(stretch.iov_base) + stretch.iov_len; }

  const ProcessMemory& memory_;
  bool write_;
  std::array<iovec, most_stretches> here_, there_;
  std::size_t n_ = 0;
  Index bytes_ = 0;
};

std::shared_ptr<const ProcessMemory> ProcessMemory::of(const Communicator& communicator, int rank,
                                                       const MemoryProof& proof) {
  const auto process = communicator.process_number(rank);
  if (process == 0) return nullptr;
  std::uint64_t value = ~proof.value;
  const iovec here{&value, sizeof value}, there{reinterpret_cast<void*>(proof.place), sizeof value};
  if (process_vm_readv(pid_t(process), &here, 1, &there, 1, 0) != ssize_t(sizeof value) || value != proof.value)
    return nullptr;
  return std::shared_ptr<const ProcessMemory>(new ProcessMemory(rank, process));
}

namespace {

/// Calls f(pair, bytes) for the stretches that are contiguous on both sides of one run.
template <class F>
void for_each_stretch(const AddressRelation& relation, F&& f) {
  const Index size = relation.element_bytes();
  for_each_run(*relation.reader(), [&](const OffsetRun& run) {
    const bool dense = run.source_step == size && run.destination_step == size;
    const Index together = dense ? run.count : 1;
    for (Index k = 0; k < run.count; k += together) f(run.at(k), together * size);
  });
}

}  // namespace

void ProcessMemory::read(const AddressRelation& relation, std::uint64_t there, std::byte* here) const {
  Batch batch(*this, false);
  for_each_stretch(relation, [&](const OffsetPair& pair, Index bytes) {
    batch.add(here + pair.destination, there + std::uint64_t(pair.source), bytes);
  });
  batch.flush();
}

void ProcessMemory::write(const AddressRelation& relation, const std::byte* here, std::uint64_t there) const {
  Batch batch(*this, true);
  for_each_stretch(relation, [&](const OffsetPair& pair, Index bytes) {
    batch.add(const_cast<std::byte*>(here) + pair.source, there + std::uint64_t(pair.destination), bytes);
  });
  batch.flush();
}

}  // namespace longshore::mpi
