#include "core/whole_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace longshore {

std::string write_whole(const std::string& path, const std::string& text) {
  const std::string hidden = path + ".part-" + std::to_string(getpid());
  std::FILE* file = std::fopen(hidden.c_str(), "w");
  if (file == nullptr) return std::strerror(errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(hidden.c_str(), path.c_str()) == 0) return {};
  const std::string why = std::strerror(errno);
  std::remove(hidden.c_str());
  return why;
}

}  // namespace longshore
