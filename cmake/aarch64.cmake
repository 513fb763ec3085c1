# The toolchain of the preset aarch64: Debian's cross-compiler, programs run by its qemu-user, and the libraries that scripts/setup has
# unpacked into .deps/aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(system /usr/aarch64-linux-gnu)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH unpacked)
string(APPEND unpacked /.deps/aarch64)
set(CMAKE_FIND_ROOT_PATH ${unpacked} ${system})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
# Some rank maps and an encoding load libraries when they run.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${system} -E
    LD_LIBRARY_PATH=${unpacked}/lib/aarch64-linux-gnu:${unpacked}/usr/lib/aarch64-linux-gnu)
