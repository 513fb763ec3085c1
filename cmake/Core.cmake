# longshore::core: every room that is there without MPI. A new source file in a room is found by itself.
find_package(Threads REQUIRED)
file(GLOB_RECURSE core_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
list(FILTER core_sources EXCLUDE REGEX "/src/(mpi|engines/mpi|profile/preload)/")

# Rooms whose loops go through elements, places or ranks; what the others take is calls and memory.
set(loop_sources ${core_sources})
list(FILTER loop_sources INCLUDE REGEX "/src/(copies|encodings|ranks|relations|sequences)/")
list(REMOVE_ITEM core_sources ${loop_sources})

if(core_sources)
  add_library(longshore_loops OBJECT ${loop_sources})
  set_target_properties(longshore_loops PROPERTIES LONGSHORE_LOOPS ON)
  add_library(longshore_core STATIC ${core_sources} $<TARGET_OBJECTS:longshore_loops>)
  set(core_scope PUBLIC)
else()
  add_library(longshore_core INTERFACE)  # no source written yet
  set(core_scope INTERFACE)
endif()
add_library(longshore::core ALIAS longshore_core)
set_target_properties(longshore_core PROPERTIES EXPORT_NAME core)
target_compile_features(longshore_core ${core_scope} cxx_std_20)
target_include_directories(longshore_core ${core_scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                        $<INSTALL_INTERFACE:include>)
target_link_libraries(longshore_core ${core_scope} Threads::Threads ${CMAKE_DL_LIBS})  # liblz4 is loaded when it is wanted
if(core_sources)
  target_include_directories(longshore_core PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(longshore_core PRIVATE $<BUILD_INTERFACE:longshore_flags>)
  target_include_directories(longshore_loops PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(longshore_loops PRIVATE longshore_flags Threads::Threads)
  # What a process does once at most is made small.
  foreach(cold kernel_measurement kernel_probe kernels/choice kernels/known_cpus)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/copies/${cold}.cpp PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
  endforeach()
  longshore_join_sources(longshore_core ${core_sources})
  longshore_join_sources(longshore_loops ${loop_sources})
endif()

# The finegrain engine has its ranks' stacks from Boost.Context; one source file includes it.
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.70 CONFIG QUIET COMPONENTS context)
set(LONGSHORE_WITH_FINEGRAIN ${Boost_context_FOUND})
if(LONGSHORE_WITH_FINEGRAIN)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/engines/finegrain/fibers.cpp PROPERTIES COMPILE_DEFINITIONS
                              LONGSHORE_WITH_FINEGRAIN)
  target_link_libraries(longshore_core PRIVATE Boost::context)
else()
  message(STATUS "Boost.Context (Debian: libboost-context-dev) not found: the finegrain engine is left out")
endif()
