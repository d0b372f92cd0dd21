# Files that programs have within them. A template cmake/NAME.cpp.in has @FILE_page_css@ where the text of page.css
# is to stand.

function(reprise_embed target name folder)
  if(NOT TARGET ${target})
    return()
  endif()
  foreach(file ${ARGN})
    string(MAKE_C_IDENTIFIER ${file} variable)
    set(path ${CMAKE_SOURCE_DIR}/${folder}/${file})
    file(READ ${path} FILE_${variable})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  endforeach()
  set(generated ${CMAKE_BINARY_DIR}/generated/${name}.cpp)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/${name}.cpp.in ${generated} @ONLY)
  target_sources(${target} PRIVATE ${generated})
endfunction()

# What `reprise init` writes is the trainer `plain`.
reprise_embed(reprise_cli init_files trainers/plain train.py trainer.yaml)
# What every page has within it.
reprise_embed(reprise_reports_pages page_files reports/pages page.css page.js)
# The rules that `reprise export --map` knows by name.
reprise_embed(reprise_cli_arguments map_files maps gpt2.yaml gpt2-import.yaml llama.yaml llama-import.yaml mixtral.yaml
  mixtral-import.yaml)
