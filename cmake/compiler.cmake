# Sets language level, warnings and floating-point rules, the same for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# Warnings are errors with the compilers that the tree is checked with; a new warning of another
# compiler should not break a user's build.
set(_known OFF)
if(NOT PROJECT_IS_TOP_LEVEL)
  set(_known OFF)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  set(_known ON)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14\\.")
  set(_known ON)
endif()
option(REPRISE_WERROR "Treat warnings as errors" ${_known})

find_program(REPRISE_CCACHE ccache)
if(REPRISE_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${REPRISE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${REPRISE_CCACHE})
  # CCACHE_COMPILERTYPE, where it is set, is about the compiler of C++.
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_COMPILERTYPE=nvcc ${REPRISE_CCACHE})
endif()

# Sources include files by their path from the root of the tree, and public headers as a user does.
add_library(reprise_includes INTERFACE)
target_include_directories(reprise_includes INTERFACE
  ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/include)

add_library(reprise_options INTERFACE)
target_link_libraries(reprise_options INTERFACE reprise_includes)

# Designated initialisers leave fields at their defaults on purpose.
set(_cxx -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    -Wno-missing-field-initializers -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overlaps in std::string's operator+ that are not there.
  list(APPEND _cxx -Wno-restrict)
  if(REPRISE_UNITY)
    # GCC treats the sources of a unit as included files and warns about their unnamed namespaces.
    list(APPEND _cxx -Wno-subobject-linkage)
  endif()
else()
  list(APPEND _cxx -Wno-gnu-zero-variadic-macro-arguments)
endif()
if(REPRISE_WERROR)
  list(APPEND _cxx -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # These warnings rest on the optimiser's guesses: they are shown but not enforced.
    list(APPEND _cxx -Wno-error=array-bounds -Wno-error=stringop-overflow
         -Wno-error=stringop-overread -Wno-error=maybe-uninitialized)
  endif()
endif()

set(_cuda --fmad=false --expt-relaxed-constexpr
    "-Xcompiler=-Wall,-Wextra,-Wno-unused-parameter,-Wno-missing-field-initializers,-ffp-contract=off")
if(REPRISE_WERROR)
  list(APPEND _cuda --Werror=all-warnings "-Xcompiler=-Werror")
endif()

target_compile_options(reprise_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${_cxx}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:${_cuda}>")
