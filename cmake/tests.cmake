# tests/<folder>/*_test.cpp become one executable test_<folder>, and one ctest test that writes its
# cases to <build>/test-reports/<name>.xml. A folder that mirrors a layer is linked with that layer
# and with properties; anything more stands in tests/links.txt. A folder with a main.cpp brings its
# own main. The list of tests is written to <build>/tests.txt.

# Optional libraries that a folder's own sources use, and the numbers of ranks that a folder is
# launched with, each one ctest test <name>_<ranks>.
set(_libraries_mpi MPI)
set(_libraries_nccl MPI CUDA NCCL)
set(_libraries_gpu CUDA)
set(_ranks_mpi 1 2 4 8)
set(_ranks_nccl 1 2)

find_package(GTest REQUIRED)
find_package(rapidcheck CONFIG REQUIRED)

set(_root ${CMAKE_CURRENT_SOURCE_DIR}/tests)
set(_reports ${CMAKE_BINARY_DIR}/test-reports)
file(MAKE_DIRECTORY ${_reports})
set(_environment
  "ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=0:allocator_may_return_null=1"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1"
  "OMPI_ALLOW_RUN_AS_ROOT=1" "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
  "RC_PARAMS=seed=1")  # properties draw the same cases in every run

# Extra links of a test folder, from tests/links.txt: "tests/folder : layer...".
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_root}/links.txt)
file(STRINGS ${_root}/links.txt _links REGEX "^tests/")
function(_reprise_extra_links folder out)
  set(extra)
  foreach(line IN LISTS _links)
    string(REGEX REPLACE "#.*" "" line "${line}")
    if(line MATCHES "^tests/([a-z0-9_/]+) *:(.*)$" AND CMAKE_MATCH_1 STREQUAL folder)
      string(STRIP "${CMAKE_MATCH_2}" words)
      string(REGEX REPLACE " +" ";" extra "${words}")
    endif()
  endforeach()
  set(${out} ${extra} PARENT_SCOPE)
endfunction()

# The layers that a test folder is linked with.
function(_reprise_test_layers folder out)
  _reprise_extra_links(${folder} layers)
  if(IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
    list(PREPEND layers ${folder})
  endif()
  set(${out} ${layers} PARENT_SCOPE)
endfunction()

function(_reprise_register name folder)
  set(report --gtest_brief=1 --gtest_output=xml:${_reports}/${name}.xml)
  if(_ranks_${folder})
    # Rank 0 alone writes the report.
    foreach(ranks IN LISTS _ranks_${folder})
      math(EXPR others "${ranks} - 1")
      set(rest)
      if(others)
        set(rest : -n ${others} $<TARGET_FILE:${name}> --gtest_brief=1)
      endif()
      add_test(NAME ${name}_${ranks} COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe -n 1
        $<TARGET_FILE:${name}> --gtest_brief=1 --gtest_output=xml:${_reports}/${name}_${ranks}.xml ${rest})
      set_tests_properties(${name}_${ranks} PROPERTIES PROCESSORS 2)
      list(APPEND tests ${name}_${ranks})
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${name} ${report})
    set(tests ${name})
  endif()
  set_tests_properties(${tests} PROPERTIES
    TIMEOUT ${REPRISE_TEST_TIMEOUT} ENVIRONMENT "${_environment}" LABELS "${folder}"
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

# Why a folder of tests is not built here; empty if it is.
function(_reprise_not_built folder layers out)
  set(why "")
  foreach(library IN LISTS _libraries_${folder})
    if(NOT REPRISE_HAVE_${library})
      set(why "no ${library}")
    endif()
  endforeach()
  if(folder MATCHES "^(cli|lanes)$" AND NOT TARGET reprise)
    set(why "no program")
  endif()
  foreach(layer IN LISTS layers)
    if(NOT why AND NOT layer IN_LIST REPRISE_LAYERS)
      set(why "without ${layer}")
    endif()
  endforeach()
  set(${out} "${why}" PARENT_SCOPE)
endfunction()

function(_reprise_add_test folder)
  string(REPLACE "/" "_" name test_${folder})
  _reprise_test_layers(${folder} layers)
  _reprise_not_built(${folder} "${layers}" why)
  if(why)
    message(STATUS "Tests not built: tests/${folder} (${why})")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${_root}/${folder}/*.cpp)
  if(REPRISE_HAVE_CUDA)
    file(GLOB kernels CONFIGURE_DEPENDS ${_root}/${folder}/*.cu)
    list(APPEND sources ${kernels})
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE reprise_options rapidcheck)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1>)  # compiled more than run
  if("${_root}/${folder}/main.cpp" IN_LIST sources)
    target_link_libraries(${name} PRIVATE GTest::gtest GTest::gmock)
  else()
    target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest GTest::gtest_main)
  endif()
  if(layers AND "properties" IN_LIST REPRISE_LAYERS)
    list(APPEND layers properties)
  endif()
  foreach(layer IN LISTS layers)
    reprise_target_name(${layer} target)
    target_link_libraries(${name} PRIVATE ${target})
  endforeach()
  reprise_link_third_party(${name} PRIVATE tests/${folder})
  foreach(library IN LISTS _libraries_${folder})
    string(TOLOWER ${library} library)
    target_link_libraries(${name} PRIVATE reprise_dep_${library})
  endforeach()
  if(folder MATCHES "^(cli|lanes)$")
    target_compile_definitions(${name} PRIVATE REPRISE_EXE="$<TARGET_FILE:reprise>")
    add_dependencies(${name} reprise)
  elseif(folder STREQUAL "must_not_compile")
    target_compile_definitions(${name} PRIVATE REPRISE_CXX="${CMAKE_CXX_COMPILER}")
  endif()
  target_compile_definitions(${name} PRIVATE
    REPRISE_TEST_DATA="${_root}/data" REPRISE_SOURCE_DIR="${CMAKE_CURRENT_SOURCE_DIR}")
  _reprise_register(${name} ${folder})
  set_property(GLOBAL APPEND_STRING PROPERTY REPRISE_TEST_LIST "${name}\n")
endfunction()

file(GLOB_RECURSE _found CONFIGURE_DEPENDS RELATIVE ${_root} ${_root}/*_test.cpp ${_root}/*_test.cu)
set(_folders)
foreach(file IN LISTS _found)
  get_filename_component(folder ${file} DIRECTORY)
  if(folder AND NOT folder MATCHES "^(data|bench|contracts)(/|$)")
    list(APPEND _folders ${folder})
  endif()
endforeach()
list(REMOVE_DUPLICATES _folders)
foreach(folder IN LISTS _folders)
  _reprise_add_test(${folder})
endforeach()

get_property(_list GLOBAL PROPERTY REPRISE_TEST_LIST)
file(WRITE ${CMAKE_BINARY_DIR}/tests.txt "${_list}")
