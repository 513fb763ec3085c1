# The Python extension modules: `_core`, which knows no MPI, and one `_mpi_<family>` for each MPI family that is found.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
include(cmake/MpiFamilies.cmake)

add_custom_target(longshore_python)  # what a wheel needs built

# Modules of different builds would take each other's objects for their own.
file(GLOB_RECURSE identity_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.hpp ${PROJECT_SOURCE_DIR}/src/*.hpp
     ${PROJECT_SOURCE_DIR}/bindings/*.hpp)
set(build_identity ${PROJECT_BINARY_DIR}/identity/build_identity.hpp)
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
add_custom_command(OUTPUT ${build_identity}
                   COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${build_identity}
                           "-DWORDS=${PROJECT_VERSION} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} ${LONGSHORE_SANITIZE}"
                           -P ${PROJECT_SOURCE_DIR}/cmake/BuildIdentity.cmake
                   DEPENDS ${identity_headers} ${PROJECT_SOURCE_DIR}/cmake/BuildIdentity.cmake VERBATIM)
add_custom_target(longshore_build_identity DEPENDS ${build_identity})

# longshore_python_module(<name> <sources>...)
function(longshore_python_module name)
  nanobind_add_module(${name} NB_STATIC NOMINSIZE ${ARGN})
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O2>)  # what takes time is the core
  longshore_join_some(${name} 7)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/bindings
                             ${PROJECT_BINARY_DIR}/identity)
  target_link_libraries(${name} PRIVATE longshore::core longshore_flags)
  target_link_options(${name} PRIVATE -Wl,--gc-sections,-z,noseparate-code)
  # Never a run path, in the build tree neither: what is tested is what ships.
  set_target_properties(${name} PROPERTIES SKIP_BUILD_RPATH ON INSTALL_RPATH "" INSTALL_RPATH_USE_LINK_PATH OFF)
  target_compile_definitions(${name} PRIVATE LONGSHORE_VERSION="${PROJECT_VERSION}")
  add_dependencies(${name} longshore_build_identity)
  add_dependencies(longshore_python ${name})
  install(TARGETS ${name} LIBRARY DESTINATION longshore COMPONENT python)
endfunction()

file(GLOB binding_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bindings/*.cpp)
list(FILTER binding_sources EXCLUDE REGEX "/mpi[^/]*\\.cpp$")
# What nobody calls in a loop is made small.
foreach(cold ranks rank_groups copy_transfer predict model tune floor_plans block_plans relations relation_cache encodings strips windows points
        mpi_ranks mpi_directory mpi_kernels mpi_numpy_memory)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/bindings/${cold}.cpp PROPERTIES COMPILE_OPTIONS -Os)
endforeach()
longshore_python_module(_core ${binding_sources})

nanobind_add_stub(_core_stub MODULE _core OUTPUT ${PROJECT_BINARY_DIR}/_core.pyi
                  MARKER_FILE ${PROJECT_BINARY_DIR}/py.typed
                  PYTHON_PATH $<TARGET_FILE_DIR:_core> DEPENDS _core)
add_dependencies(longshore_python _core_stub)
install(FILES ${PROJECT_BINARY_DIR}/_core.pyi ${PROJECT_BINARY_DIR}/py.typed DESTINATION longshore COMPONENT python)

# One source, once per family, linked by soname: at run time the process's own MPI is already there.
file(GLOB mpi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mpi/*.cpp ${PROJECT_SOURCE_DIR}/src/engines/mpi/*.cpp)

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
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections,-z,noseparate-code
                      -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/rank_profile.map)
  set_target_properties(${name} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/rank_profile.map)
  add_dependencies(longshore_python ${name})
  install(TARGETS ${name} LIBRARY DESTINATION longshore COMPONENT python)
endfunction()

foreach(family IN LISTS LONGSHORE_MPI_FAMILIES)
  string(TOUPPER ${family} macro_name)
  add_library(longshore_mpi_${family} STATIC ${mpi_sources})
  longshore_join_sources(longshore_mpi_${family} ${mpi_sources})
  set_target_properties(longshore_mpi_${family} PROPERTIES EXPORT_NAME mpi_${family})
  target_include_directories(longshore_mpi_${family} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(longshore_mpi_${family} PUBLIC LONGSHORE_MPI_FAMILY=${family} LONGSHORE_MPI_FAMILY_${macro_name}=1)
  target_link_libraries(longshore_mpi_${family} PUBLIC longshore::core longshore::libmpi_${family}
                        PRIVATE $<BUILD_INTERFACE:longshore_flags>)

  longshore_python_module(_mpi_${family} bindings/mpi.cpp bindings/mpi_ranks.cpp bindings/mpi_directory.cpp
                          bindings/mpi_kernels.cpp bindings/mpi_numpy_memory.cpp)
  target_link_libraries(_mpi_${family} PRIVATE longshore_mpi_${family})
  target_compile_definitions(_mpi_${family} PRIVATE LONGSHORE_MPI_MODULE=_mpi_${family})
  longshore_rank_profile(${family} ${macro_name})
endforeach()
