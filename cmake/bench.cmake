# tests/bench/<name>_bench.cpp become the executables bench_<name>, linked with every layer.

file(GLOB _benches CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/bench/*_bench.cpp)
if(NOT _benches)
  return()
endif()

find_package(benchmark REQUIRED)
foreach(source IN LISTS _benches)
  get_filename_component(base ${source} NAME_WE)
  string(REGEX REPLACE "_bench$" "" base ${base})
  add_executable(bench_${base} ${source})
  target_link_libraries(bench_${base} PRIVATE reprise_options benchmark::benchmark_main)
  foreach(layer IN LISTS REPRISE_LAYERS)
    reprise_target_name(${layer} target)
    target_link_libraries(bench_${base} PRIVATE ${target})
  endforeach()
  set_target_properties(bench_${base} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endforeach()
