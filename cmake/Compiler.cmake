# How every target of ours is compiled. Nothing here leaks to users of the installed package.
set(CMAKE_CXX_EXTENSIONS ON)  # __int128
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the static core goes into the Python modules
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(LONGSHORE_CCACHE ccache)
mark_as_advanced(LONGSHORE_CCACHE)
if(LONGSHORE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LONGSHORE_CCACHE})
endif()

# Kernels choose their instruction set at run time with target attributes, so there is no -march here.
add_library(longshore_flags INTERFACE)
target_compile_features(longshore_flags INTERFACE cxx_std_20)
target_compile_options(longshore_flags INTERFACE -Wall -Wextra -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= $<$<CONFIG:Release>:-O3>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(longshore_flags INTERFACE -Wno-restrict)  # GCC 12 sees overlaps in std::string that there are not
endif()
if(LONGSHORE_SANITIZE)
  set(sanitizers -fsanitize=${LONGSHORE_SANITIZE})
  if(LONGSHORE_SANITIZE MATCHES undefined)
    list(APPEND sanitizers -fno-sanitize-recover=undefined)
  endif()
  target_compile_options(longshore_flags INTERFACE ${sanitizers} -fno-omit-frame-pointer)
  target_link_options(longshore_flags INTERFACE ${sanitizers})
endif()
