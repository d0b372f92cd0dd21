# Builds libreprise_c.so, the C interface: core with the local and the socket adapter and core/c,
# exporting what reprise/c.h declares. It needs neither libreprise.so nor the system's C++ runtime,
# and takes what it can from archives, so that a program in another language can load this one file.

if(NOT TARGET reprise_library OR NOT TARGET reprise_core_c)
  return()
endif()

_reprise_shared(reprise_library_c reprise_c ${_objects} $<TARGET_OBJECTS:reprise_core_c>)
# Archives come first and leave nothing for shared libraries of the same name to supply.
foreach(library xxhash isal)
  find_library(REPRISE_ARCHIVE_${library} lib${library}.a)
  mark_as_advanced(REPRISE_ARCHIVE_${library})
  if(REPRISE_ARCHIVE_${library})
    target_link_libraries(reprise_library_c PRIVATE ${REPRISE_ARCHIVE_${library}})
  endif()
endforeach()
foreach(layer IN LISTS _layers)
  reprise_link_third_party(reprise_library_c PRIVATE ${layer})
endforeach()
target_link_options(reprise_library_c PRIVATE
  LINKER:--as-needed LINKER:--gc-sections -static-libstdc++ -static-libgcc)
target_include_directories(reprise_library_c INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/include)
add_dependencies(reprise_libraries reprise_library_c)

if(REPRISE_INSTALL)
  install(TARGETS reprise_library_c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
endif()
