# What `reprise init` writes is the trainer `plain`, which the program has within it.

if(NOT TARGET reprise_cli)
  return()
endif()

foreach(file train.py trainer.yaml)
  string(MAKE_C_IDENTIFIER ${file} name)
  set(path ${CMAKE_SOURCE_DIR}/trainers/plain/${file})
  file(READ ${path} PLAIN_${name})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
endforeach()
configure_file(${CMAKE_SOURCE_DIR}/cmake/init_files.cpp.in ${CMAKE_BINARY_DIR}/generated/init_files.cpp @ONLY)
target_sources(reprise_cli PRIVATE ${CMAKE_BINARY_DIR}/generated/init_files.cpp)
