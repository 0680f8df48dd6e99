include(GoogleTest)

# assay_library(NAME SOURCES a.cc ... DEPS other ...): the one library target of a folder.
function(assay_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(assay_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(assay_${name} PUBLIC assay_options)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(assay_${name} PUBLIC ${dep})
  endforeach()
endfunction()

# assay_test(NAME SOURCES a_test.cc ... DEPS other ... LABELS l ...): one GoogleTest program; each of its tests is a ctest.
function(assay_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE assay_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE ASSAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    ASSAY_BINARY_DIR="${CMAKE_BINARY_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()
