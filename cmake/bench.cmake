# Builds tests/bench/<name>_bench.cpp into the executable bench_<name>. Links every layer and the
# other sources there into each of them, and main.cpp unless a benchmark has its own main.

file(GLOB _bench_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/bench/*.cpp)
set(_benches ${_bench_sources})
list(FILTER _benches INCLUDE REGEX "_bench\\.cpp$")
list(FILTER _bench_sources EXCLUDE REGEX "_bench\\.cpp$")
if(NOT _benches)
  return()
endif()

# Like an adapter, code for a GPU has a no_*.cpp that replaces it in builds without CUDA.
if(REPRISE_HAVE_CUDA)
  list(FILTER _bench_sources EXCLUDE REGEX "/no_[a-z0-9_]*\\.cpp$")
  file(GLOB _bench_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/bench/*.cu)
  list(APPEND _bench_sources ${_bench_kernels})
endif()

find_package(benchmark REQUIRED)
add_library(reprise_bench STATIC ${_bench_sources})
target_link_libraries(reprise_bench PUBLIC reprise_options benchmark::benchmark)
foreach(layer IN LISTS REPRISE_LAYERS)
  reprise_target_name(${layer} target)
  target_link_libraries(reprise_bench PUBLIC ${target})
endforeach()

foreach(source IN LISTS _benches)
  get_filename_component(base ${source} NAME_WE)
  string(REGEX REPLACE "_bench$" "" base ${base})
  add_executable(bench_${base} ${source})
  target_link_libraries(bench_${base} PRIVATE reprise_bench)
  set_target_properties(bench_${base} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endforeach()
