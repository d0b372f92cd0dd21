# Trainers that are C++ programs: they stand beside the program, where their trainer.yaml looks.
if(REPRISE_TESTS AND TARGET reprise_core_api AND TARGET reprise_core_adapters_local)
  _reprise_find_third_party(json)
  _reprise_find_third_party(crypto)
  add_executable(trainer_engine trainers/engine/train.cpp)
  target_include_directories(trainer_engine PRIVATE include)
  target_link_libraries(trainer_engine PRIVATE reprise_core_adapters_local reprise_core_api
    reprise_options reprise_dep_json reprise_dep_crypto)
  set_target_properties(trainer_engine PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()

# What python/reprise/witness.py hashes with; the driver tells trainers where it is. A Python
# without the sanitizers' runtime could not load a library that needs it.
if(NOT CMAKE_CXX_FLAGS_DEBUG MATCHES "-fsanitize")
  add_library(reprise_witness SHARED trainers/witness_library.cpp)
  target_link_libraries(reprise_witness PRIVATE reprise_options)
  set_target_properties(reprise_witness PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} CXX_VISIBILITY_PRESET hidden)
  add_dependencies(reprise reprise_witness)
endif()

# libreprise_c.so with the harness's mutants, for trainers in Python whose option `wrong` names one.
if(TARGET reprise_library_c AND TARGET reprise_sim_mutants)
  add_library(reprise_wrong SHARED trainers/wrong/wrong_library.cpp)
  target_link_libraries(reprise_wrong PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,reprise_core_c> reprise_sim_mutants
    reprise_core_adapters_local reprise_core_adapters_socket reprise_core_api reprise_options)
  set_target_properties(reprise_wrong PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()
