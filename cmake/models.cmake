# Builds test_models: the CUDA adapter and the tests of tests/gpu, compiled against the model of
# CUDA's runtime in tests/models/cuda. Needs neither CUDA nor a GPU. Each schedule of the model is
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
set(_model_sources)
file(GLOB _modelled CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/core/adapters/cuda/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/core/adapters/cuda/*.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tests/gpu/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/tests/gpu/*.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tests/bench/gpu_limit.cu)
list(FILTER _modelled EXCLUDE REGEX "/no_[a-z0-9_]*\\.cpp$")
reprise_model_units("${_modelled}" _model_sources)
file(GLOB _model_own CONFIGURE_DEPENDS ${_models}/cuda/*.cpp)

add_executable(test_models ${_model_sources} ${_model_own})
target_include_directories(test_models BEFORE PRIVATE ${_models}/cuda/vendor)
target_link_libraries(test_models PRIVATE
  reprise_options GTest::gtest GTest::gmock reprise_core_api reprise_core_adapters_posix reprise_sim_fibers)
target_compile_options(test_models PRIVATE -O1)
# Tests of the model itself choose their own schedule, so they run once.
set(_models_once CudaModel.*:WhatIsWaitedFor.*:*FailingCalls*:*TwoDevices*:OwnDevice.*:Reuse.*:Stream.*)
foreach(schedule eager latest random)
  set(filter *)
  if(NOT schedule STREQUAL "latest")
    set(filter -${_models_once})
  endif()
  add_test(NAME test_models_${schedule} COMMAND test_models --gtest_brief=1 --gtest_filter=${filter}
    --gtest_output=xml:${_reports}/test_models_${schedule}.xml)
  set_tests_properties(test_models_${schedule} PROPERTIES
    TIMEOUT ${REPRISE_TEST_TIMEOUT} LABELS models WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
    ENVIRONMENT "${_environment};REPRISE_FEW=1;REPRISE_SCHEDULE=${schedule}")
endforeach()

include(removed_calls)
reprise_removed_calls(test_models tests/models/cuda/removed_calls.tsv ${_models_once} core/adapters/cuda)
if("driver/runs" IN_LIST REPRISE_LAYERS)
  include(model_scenarios)
endif()
