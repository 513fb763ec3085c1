/// mpi: what this library keeps with a communicator of the user's, as an MPI attribute that goes when it goes.
#pragma once

#include <memory>

#include "mpi/communicator.hpp"

namespace longshore::mpi {

/// A key whose values are given to `forget` when their communicator is freed.
int new_attribute_key(MPI_Comm_delete_attr_function* forget);

/// The key of all T. `release()` is called of one when its communicator goes, if it has that.
template <class T>
int attribute_key() {
  static const int key = new_attribute_key([](MPI_Comm, int, void* stored, void*) -> int {
    const std::unique_ptr<std::shared_ptr<T>> kept(static_cast<std::shared_ptr<T>*>(stored));
    if constexpr (requires { (*kept)->release(); }) (*kept)->release();
    return MPI_SUCCESS;
  });
  return key;
}

/// The T that is kept with the communicator; what `make()` returns, the first time.
template <class T, class Make>
std::shared_ptr<T> kept_with(MPI_Comm comm, Make&& make) {
  const int key = attribute_key<T>();
  void* stored = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm, key, &stored, &found), "MPI_Comm_get_attr");
  if (found) return *static_cast<std::shared_ptr<T>*>(stored);
  const std::shared_ptr<T> made = make();
  check_mpi(MPI_Comm_set_attr(comm, key, new std::shared_ptr<T>(made)), "MPI_Comm_set_attr");
  return made;
}

}  // namespace longshore::mpi
