# find_package(longshore CONFIG [COMPONENTS mpi|mpich|openmpi|abi]). The Python wheel takes the install component `python` only.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/longshore)

install(TARGETS longshore_core EXPORT longshore-core ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
add_custom_target(longshore_development)  # what an installation needs built
add_dependencies(longshore_development longshore_core)
install(EXPORT longshore-core NAMESPACE longshore:: DESTINATION ${config_dir} COMPONENT development)
if(TARGET longshore_mpi)
  add_dependencies(longshore_development longshore_mpi)
  install(TARGETS longshore_mpi EXPORT longshore-mpi ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(EXPORT longshore-mpi NAMESPACE longshore:: DESTINATION ${config_dir} COMPONENT development)
endif()
# The engine for extension modules: once a family, which is looked for again where it is used.
foreach(family IN LISTS LONGSHORE_MPI_FAMILIES)
  add_dependencies(longshore_development longshore_mpi_${family})
  install(TARGETS longshore_mpi_${family} EXPORT longshore-${family} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT development)
  install(EXPORT longshore-${family} NAMESPACE longshore:: DESTINATION ${config_dir} COMPONENT development)
endforeach()
install(DIRECTORY include/longshore DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

configure_package_config_file(cmake/longshoreConfig.cmake.in longshoreConfig.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(longshoreConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/longshoreConfig.cmake ${PROJECT_BINARY_DIR}/longshoreConfigVersion.cmake
              cmake/MpiFamilies.cmake DESTINATION ${config_dir} COMPONENT development)
