# Builds tests/fuzz/<name>_fuzz.cpp into the executable fuzz_<name> with libFuzzer (preset fuzz).
# Every build with tests links the same files into test_fuzz, which replays known inputs.

if(NOT REPRISE_FUZZ)
  return()
endif()

include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
check_cxx_source_compiles(
  "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }"
  REPRISE_HAVE_LIBFUZZER)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT REPRISE_HAVE_LIBFUZZER)
  message(STATUS "Fuzz targets not built: ${CMAKE_CXX_COMPILER_ID} has no libFuzzer")
  return()
endif()

set(_root ${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz)
file(GLOB _targets CONFIGURE_DEPENDS ${_root}/*_fuzz.cpp)
file(GLOB _shared CONFIGURE_DEPENDS ${_root}/*.cpp)
list(FILTER _shared EXCLUDE REGEX "_(fuzz|test)\\.cpp$")
add_library(fuzz_shared OBJECT ${_shared})
target_link_libraries(fuzz_shared PRIVATE reprise_options)
target_compile_definitions(fuzz_shared PRIVATE
  REPRISE_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/tests/data"
  REPRISE_SOURCE_DIR="${CMAKE_CURRENT_SOURCE_DIR}")

set(_names)
foreach(source IN LISTS _targets)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${name})
  add_executable(fuzz_${name} ${source} $<TARGET_OBJECTS:fuzz_shared>)
  target_link_libraries(fuzz_${name} PRIVATE reprise_options)
  foreach(layer IN LISTS REPRISE_LAYERS)
    reprise_target_name(${layer} layer)
    target_link_libraries(fuzz_${name} PRIVATE ${layer})
  endforeach()
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  list(APPEND _names fuzz_${name})
endforeach()
add_custom_target(fuzz_all DEPENDS ${_names})
