# C++ tests: the files tests/<room>/*_test.cpp are one program a room; those of tests/properties also get rapidcheck. Those of tests/fuzz
# are a program each: every format has helpers of its own there.
include(GoogleTest)
add_custom_target(longshore_tests)
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  message(WARNING "GoogleTest (Debian: libgtest-dev) not found: there are no C++ tests")
  return()
endif()
find_package(rapidcheck QUIET)
if(NOT rapidcheck_FOUND)
  message(STATUS "rapidcheck (Debian: librapidcheck-dev) not found: tests/properties are left out")
endif()

# What is tested is optimised; the tests themselves need not be, and compile twice as fast.
set(test_optimisation -Og)
if(LONGSHORE_SANITIZE)
  set(test_optimisation -O0)
endif()
if(LONGSHORE_SANITIZE MATCHES undefined)
  list(APPEND test_optimisation -fno-sanitize=undefined)  # the library's own sources are looked at; that is a third of the compiler's time
endif()

# longshore_add_tests(<target> <room> <sources>...)
function(longshore_add_tests target room)
  add_executable(${target} ${ARGN})
  longshore_join_some(${target} 5)  # so that all processors have something to do
  target_compile_options(${target} PRIVATE ${test_optimisation})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE longshore::core longshore_flags GTest::gtest GTest::gtest_main)
  if(room STREQUAL properties)
    target_link_libraries(${target} PRIVATE rapidcheck)
  elseif(room STREQUAL mpi)  # what of it needs no MPI
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src/mpi/shared_file.cpp ${PROJECT_SOURCE_DIR}/src/mpi/shared_heap.cpp
                   ${PROJECT_SOURCE_DIR}/src/mpi/available_memory.cpp)
  endif()
  add_dependencies(longshore_tests ${target})
  if(CMAKE_CROSSCOMPILING)  # an emulator takes longer to start a program than most of its tests do
    add_test(NAME ${room}/${target} COMMAND ${target})
    set_tests_properties(${room}/${target} PROPERTIES TIMEOUT 300)
  else()
    gtest_discover_tests(${target} TEST_PREFIX "${room}/" DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT 300)
  endif()
endfunction()

file(GLOB rooms CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/tests/*)
set(LONGSHORE_TEST_ROOMS "" CACHE STRING "Rooms whose tests are built; empty: all")
foreach(room IN LISTS rooms)
  file(GLOB test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${room}/*_test.cpp)
  if(NOT test_sources OR (LONGSHORE_TEST_ROOMS AND NOT room IN_LIST LONGSHORE_TEST_ROOMS))
    continue()
  elseif(room STREQUAL properties AND NOT rapidcheck_FOUND)
    continue()
  elseif(room STREQUAL fuzz)
    foreach(source IN LISTS test_sources)
      cmake_path(GET source STEM name)
      longshore_add_tests(${room}_${name} ${room} ${source})
    endforeach()
  else()
    longshore_add_tests(${room}_tests ${room} ${test_sources})
  endif()
endforeach()
