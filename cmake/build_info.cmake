# Writes the commit, and whether the tree differs from it, to one small source file. Every build
# updates the file, but only if its content changed: a commit relinks the program and does not
# recompile the tree.

if(NOT TARGET reprise_driver_record)
  return()
endif()

find_package(Git QUIET)
set(_generated ${CMAKE_BINARY_DIR}/generated/build_info.cpp)
set(_write ${CMAKE_COMMAND}
  -DVERSION=${PROJECT_VERSION} -DGIT=${GIT_EXECUTABLE} -DSOURCE=${CMAKE_SOURCE_DIR}
  -DTEMPLATE=${CMAKE_SOURCE_DIR}/cmake/build_info.cpp.in -DOUTPUT=${_generated}
  "-DBUILD=${CMAKE_BUILD_TYPE} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
  -DHAVE_MPI=${REPRISE_HAVE_MPI} -DHAVE_CUDA=${REPRISE_HAVE_CUDA} -DHAVE_NCCL=${REPRISE_HAVE_NCCL}
  -P ${CMAKE_SOURCE_DIR}/cmake/write_build_info.cmake)
add_custom_target(reprise_write_build_info COMMAND ${_write} BYPRODUCTS ${_generated} VERBATIM)
add_library(reprise_build_info STATIC ${_generated})
add_dependencies(reprise_build_info reprise_write_build_info)
target_link_libraries(reprise_build_info PRIVATE reprise_options)

get_target_property(_type reprise_driver_record TYPE)
if(_type STREQUAL "INTERFACE_LIBRARY")
  target_link_libraries(reprise_driver_record INTERFACE reprise_build_info)
else()
  target_link_libraries(reprise_driver_record PUBLIC reprise_build_info)
endif()
