# Builds test_models and test_models_nccl: the adapters for CUDA and NCCL and their tests, compiled
# against the models of tests/models. Needs neither CUDA, NCCL nor a GPU. Each schedule of a model is
# one ctest test.

# A kernel's source is C++ here, whatever its name, so each source is included by one that says so.
function(reprise_model_units sources out)
  set(units)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH source ${CMAKE_CURRENT_SOURCE_DIR} ${source})
    string(REGEX REPLACE "[/.]" "_" name ${source})
    set(unit ${CMAKE_BINARY_DIR}/models/${name}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${source}\"\n" @ONLY)
    list(APPEND units ${unit})
  endforeach()
  set(${out} ${units} PARENT_SCOPE)
endfunction()

set(_models ${CMAKE_CURRENT_SOURCE_DIR}/tests/models)

# Adds a ctest test of the program for each schedule. ONCE is a filter of tests that choose their own
# schedule, so they run only under `latest`.
function(_reprise_add_model_tests program once)
  foreach(schedule eager latest random)
    set(filter *)
    if(NOT schedule STREQUAL "latest")
      set(filter -${once})
    endif()
    set(name ${program}_${schedule})
    add_test(NAME ${name} COMMAND ${program} --gtest_brief=1 --gtest_filter=${filter}
      --gtest_output=xml:${_reports}/${name}.xml)
    set_tests_properties(${name} PROPERTIES
      TIMEOUT ${REPRISE_TEST_TIMEOUT} LABELS models WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
      ENVIRONMENT "${_environment};REPRISE_FEW=1;REPRISE_SCHEDULE=${schedule}")
  endforeach()
endfunction()

file(GLOB _cuda_adapter CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/core/adapters/cuda/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/core/adapters/cuda/*.cu)
file(GLOB _cuda_tests CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/tests/gpu/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/tests/gpu/*.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tests/bench/gpu_limit.cu)
list(FILTER _cuda_adapter EXCLUDE REGEX "/no_[a-z0-9_]*\\.cpp$")
file(GLOB _cuda_model CONFIGURE_DEPENDS ${_models}/cuda/*.cpp)
reprise_model_units("${_cuda_adapter};${_cuda_tests}" _units)

add_executable(test_models ${_units} ${_cuda_model})
target_include_directories(test_models BEFORE PRIVATE ${_models}/cuda/vendor)
target_link_libraries(test_models PRIVATE
  reprise_options GTest::gtest GTest::gmock reprise_core_api reprise_core_adapters_posix reprise_sim_fibers)
target_compile_options(test_models PRIVATE -O1)
set(_models_once CudaModel.*:WhatIsWaitedFor.*:*FailingCalls*:*CallCount*:*TwoDevices*:OwnDevice.*:Reuse.*:Stream.*)
_reprise_add_model_tests(test_models "${_models_once}")

file(GLOB _nccl_adapter CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/core/adapters/nccl/*.cpp)
# The model runs what runs aside as a fiber.
list(FILTER _nccl_adapter EXCLUDE REGEX "/(no_nccl|aside)\\.cpp$")
file(GLOB _nccl_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/nccl/*_test.cpp)
file(GLOB _nccl_model CONFIGURE_DEPENDS ${_models}/nccl/*.cpp)
list(FILTER _cuda_model EXCLUDE REGEX "(_test|/main)\\.cpp$")
reprise_model_units("${_cuda_adapter};${_nccl_adapter};${_nccl_tests}" _units)

add_executable(test_models_nccl ${_units} ${_cuda_model} ${_nccl_model})
target_include_directories(test_models_nccl BEFORE PRIVATE ${_models}/nccl/vendor ${_models}/cuda/vendor)
target_link_libraries(test_models_nccl PRIVATE
  reprise_options GTest::gtest GTest::gmock reprise_core_api reprise_core_adapters_posix reprise_sim_world)
target_compile_options(test_models_nccl PRIVATE -O1)
set(_nccl_once NcclModel.*:*FailingNcclCalls*)
_reprise_add_model_tests(test_models_nccl "${_nccl_once}")

if(TARGET reprise_library_c)
  # What the C interface opens for a CUDA device, over the model, which it exports, too.
  file(GLOB _table CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/core/c/cuda/*.cpp)
  reprise_model_units("${_cuda_adapter};${_table}" _units)
  add_library(reprise_library_c_cuda_model SHARED ${_units} ${_cuda_model})
  target_include_directories(reprise_library_c_cuda_model BEFORE PRIVATE ${_models}/cuda/vendor)
  target_compile_definitions(reprise_library_c_cuda_model PRIVATE REPRISE_VERSION="${PROJECT_VERSION}")
  target_link_libraries(reprise_library_c_cuda_model PRIVATE
    reprise_options reprise_core_adapters_posix reprise_sim_fibers)
  target_compile_options(reprise_library_c_cuda_model PRIVATE -O1)
  # Calls the model also in a process that has loaded CUDA's own runtime, as torch does.
  target_link_options(reprise_library_c_cuda_model PRIVATE LINKER:-Bsymbolic)
  set_target_properties(reprise_library_c_cuda_model PROPERTIES
    OUTPUT_NAME reprise_c_cuda_model LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

  file(GLOB _c_tests CONFIGURE_DEPENDS ${_models}/c/*_test.cpp)
  add_executable(test_models_c ${_c_tests} ${_models}/cuda/main.cpp)
  target_include_directories(test_models_c BEFORE PRIVATE ${_models}/cuda/vendor)
  target_compile_definitions(test_models_c PRIVATE REPRISE_VERSION="${PROJECT_VERSION}"
    REPRISE_CC="${CMAKE_C_COMPILER}" REPRISE_BUILD_DIR="${CMAKE_BINARY_DIR}"
    REPRISE_MODEL_FILE="$<TARGET_FILE:reprise_library_c_cuda_model>")
  target_link_libraries(test_models_c PRIVATE reprise_library_c_cuda_model reprise_library_c
    reprise_options GTest::gtest GTest::gmock reprise_core_base)
  target_compile_options(test_models_c PRIVATE -O1)
  _reprise_add_model_tests(test_models_c OpenedFile.*)
  set_property(GLOBAL APPEND_STRING PROPERTY REPRISE_TEST_LIST "test_models_c\n")
endif()

include(removed_calls)
reprise_removed_calls(test_models tests/models/cuda/removed_calls.tsv ${_models_once} core/adapters/cuda)
reprise_removed_calls(test_models_nccl tests/models/nccl/removed_calls.tsv ${_nccl_once} core/adapters/nccl)
if("driver/runs" IN_LIST REPRISE_LAYERS)
  include(model_scenarios)
endif()
