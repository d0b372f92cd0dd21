# What every page has within it: the style sheet and the script of reports/pages.

if(NOT TARGET reprise_reports_pages)
  return()
endif()

foreach(file page.css page.js)
  string(MAKE_C_IDENTIFIER ${file} name)
  set(path ${CMAKE_SOURCE_DIR}/reports/pages/${file})
  file(READ ${path} PAGE_${name})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
endforeach()
configure_file(${CMAKE_SOURCE_DIR}/cmake/page_files.cpp.in ${CMAKE_BINARY_DIR}/generated/page_files.cpp @ONLY)
target_sources(reprise_reports_pages PRIVATE ${CMAKE_BINARY_DIR}/generated/page_files.cpp)
