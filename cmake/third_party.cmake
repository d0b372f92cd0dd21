# Lists the libraries that each folder uses. CMake looks for a library only if a folder that is
# built uses it. PUBLIC ones may appear in that folder's headers.

set(REPRISE_THIRD_PARTY
  # folder                library      visibility
  "core/base              xxhash       PRIVATE"
  "core/base              json         PRIVATE"
  "core/format/zip        isal         PRIVATE"
  "core/format            json         PRIVATE"
  "core/verify            json         PRIVATE"
  "core/seal              json         PRIVATE"
  "core/diff              json         PRIVATE"
  "core/adapters/posix    threads      PRIVATE"
  "core/adapters/socket   threads      PRIVATE"
  "core/adapters/mpi      threads      PRIVATE"
  "sim/fibers             context      PRIVATE"
  "reports                json         PUBLIC"
  "reports                pugixml      PRIVATE"
  "reports/gate           json         PRIVATE"
  "reports/pages          json         PRIVATE"
  "driver/yaml            yaml         PUBLIC"
  "driver/trainers        yaml         PRIVATE"
  "driver/language        yaml         PRIVATE"
  "driver/record          json         PRIVATE"
  "driver/record          spdlog       PRIVATE"
  "driver/watch           fmt          PRIVATE"
  "driver/watch           json         PRIVATE"
  "driver/runs            json         PRIVATE"
  "driver/witness         json         PRIVATE"
  "driver/programs        json         PRIVATE"
  "driver/programs        yaml         PRIVATE"
  "cli/keys               re2          PRIVATE"
  "cli/output             cli11        PRIVATE"
  "cli/output             fmt          PRIVATE"
  "cli/output             json         PRIVATE"
  "cli/arguments          fmt          PRIVATE"
  "cli/arguments          json         PRIVATE"
  "cli/plan               fmt          PRIVATE"
  "cli/frame              cli11        PRIVATE"
  "cli/checkpoints        fmt          PRIVATE"
  "cli/checkpoints        json         PRIVATE"
  "cli                    cli11        PRIVATE"
  "cli                    fmt          PRIVATE"
  "cli                    json         PRIVATE"
  "tests/core/format      zip          PRIVATE"
  "tests/core/format      json         PRIVATE"
  "tests/reports          json         PRIVATE"
  "tests/reports          pugixml      PRIVATE"
  "tests/reports/gate     json         PRIVATE"
  "tests/driver           json         PRIVATE"
  "tests/driver           yaml         PRIVATE"
  "tests/cli              cli11        PRIVATE"
  "tests/cli              json         PRIVATE"
  "tests/cli/checkpoints  json         PRIVATE"
  "tests/cli/output       json         PRIVATE")

# Makes a target for a library that has a header and an archive but no CMake package.
function(_reprise_plain_library target header library)
  find_path(${target}_INCLUDE ${header})
  find_library(${target}_LIBRARY ${library})
  mark_as_advanced(${target}_INCLUDE ${target}_LIBRARY)
  if(NOT ${target}_INCLUDE OR NOT ${target}_LIBRARY)
    message(FATAL_ERROR "${header} / lib${library} not found; './dev setup' installs it")
  endif()
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
endfunction()

# Sets reprise_dep_<name>, an interface target that stands for the library.
macro(_reprise_package name package target)
  find_package(${package} ${ARGN} REQUIRED)
  add_library(reprise_dep_${name} INTERFACE)
  target_link_libraries(reprise_dep_${name} INTERFACE ${target})
endmacro()

function(_reprise_find_third_party name)
  if(TARGET reprise_dep_${name})
    return()
  endif()
  if(name STREQUAL "fmt")
    _reprise_package(fmt fmt fmt::fmt)
  elseif(name STREQUAL "spdlog")
    _reprise_package(spdlog spdlog spdlog::spdlog)  # SPDLOG_COMPILED_LIB, SPDLOG_FMT_EXTERNAL
  elseif(name STREQUAL "json")
    _reprise_package(json nlohmann_json nlohmann_json::nlohmann_json)
  elseif(name STREQUAL "yaml")
    _reprise_package(yaml yaml-cpp yaml-cpp)
  elseif(name STREQUAL "cli11")
    _reprise_package(cli11 CLI11 CLI11::CLI11)
  elseif(name STREQUAL "context")
    _reprise_package(context Boost Boost::context COMPONENTS context)
  elseif(name STREQUAL "pugixml")
    _reprise_package(pugixml pugixml pugixml::pugixml)
  elseif(name STREQUAL "crypto")
    _reprise_package(crypto OpenSSL OpenSSL::Crypto)
  elseif(name STREQUAL "threads")
    _reprise_package(threads Threads Threads::Threads)
  elseif(name STREQUAL "isal")
    _reprise_plain_library(reprise_dep_isal isa-l/crc.h isal)
  elseif(name STREQUAL "xxhash")
    _reprise_plain_library(reprise_dep_xxhash xxhash.h xxhash)
  elseif(name STREQUAL "re2")
    _reprise_plain_library(reprise_dep_re2 re2/re2.h re2)
  elseif(name STREQUAL "zip")
    _reprise_plain_library(reprise_dep_zip zip.h zip)
  else()
    message(FATAL_ERROR "unknown library in cmake/third_party.cmake: ${name}")
  endif()
endfunction()

if(REPRISE_SOURCES)
  include(third_party_sources)  # its function takes the place of the one above
endif()

# Links `target` with the libraries of `folder`. `visibility` PRIVATE or INTERFACE overrides the
# table's for interface libraries and executables; TABLE keeps it.
function(reprise_link_third_party target visibility folder)
  foreach(line IN LISTS REPRISE_THIRD_PARTY)
    string(REGEX REPLACE " +" ";" row "${line}")
    list(GET row 0 row_folder)
    if(NOT row_folder STREQUAL folder)
      continue()
    endif()
    list(GET row 1 library)
    list(GET row 2 how)
    if(NOT visibility STREQUAL "TABLE")
      set(how ${visibility})
    endif()
    _reprise_find_third_party(${library})
    target_link_libraries(${target} ${how} reprise_dep_${library})
  endforeach()
endfunction()
