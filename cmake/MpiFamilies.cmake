# The MPI families that extension modules are built for: where each one's headers and library are, as longshore::libmpi_<family>.
# The installed package brings this file along, for the modules of others.
#
# A family is an ABI: MPICH's (libmpi.so.12), Open MPI's (libmpi.so.40), and the standard one (libmpi_abi.so.1). We take the
# header directory and the library file themselves and never ask mpicc, whose answer carries a run path.
option(LONGSHORE_STANDARD_ABI "The family of the standard ABI, too, where its library is" ON)
set(LONGSHORE_MPICH_ROOT "$ENV{LONGSHORE_MPICH_ROOT}" CACHE PATH "Prefix of an MPICH; empty: PyPI's mpich of this Python")
set(LONGSHORE_OPENMPI_ROOT "$ENV{LONGSHORE_OPENMPI_ROOT}" CACHE PATH "Prefix of an Open MPI; empty: its mpicc on PATH")

# The prefix into which pip put the data files of PyPI's mpich, in an isolated build environment too. Where nobody has
# looked for a Python it is python3 of PATH.
function(longshore_mpich_prefix result)
  if(Python_EXECUTABLE)
    set(python "${Python_EXECUTABLE}")
  elseif(Python3_EXECUTABLE)
    set(python "${Python3_EXECUTABLE}")
  else()
    unset(python)
    find_program(python python3 NO_CACHE)
  endif()
  if(NOT python)
    set(${result} "" PARENT_SCOPE)
    return()
  endif()
  execute_process(
    COMMAND "${python}" -c "
import importlib.metadata, pathlib, sys
for file in importlib.metadata.files('mpich') or []:
    if file.name == 'mpi.h':
        sys.stdout.write(str(pathlib.Path(file.locate()).resolve().parent.parent))
"
    OUTPUT_VARIABLE prefix ERROR_QUIET)
  set(${result} "${prefix}" PARENT_SCOPE)
endfunction()

# Open MPI by its wrapper: `mpicc.openmpi`, or an `mpicc` that knows Open MPI's own --showme.
function(longshore_openmpi_dirs include_result library_result)
  foreach(name mpicc.openmpi mpicc)
    find_program(wrapper ${name} NO_CACHE)
    if(NOT wrapper)
      continue()
    endif()
    execute_process(COMMAND "${wrapper}" --showme:incdirs OUTPUT_VARIABLE include_dirs ERROR_QUIET
                    RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND "${wrapper}" --showme:libdirs OUTPUT_VARIABLE library_dirs ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed)
      separate_arguments(include_dirs)
      separate_arguments(library_dirs)
      set(${include_result} ${include_dirs} PARENT_SCOPE)
      set(${library_result} ${library_dirs} PARENT_SCOPE)
      return()
    endif()
    unset(wrapper)
  endforeach()
endfunction()

# longshore_find_family(<family> <header> <soname> <include dirs> <library dirs>): sets <family>_INCLUDE and <family>_LIBRARY.
macro(longshore_find_family family header soname include_dirs library_dirs)
  unset(${family}_INCLUDE CACHE)  # the directories may have moved: an isolated build has a new one each time
  unset(${family}_LIBRARY CACHE)
  find_path(${family}_INCLUDE ${header} PATHS ${include_dirs} NO_DEFAULT_PATH)
  find_file(${family}_LIBRARY ${soname} PATHS ${library_dirs} NO_DEFAULT_PATH)
  mark_as_advanced(${family}_INCLUDE ${family}_LIBRARY)
  if(${family}_INCLUDE AND ${family}_LIBRARY)
    list(APPEND LONGSHORE_MPI_FAMILIES ${family})
    add_library(longshore::libmpi_${family} INTERFACE IMPORTED)
    target_include_directories(longshore::libmpi_${family} INTERFACE ${${family}_INCLUDE})
    target_link_libraries(longshore::libmpi_${family} INTERFACE ${${family}_LIBRARY})
    message(STATUS "MPI family ${family}: ${${family}_LIBRARY}")
  else()
    message(STATUS "MPI family ${family}: no ${header} with ${soname}; its module is left out")
  endif()
endmacro()

set(LONGSHORE_MPI_FAMILIES "")
set(mpich_root "${LONGSHORE_MPICH_ROOT}")
if(NOT mpich_root)
  longshore_mpich_prefix(mpich_root)
endif()
if(LONGSHORE_OPENMPI_ROOT)
  set(openmpi_include_dirs "${LONGSHORE_OPENMPI_ROOT}/include")
  set(openmpi_library_dirs "${LONGSHORE_OPENMPI_ROOT}/lib")
else()
  longshore_openmpi_dirs(openmpi_include_dirs openmpi_library_dirs)
endif()
longshore_find_family(mpich mpi.h libmpi.so.12 "${mpich_root}/include" "${mpich_root}/lib")
if(LONGSHORE_STANDARD_ABI)
  longshore_find_family(abi mpi_abi.h libmpi_abi.so.1 "${mpich_root}/include" "${mpich_root}/lib")
endif()
longshore_find_family(openmpi mpi.h libmpi.so.40 "${openmpi_include_dirs}" "${openmpi_library_dirs}")
