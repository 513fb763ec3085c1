# lab_apps(<target>): adds the applications of ../apps and their hand-written twins to a target that has an MPI and the mpi engine,
# and <app_lines.hpp>, which has the lines that each takes for its communication. An application whose library is not found is left
# out; LONGSHORE_WITH_FFTW and LONGSHORE_WITH_BLAS say which there are.
cmake_path(GET PROJECT_SOURCE_DIR PARENT_PATH checkout)
find_path(LAB_FFTW_INCLUDE fftw3.h)
find_library(LAB_FFTW_LIBRARY fftw3)
find_path(LAB_BLAS_INCLUDE cblas.h PATH_SUFFIXES openblas openblas-pthread openblas-serial)
find_library(LAB_BLAS_LIBRARY NAMES openblas cblas blas)
mark_as_advanced(LAB_FFTW_INCLUDE LAB_FFTW_LIBRARY LAB_BLAS_INCLUDE LAB_BLAS_LIBRARY)

# How many lines of these files (paths from the checkout) are neither blank nor a comment.
function(lab_count_lines result)
  set(sum 0)
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${checkout}/${file})
    file(READ ${checkout}/${file} text)
    string(REGEX REPLACE "[][;\\\\]" "." text "${text}")  # they mean something to lists
    string(REGEX MATCHALL "\n[ \t]*([^ \t\n/]|/[^/])[^\n]*" lines "\n${text}")
    list(LENGTH lines count)
    math(EXPR sum "${sum} + ${count}")
  endforeach()
  set(${result} ${sum} PARENT_SCOPE)
endfunction()

# The files of lab/twins that these (paths from the checkout) are, or include.
function(lab_twin_files result)
  set(files "")
  set(rest ${ARGN})
  while(rest)
    list(POP_FRONT rest file)
    if(NOT file IN_LIST files)
      list(APPEND files ${file})
      file(STRINGS ${checkout}/${file} includes REGEX "^#include \"lab/twins/")
      list(TRANSFORM includes REPLACE "^#include \"(.*)\".*" "\\1")
      list(APPEND rest ${includes})
    endif()
  endwhile()
  set(${result} ${files} PARENT_SCOPE)
endfunction()

function(lab_apps target)
  target_sources(${target} PRIVATE ${checkout}/apps/apps.cpp)
  set(lines "")
  file(GLOB apps CONFIGURE_DEPENDS RELATIVE ${checkout}/apps ${checkout}/apps/*/communication.hpp)
  foreach(app IN LISTS apps)
    cmake_path(GET app PARENT_PATH name)
    lab_count_lines(longshore apps/${name}/communication.hpp)
    lab_twin_files(twin_files lab/twins/${name}.hpp lab/twins/${name}.cpp)
    lab_count_lines(twin ${twin_files})
    string(APPEND lines "    {\"${name}\", ${longshore}, ${twin}},\n")

    set(library "")
    if(name STREQUAL ft)
      set(library FFTW)
    elseif(name STREQUAL summa)
      set(library BLAS)
    endif()
    if(library)
      if(NOT LAB_${library}_INCLUDE OR NOT LAB_${library}_LIBRARY)
        message(STATUS "Application ${name} is left out: there is no ${library}")
        continue()
      endif()
      target_include_directories(${target} PRIVATE ${LAB_${library}_INCLUDE})
      target_link_libraries(${target} PRIVATE ${LAB_${library}_LIBRARY})
      target_compile_definitions(${target} PRIVATE LONGSHORE_WITH_${library}=1)
    endif()
    file(GLOB sources CONFIGURE_DEPENDS ${checkout}/apps/${name}/*.cpp ${checkout}/lab/twins/${name}.cpp)
    target_sources(${target} PRIVATE ${sources})
  endforeach()
  file(CONFIGURE OUTPUT apps/app_lines.hpp CONTENT "/// Lines of communication code, neither blank nor comment.
#pragma once

namespace longshore::apps {

/// What an application has in its communication.hpp; what its twin has in its own files and what they include of lab/twins.
struct Lines {
  const char* application;
  int longshore, twin;
};

inline constexpr Lines lines[] = {
${lines}};

}  // namespace longshore::apps
")
  target_include_directories(${target} PRIVATE ${checkout} ${CMAKE_CURRENT_BINARY_DIR}/apps)
endfunction()
