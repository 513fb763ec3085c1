#include "core/loaded_library.hpp"

#include <dlfcn.h>

#include "longshore/core/error.hpp"

namespace longshore {

LoadedLibrary::LoadedLibrary(const char* file, const char* needed_by, const char* package)
    : handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)), file_(file), needed_by_(needed_by), package_(package) {}

void* LoadedLibrary::address(const char* symbol) const {
  void* found = handle_ ? dlsym(handle_, symbol) : nullptr;
  if (found == nullptr)
    throw Error(ErrorKind::argument, std::string(needed_by_) + " needs the library " + file_ +
                                         ", which is not installed (Debian: apt-get install " + package_ + ")");
  return found;
}

}  // namespace longshore
