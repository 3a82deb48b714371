# What `cmake --install` copies beside the program: for a GPU machine the tests that need one.
# Included last by the top CMakeLists.txt, when every target is known.
include(GNUInstallDirs)

if(KVCTS_STATIC)
  get_property(device_tests GLOBAL PROPERTY KVCTS_DEVICE_TESTS)
  foreach(test IN LISTS device_tests)
    install(TARGETS ${test} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endforeach()
endif()
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
