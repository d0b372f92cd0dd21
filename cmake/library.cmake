# Builds the libraries that outside programs link, and their package: libreprise.so with core and
# the local adapters, and libreprise_mpi.so, libreprise_cuda.so and libreprise_nccl.so with the code
# that needs MPI, CUDA or NCCL.
# A consumer gets only the include directory of the public headers: no flags, no definitions, no
# third-party library.

set(_layers ${REPRISE_LAYERS})
list(FILTER _layers INCLUDE REGEX "^core/")
list(FILTER _layers EXCLUDE REGEX "^core/(c|c/cuda|adapters/(mpi|cuda|nccl))$")
if(NOT core/adapters/local IN_LIST _layers OR NOT core/api IN_LIST _layers)
  return()
endif()

# Exports what the version script names; symbols that the objects mark as hidden stay hidden.
function(_reprise_shared target name)
  add_library(${target} SHARED ${ARGN})
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/${name}.map)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} EXPORT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/lib INSTALL_RPATH $ORIGIN LINK_DEPENDS ${script})
  target_link_options(${target} PRIVATE LINKER:--version-script=${script} LINKER:--no-undefined)
endfunction()

set(_objects)
foreach(layer IN LISTS _layers)
  reprise_target_name(${layer} _name)
  get_target_property(_type ${_name} TYPE)
  if(NOT _type STREQUAL "INTERFACE_LIBRARY")
    list(APPEND _objects $<TARGET_OBJECTS:${_name}>)
  endif()
endforeach()
_reprise_shared(reprise_library reprise ${_objects})
foreach(layer IN LISTS _layers)
  reprise_link_third_party(reprise_library PRIVATE ${layer})
endforeach()
target_include_directories(reprise_library INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(reprise_library INTERFACE cxx_std_20)
set(_libraries reprise_library)

# Builds the library of a component that needs another library. Links the shared library first, so
# that the archives supply only what it hides; further arguments are archives.
function(_reprise_component component)
  string(TOUPPER ${component} library)
  if(REPRISE_HAVE_${library})
    _reprise_shared(reprise_library_${component} reprise_${component}
      $<TARGET_OBJECTS:reprise_core_adapters_${component}>)
    target_link_libraries(reprise_library_${component} PUBLIC reprise_library
      PRIVATE reprise_core_ports reprise_core_adapters_posix ${ARGN} reprise_dep_${component})
    set(_libraries ${_libraries} reprise_library_${component} PARENT_SCOPE)
  endif()
endfunction()
_reprise_component(mpi)
_reprise_component(cuda)
_reprise_component(nccl reprise_core_adapters_cuda)

add_custom_target(reprise_libraries)
add_dependencies(reprise_libraries ${_libraries})

# Other projects that add this tree use this target; the package defines the same one.
add_library(reprise_package INTERFACE)
target_link_libraries(reprise_package INTERFACE ${_libraries})
add_library(reprise::reprise ALIAS reprise_package)

if(NOT REPRISE_INSTALL)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/reprise)
configure_package_config_file(cmake/reprise-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/reprise-config.cmake INSTALL_DESTINATION ${_package}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/reprise-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(TARGETS ${_libraries} EXPORT reprise-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY include/reprise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(EXPORT reprise-targets NAMESPACE reprise::library_ DESTINATION ${_package} COMPONENT library)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/reprise-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/reprise-config-version.cmake
  DESTINATION ${_package} COMPONENT library)
