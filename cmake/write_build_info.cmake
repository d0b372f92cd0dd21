# Runs at build time; see build_info.cmake.

set(COMMIT unknown)
set(DIRTY false)
if(GIT)
  # The clone may belong to another user, as in a container.
  set(git ${GIT} -c safe.directory=${SOURCE} -C ${SOURCE} --no-optional-locks)
  execute_process(COMMAND ${git} rev-parse HEAD
    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(COMMIT ${head})
    execute_process(COMMAND ${git} status --porcelain
      OUTPUT_VARIABLE changes ERROR_QUIET)
    if(NOT changes STREQUAL "")
      set(DIRTY true)
    endif()
  endif()
endif()
foreach(library MPI CUDA NCCL)
  if(HAVE_${library})
    set(${library} true)
  else()
    set(${library} false)
  endif()
endforeach()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
