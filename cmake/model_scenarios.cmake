# Builds test_models_scenarios: the driver and the scenarios of the GPU lane, and the tests of the job's
# kernels, with the CUDA adapter and these kernels compiled against the model of CUDA. Their objects stand before the libraries
# of the same folders, so the linker takes nothing from these.

set(_scenario_sources)
file(GLOB _scenario_units CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/core/adapters/cuda/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/core/adapters/cuda/*.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/sim/cuda/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/sim/cuda/*.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tests/sim/cuda/*_test.cpp)
list(FILTER _scenario_units EXCLUDE REGEX "/no_[a-z0-9_]*\\.cpp$")
reprise_model_units("${_scenario_units}" _scenario_sources)
file(GLOB _scenario_own CONFIGURE_DEPENDS ${_models}/cuda/*.cpp ${_models}/scenarios/*.cpp)
list(FILTER _scenario_own EXCLUDE REGEX "/cuda/[a-z0-9_]*_test\\.cpp$")

add_executable(test_models_scenarios ${_scenario_sources} ${_scenario_own})
set_property(SOURCE ${_models}/scenarios/scenarios_test.cpp APPEND PROPERTY
  COMPILE_DEFINITIONS REPRISE_SOURCE_DIR="${CMAKE_CURRENT_SOURCE_DIR}")
target_include_directories(test_models_scenarios BEFORE PRIVATE ${_models}/cuda/vendor)
target_link_libraries(test_models_scenarios PRIVATE
  reprise_options GTest::gtest GTest::gmock reprise_driver_runs reprise_sim_fibers)
target_compile_options(test_models_scenarios PRIVATE -O1)
foreach(schedule eager latest random)
  set(name test_models_scenarios_${schedule})
  set(filter)
  if(schedule STREQUAL "eager")
    set(filter --gtest_filter=One*)
  endif()
  add_test(NAME ${name} COMMAND test_models_scenarios --gtest_brief=1 ${filter}
    --gtest_output=xml:${_reports}/${name}.xml)
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${REPRISE_TEST_TIMEOUT} LABELS models WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
    ENVIRONMENT "${_environment};REPRISE_FEW=1;REPRISE_SCHEDULE=${schedule}")
endforeach()
set_property(GLOBAL APPEND_STRING PROPERTY REPRISE_TEST_LIST "test_models_scenarios\n")
