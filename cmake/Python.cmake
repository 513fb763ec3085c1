# The Python extension modules: `_core`, which knows no MPI, `_bench`, the loops that benchmarks time, and one `_mpi_<family>` for
# each MPI family that is found.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
include(cmake/MpiFamilies.cmake)

add_custom_target(longshore_python)  # what a wheel needs built

# longshore_python_module(<name> <sources>...)
function(longshore_python_module name)
  nanobind_add_module(${name} NB_STATIC ${ARGN})
  longshore_join_some(${name} 7)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/bindings)
  target_link_libraries(${name} PRIVATE longshore::core longshore_flags)
  # Never a run path, in the build tree neither: what is tested is what ships.
  set_target_properties(${name} PROPERTIES SKIP_BUILD_RPATH ON INSTALL_RPATH "" INSTALL_RPATH_USE_LINK_PATH OFF)
  target_compile_definitions(${name} PRIVATE LONGSHORE_VERSION="${PROJECT_VERSION}")
  add_dependencies(longshore_python ${name})
  install(TARGETS ${name} LIBRARY DESTINATION longshore COMPONENT python)
endfunction()

file(GLOB binding_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bindings/*.cpp)
list(FILTER binding_sources EXCLUDE REGEX "/(mpi|apps|bench|peers)[^/]*\\.cpp$")
longshore_python_module(_core ${binding_sources})

file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bindings/bench*.cpp ${PROJECT_SOURCE_DIR}/bench/loops/*.cpp)
list(FILTER bench_sources EXCLUDE REGEX "/bench_halo\\.cpp$")
longshore_python_module(_bench ${bench_sources})
target_include_directories(_bench PRIVATE ${PROJECT_SOURCE_DIR}/bench/loops)

# Other libraries' sets of ranks, which `longshore bench ranks` times beside ours where they are installed. A module of its own, so
# that nothing else needs them; sdsl-lite is under the GPL, so wheels for others are built without (LONGSHORE_BENCH_PEERS=OFF).
option(LONGSHORE_BENCH_PEERS "sdsl-lite and CRoaring in `longshore bench ranks`, where they are found" ON)
if(LONGSHORE_BENCH_PEERS)
  find_path(LONGSHORE_SDSL_INCLUDE sdsl/sd_vector.hpp)
  find_library(LONGSHORE_SDSL_LIBRARY sdsl)
  find_path(LONGSHORE_ROARING_INCLUDE roaring/roaring.h)
  find_library(LONGSHORE_ROARING_LIBRARY roaring)
  if((LONGSHORE_SDSL_INCLUDE AND LONGSHORE_SDSL_LIBRARY) OR (LONGSHORE_ROARING_INCLUDE AND LONGSHORE_ROARING_LIBRARY))
    longshore_python_module(_peers bindings/peers.cpp bench/peers/peers.cpp)
    target_include_directories(_peers PRIVATE ${PROJECT_SOURCE_DIR}/bench/loops ${PROJECT_SOURCE_DIR}/bench/peers)
    foreach(peer IN ITEMS SDSL ROARING)
      if(LONGSHORE_${peer}_INCLUDE AND LONGSHORE_${peer}_LIBRARY)
        target_compile_definitions(_peers PRIVATE LONGSHORE_PEER_${peer}=1)
        target_include_directories(_peers SYSTEM PRIVATE ${LONGSHORE_${peer}_INCLUDE})
        target_link_libraries(_peers PRIVATE ${LONGSHORE_${peer}_LIBRARY})
      endif()
    endforeach()
  endif()
endif()

nanobind_add_stub(_core_stub MODULE _core OUTPUT ${PROJECT_BINARY_DIR}/_core.pyi
                  MARKER_FILE ${PROJECT_BINARY_DIR}/py.typed
                  PYTHON_PATH $<TARGET_FILE_DIR:_core> DEPENDS _core)
add_dependencies(longshore_python _core_stub)
install(FILES ${PROJECT_BINARY_DIR}/_core.pyi ${PROJECT_BINARY_DIR}/py.typed DESTINATION longshore COMPONENT python)

# One source, once per family, linked by soname: at run time the process's own MPI is already there. What benchmarks time under MPI,
# halo exchanges and the applications, are modules of their own.
include(apps/apps.cmake)
file(GLOB mpi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mpi/*.cpp ${PROJECT_SOURCE_DIR}/src/engines/mpi/*.cpp)
file(GLOB halo_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bindings/bench_halo.cpp ${PROJECT_SOURCE_DIR}/bench/halo/*.cpp)

# The profile of communicators, which is preloaded: linked with no MPI, and with all that it needs of C++, so that it brings nothing
# into the programs it runs under but itself.
file(GLOB rank_profile_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/profile/preload/*.cpp)
function(longshore_rank_profile family macro_name)
  set(name _rank_profile_${family})
  add_library(${name} MODULE ${rank_profile_sources})
  longshore_join_sources(${name} ${rank_profile_sources})
  set_target_properties(${name} PROPERTIES PREFIX "" SKIP_BUILD_RPATH ON INSTALL_RPATH "" INSTALL_RPATH_USE_LINK_PATH OFF)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${name} SYSTEM PRIVATE ${${family}_INCLUDE})
  target_compile_definitions(${name} PRIVATE LONGSHORE_MPI_FAMILY=${family} LONGSHORE_MPI_FAMILY_${macro_name}=1)
  target_link_libraries(${name} PRIVATE longshore::core longshore_flags)
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections
                      -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/rank_profile.map)
  set_target_properties(${name} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/rank_profile.map)
  add_dependencies(longshore_python ${name})
  install(TARGETS ${name} LIBRARY DESTINATION longshore COMPONENT python)
endfunction()

# longshore_mpi_module(<name> <family> <sources>...)
function(longshore_mpi_module name family)
  longshore_python_module(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE longshore_mpi_${family})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

foreach(family IN LISTS LONGSHORE_MPI_FAMILIES)
  string(TOUPPER ${family} macro_name)
  add_library(longshore_mpi_${family} STATIC ${mpi_sources})
  longshore_join_sources(longshore_mpi_${family} ${mpi_sources})
  set_target_properties(longshore_mpi_${family} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  target_include_directories(longshore_mpi_${family} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(longshore_mpi_${family} SYSTEM PUBLIC ${${family}_INCLUDE})
  target_compile_definitions(longshore_mpi_${family} PUBLIC LONGSHORE_MPI_FAMILY=${family} LONGSHORE_MPI_FAMILY_${macro_name}=1)
  target_link_libraries(longshore_mpi_${family} PUBLIC longshore::core ${${family}_LIBRARY} PRIVATE longshore_flags)

  longshore_mpi_module(_mpi_${family} ${family} bindings/mpi.cpp bindings/mpi_ranks.cpp)
  target_compile_definitions(_mpi_${family} PRIVATE LONGSHORE_MPI_MODULE=_mpi_${family})
  longshore_rank_profile(${family} ${macro_name})
  if(family STREQUAL abi)
    continue()  # nobody has two MPIs to time; the engine is there
  endif()
  longshore_mpi_module(_halo_${family} ${family} ${halo_sources})
  target_compile_definitions(_halo_${family} PRIVATE LONGSHORE_MPI_MODULE=_halo_${family})
  target_include_directories(_halo_${family} PRIVATE ${PROJECT_SOURCE_DIR}/bench/halo)
  longshore_mpi_module(_apps_${family} ${family} bindings/apps.cpp)
  target_compile_definitions(_apps_${family} PRIVATE LONGSHORE_MPI_MODULE=_apps_${family})
  longshore_apps(_apps_${family})
endforeach()
