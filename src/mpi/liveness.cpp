#include "mpi/liveness.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

namespace longshore::mpi {

namespace {

/// Of /proc/.../stat, from behind the name: fields 3 (state), 20 (threads) and 22 (start).
constexpr const char* fields = " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %lld";

/// What /proc says of a process.
struct Status {
  char state = '?';
  long threads = 0;
  long long started = 0;
};

/// Nothing where it cannot be read, with errno.
std::optional<Status> status_of(std::int64_t process) {
  char path[64], text[1024];
  std::snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(process));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const ssize_t length = read(file, text, sizeof text - 1);
  const int error = errno;
  close(file);
  if (length <= 0) {
    errno = error;
    return std::nullopt;
  }
  text[length] = '\0';
  // "number (name) state ...": the name may hold anything.
  const char* const name_end = std::strrchr(text, ')');
  Status status;
  if (name_end == nullptr || std::sscanf(name_end + 1, fields, &status.state, &status.threads, &status.started) != 3) {
    errno = EINVAL;
    return std::nullopt;
  }
  return status;
}

}  // namespace

ProcessId this_process() {
  struct stat space {};
  const auto status = status_of(getpid());
  if (!status || stat("/proc/self/ns/pid", &space) != 0) return {};
  return {getpid(), status->started, std::int64_t(space.st_ino)};
}

ProcessId visible(const ProcessId& process) {
  if (process.number == 0 || process.space != this_process().space) return {};
  const auto status = status_of(process.number);
  return status && status->started == process.started ? process : ProcessId{};
}

bool has_ended(const ProcessId& process) {
  if (process.number == 0) return false;
  if (const auto status = status_of(process.number)) {
    // The first thread of a process may end, and be a zombie, while others run.
    const bool dead = (status->state == 'Z' && status->threads <= 1) || status->state == 'X';
    return dead || status->started != process.started;
  }
  return errno == ENOENT || errno == ESRCH || (kill(pid_t(process.number), 0) != 0 && errno == ESRCH);
}

}  // namespace longshore::mpi
