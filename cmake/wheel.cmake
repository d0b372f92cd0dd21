# What the wheel has besides python/reprise: pyproject.toml builds and installs these.

set(REPRISE_FOR_CUDA "" CACHE PATH "Folder with libreprise_c_cuda.so and CUDA's licence, both or neither; empty: neither")

install(TARGETS reprise RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
install(FILES $<TARGET_FILE:reprise_library_c> RENAME libreprise_c.so DESTINATION reprise COMPONENT wheel
  PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(TARGETS reprise_witness LIBRARY DESTINATION reprise COMPONENT wheel)
install(FILES python/reprise_ckpt.py DESTINATION . COMPONENT wheel)
if(REPRISE_SOURCES)
  install(DIRECTORY ${REPRISE_SOURCES}/licences/ DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT wheel)
endif()
if(EXISTS ${REPRISE_FOR_CUDA}/libreprise_c_cuda.so)
  install(FILES ${REPRISE_FOR_CUDA}/libreprise_c_cuda.so DESTINATION reprise COMPONENT wheel
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  install(FILES ${REPRISE_FOR_CUDA}/cuda DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT wheel)
endif()
