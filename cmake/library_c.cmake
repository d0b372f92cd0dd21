# Builds libreprise_c.so, the C interface: core with the local and the socket adapter and core/c,
# exporting what reprise/c.h declares. It needs neither libreprise.so nor the system's C++ runtime,
# and takes what it can from archives, so that a program in another language can load this one file.

if(NOT TARGET reprise_library OR NOT TARGET reprise_core_c)
  return()
endif()

_reprise_shared(reprise_library_c reprise_c ${_objects} $<TARGET_OBJECTS:reprise_core_c>)
# The system's archives come first and leave nothing for shared libraries of the same name to supply.
if(NOT REPRISE_SOURCES)
  foreach(library xxhash isal)
    find_library(REPRISE_ARCHIVE_${library} lib${library}.a)
    mark_as_advanced(REPRISE_ARCHIVE_${library})
    if(REPRISE_ARCHIVE_${library})
      target_link_libraries(reprise_library_c PRIVATE ${REPRISE_ARCHIVE_${library}})
    endif()
  endforeach()
endif()
foreach(layer IN LISTS _layers)
  reprise_link_third_party(reprise_library_c PRIVATE ${layer})
endforeach()
target_link_options(reprise_library_c PRIVATE
  LINKER:--as-needed LINKER:--gc-sections -static-libstdc++ -static-libgcc)
target_include_directories(reprise_library_c INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/include)
add_dependencies(reprise_libraries reprise_library_c)
set(_libraries_c reprise_library_c)

# Builds libreprise_c_cuda.so, which that library opens for CUDA devices: the adapter, its kernels and
# CUDA's runtime. Only functions of C cross the border, so another compiler may build it. Archives
# supply what it needs and no more.
if(REPRISE_HAVE_CUDA AND TARGET reprise_core_c_cuda)
  _reprise_shared(reprise_library_c_cuda reprise_c_cuda $<TARGET_OBJECTS:reprise_core_c_cuda>)
  target_link_libraries(reprise_library_c_cuda PRIVATE
    reprise_core_adapters_cuda reprise_core_adapters_posix reprise_core_ports reprise_core_state
    reprise_core_geometry reprise_core_base)
  if(REPRISE_ARCHIVE_xxhash)
    target_link_libraries(reprise_library_c_cuda PRIVATE ${REPRISE_ARCHIVE_xxhash})
  endif()
  target_link_libraries(reprise_library_c_cuda PRIVATE reprise_dep_cuda)
  target_link_options(reprise_library_c_cuda PRIVATE
    LINKER:--as-needed LINKER:--gc-sections -static-libstdc++ -static-libgcc)
  set_target_properties(reprise_library_c_cuda PROPERTIES LINKER_LANGUAGE CXX)
  add_dependencies(reprise_libraries reprise_library_c_cuda)
  list(APPEND _libraries_c reprise_library_c_cuda)
endif()

if(REPRISE_INSTALL)
  install(TARGETS ${_libraries_c} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
endif()
