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

option(LONGSHORE_JOIN_SOURCES "Compile the sources of a folder as one" OFF)

# Kernels choose their instruction set at run time with target attributes, so there is no -march here.
add_library(longshore_flags INTERFACE)
target_compile_features(longshore_flags INTERFACE cxx_std_20)
# What -O3 does beyond -O2 makes code a fifth longer, and gains where loops are: in targets that say so (Core.cmake).
target_compile_options(longshore_flags INTERFACE $<$<AND:$<CONFIG:Release>,$<NOT:$<BOOL:$<TARGET_PROPERTY:LONGSHORE_LOOPS>>>>:-O2>)
target_compile_options(longshore_flags INTERFACE -Wall -Wextra -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
# A product and a sum round twice on every CPU: some compilers make one instruction of them where the CPU has it.
target_compile_options(longshore_flags INTERFACE -ffp-contract=off)
# A module takes of the core what it needs: whoever links may leave the rest out (-Wl,--gc-sections).
target_compile_options(longshore_flags INTERFACE -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(longshore_flags INTERFACE -Wno-restrict)  # GCC 12 sees overlaps in std::string that there are not
endif()
if(LONGSHORE_JOIN_SOURCES AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(longshore_flags INTERFACE "SHELL:--param ggc-min-heapsize=1000000")  # kB; looking for garbage earlier takes a tenth longer
endif()
if(LONGSHORE_SANITIZE)
  set(sanitizers -fsanitize=${LONGSHORE_SANITIZE})
  if(LONGSHORE_SANITIZE MATCHES undefined)
    # Null pointers stop AddressSanitizer as well; looking for them at every access takes a tenth of the compiler's time.
    list(APPEND sanitizers -fno-sanitize-recover=undefined -fno-sanitize=null)
  endif()
  target_compile_options(longshore_flags INTERFACE ${sanitizers} -fno-omit-frame-pointer)
  target_link_options(longshore_flags INTERFACE ${sanitizers})
endif()

# longshore_join_sources(<target> <sources>...): the sources of a folder are compiled as one where LONGSHORE_JOIN_SOURCES is on, which
# takes a third of the time, and asks for names that are unique in a room. Left as they are: kernels and what is like them, for which
# the compiler is told otherwise. Presets for work on the library have it off: a changed file is compiled alone, and is seen to include
# what it uses.
function(longshore_join_sources target)
  if(NOT LONGSHORE_JOIN_SOURCES)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE named)
    if(NOT named MATCHES "/kernels/|/bit_packing\\.cpp$|/avx")
      cmake_path(GET named PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER ${folder} group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # the main file is none of ours
endfunction()

# longshore_join_some(<target> <n>): n sources at a time, in the order in which they are given.
function(longshore_join_some target n)
  if(LONGSHORE_JOIN_SOURCES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${n})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
