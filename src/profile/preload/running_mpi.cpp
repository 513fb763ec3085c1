#include "profile/preload/running_mpi.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace longshore::profile {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "longshore rank profile (%s): %s\n", RunningMpi::family, why.c_str());
  std::_Exit(EXIT_FAILURE);
}

/// A library of this process that has this symbol, by its handle; whoever is linked with it will do.
void* library_with(const char* symbol) {
  Dl_info info{};
  if (void* found = dlsym(RTLD_NEXT, symbol); found != nullptr && dladdr(found, &info) != 0)
    if (void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) return handle;
  // One that was loaded for whoever loaded it alone, as Python does. This library has some of the names, too.
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(&library_with), &own);
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* into) {
        if (object->dlpi_name != nullptr && object->dlpi_name[0] != '\0')
          static_cast<std::vector<std::string>*>(into)->emplace_back(object->dlpi_name);
        return 0;
      },
      &names);
  for (const auto& name : names) {
    if (own.dli_fname != nullptr && name == own.dli_fname) continue;
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr && dlsym(handle, symbol) != nullptr) return handle;
    if (handle != nullptr) dlclose(handle);
  }
  return nullptr;
}

std::string family_of(void* handle) {
  if (dlsym(handle, "ompi_mpi_comm_world") != nullptr) return "openmpi";
  Dl_info info{};
  if (dladdr(dlsym(handle, "PMPI_Init"), &info) == 0) return "mpich";
  return std::string(info.dli_fname).find("/libmpi_abi.") != std::string::npos ? "abi" : "mpich";
}

}  // namespace

RunningMpi::RunningMpi() noexcept : handle_(library_with("PMPI_Init")) {
  if (handle_ == nullptr) refuse("this process has no MPI library with PMPI_Init");
  if (const std::string family = family_of(handle_); family != RunningMpi::family)
    refuse("this program's MPI is of the family " + family +
           "; preload the profile of that one (longshore ranks profile --family " + family + ")");
#define LONGSHORE_FIND(name)                                      \
  name = reinterpret_cast<decltype(name)>(symbol("PMPI_" #name)); \
  if (name == nullptr) refuse("this program's MPI has no PMPI_" #name);
  LONGSHORE_PROFILED(LONGSHORE_FIND)
  LONGSHORE_PROFILED_HANDLES(LONGSHORE_FIND)
#undef LONGSHORE_FIND
#define LONGSHORE_FIND(name) name = reinterpret_cast<decltype(name)>(symbol("PMPI_" #name));
  LONGSHORE_PROFILED_SINCE_4(LONGSHORE_FIND)
#undef LONGSHORE_FIND

#if defined(LONGSHORE_MPI_FAMILY_OPENMPI)
  comm_world = static_cast<MPI_Comm>(symbol("ompi_mpi_comm_world"));
  comm_self = static_cast<MPI_Comm>(symbol("ompi_mpi_comm_self"));
  comm_null = static_cast<MPI_Comm>(symbol("ompi_mpi_comm_null"));
  group_null = static_cast<MPI_Group>(symbol("ompi_mpi_group_null"));
  group_empty = static_cast<MPI_Group>(symbol("ompi_mpi_group_empty"));
  byte = static_cast<MPI_Datatype>(symbol("ompi_mpi_byte"));
#else
  comm_world = MPI_COMM_WORLD, comm_self = MPI_COMM_SELF, comm_null = MPI_COMM_NULL;
  group_null = MPI_GROUP_NULL, group_empty = MPI_GROUP_EMPTY;
  byte = MPI_BYTE;
#endif
}

void* RunningMpi::symbol(const char* name) const {
  if (void* found = dlsym(handle_, name)) return found;
  void* other = library_with(name);
  return other != nullptr ? dlsym(other, name) : nullptr;
}

const RunningMpi& mpi() {
  static const RunningMpi running;
  return running;
}

}  // namespace longshore::profile
