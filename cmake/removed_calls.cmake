# Checks that a test fails without each call of an adapter.

find_program(REPRISE_PYTHON3 python3)
mark_as_advanced(REPRISE_PYTHON3)

# reprise_removed_calls(PROGRAM LIST ONCE FOLDER...): builds PROGRAM once more, as PROGRAM_switched,
# with a switch at each call of the folders, and holds LIST against it (tests/mutation/removed_calls.py).
# ONCE is a filter of tests that choose their own schedule.
function(reprise_removed_calls program list once)
  if(NOT REPRISE_PYTHON3 OR CMAKE_CXX_FLAGS_DEBUG MATCHES "-fsanitize")
    message(STATUS "Tests not built: ${program}_calls (no python3, or a sanitizer)")
    return()
  endif()
  set(mutation ${CMAKE_CURRENT_SOURCE_DIR}/tests/mutation)
  set(copy ${CMAKE_BINARY_DIR}/models/${program}_switched)
  set(sources ${mutation}/instrument.py)
  set(made)
  foreach(folder IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.hpp
      ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cuh)
    list(APPEND sources ${found})
    # Named, so that what includes them is compiled after they change.
    foreach(file IN LISTS found)
      if(NOT file MATCHES "/no_[a-z0-9_]*\\.cpp$")
        file(RELATIVE_PATH file ${CMAKE_CURRENT_SOURCE_DIR} ${file})
        list(APPEND made ${copy}/${file})
      endif()
    endforeach()
  endforeach()
  add_custom_command(OUTPUT ${copy}/sites.tsv BYPRODUCTS ${made}
    COMMAND ${REPRISE_PYTHON3} ${mutation}/instrument.py ${CMAKE_CURRENT_SOURCE_DIR} ${copy} ${ARGN}
    DEPENDS ${sources} VERBATIM)
  add_custom_target(${program}_copy DEPENDS ${copy}/sites.tsv)

  # An #include finds the copy before the original.
  add_executable(${program}_switched $<TARGET_PROPERTY:${program},SOURCES> ${mutation}/switches.cpp)
  add_dependencies(${program}_switched ${program}_copy)
  target_include_directories(${program}_switched BEFORE PRIVATE ${copy} $<TARGET_PROPERTY:${program},INCLUDE_DIRECTORIES>)
  target_link_libraries(${program}_switched PRIVATE $<TARGET_PROPERTY:${program},LINK_LIBRARIES>)
  target_compile_options(${program}_switched PRIVATE -O1)

  set(check ${REPRISE_PYTHON3} ${mutation}/removed_calls.py $<TARGET_FILE:${program}_switched>
    ${copy}/sites.tsv ${CMAKE_CURRENT_SOURCE_DIR}/${list} --once ${once})
  add_test(NAME ${program}_calls COMMAND ${check} --report ${_reports}/${program}_calls.xml)
  set_tests_properties(${program}_calls PROPERTIES TIMEOUT ${REPRISE_TEST_TIMEOUT} LABELS models PROCESSORS 2
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR} ENVIRONMENT "${_environment}")
  # Writes the list anew: ./dev mutation --adapters.
  add_custom_target(${program}_calls_write COMMAND ${check} --write DEPENDS ${program}_switched USES_TERMINAL VERBATIM)
  if(NOT TARGET removed_calls)
    add_custom_target(removed_calls)
  endif()
  add_dependencies(removed_calls ${program}_calls_write)
endfunction()
