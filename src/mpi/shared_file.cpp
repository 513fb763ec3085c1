#include "mpi/shared_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

namespace longshore::mpi {

void* map_file(int descriptor, Index offset, Index bytes, int protection, int flags) {
  if (bytes < huge_page) return mmap(nullptr, std::size_t(bytes), protection, flags, descriptor, offset);
  const Index page = sysconf(_SC_PAGESIZE), length = ceil_div(bytes, page) * page,
              reserved = checked_add(length, huge_page);
  void* const place =
      mmap(nullptr, std::size_t(reserved), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return MAP_FAILED;
  auto* const begin = static_cast<std::byte*>(place);
  const Index before = -Index(reinterpret_cast<std::uintptr_t>(begin)) & (huge_page - 1);
  void* const data = mmap(begin + before, std::size_t(bytes), protection, flags | MAP_FIXED, descriptor, offset);
  if (data == MAP_FAILED) {
    const int error = errno;
    munmap(begin, std::size_t(reserved));
    errno = error;
    return MAP_FAILED;
  }
  if (before > 0) munmap(begin, std::size_t(before));
  if (const Index after = reserved - before - length; after > 0) munmap(begin + before + length, std::size_t(after));
  return data;
}

void ask_for_huge_pages(std::byte* data, Index bytes) {
  const Index whole = bytes & -huge_page, page = sysconf(_SC_PAGESIZE);
  if (whole == 0) return;
  madvise(data, std::size_t(whole), MADV_HUGEPAGE);
  for (Index at = 0; at < whole; at += huge_page)
    if (madvise(data + at, std::size_t(page), MADV_POPULATE_WRITE) != 0) return;
  madvise(data, std::size_t(whole), MADV_COLLAPSE);
}

Error refusal(const std::string& what) {
  return Error(ErrorKind::transport, what + ": " + std::string(std::strerror(errno)));
}

bool out_of_memory(int error) { return error == ENOMEM || error == ENOSPC || error == EFAULT || error == EFBIG; }

void fail(const char* call) {
  if (out_of_memory(errno)) throw std::bad_alloc();
  throw refusal(call);
}

SharedFile::SharedFile()
    : descriptor_{memfd_create("longshore", MFD_CLOEXEC)}, process_(getpid()), end_(sysconf(_SC_PAGESIZE)) {
  if (descriptor_.number < 0) throw refusal("memfd_create");
  if (getrandom(token_, sizeof token_, 0) != ssize_t(sizeof token_)) throw refusal("getrandom");
  reach(end_);
  if (pwrite(descriptor_.number, token_, sizeof token_, 0) != ssize_t(sizeof token_)) fail("pwrite");
}

void SharedFile::reach(Index end) {
  if (ftruncate(descriptor_.number, end) != 0) fail("ftruncate");
  end_ = end;
}

bool SharedFile::may_reach(Index end) const {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= Index(limit.rlim_cur);
}

void SharedFile::give_back(Index offset, Index bytes) {
  if (is_ours() && descriptor_.number >= 0)
    fallocate(descriptor_.number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

}  // namespace longshore::mpi
