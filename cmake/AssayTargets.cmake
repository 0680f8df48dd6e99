include(GoogleTest)

# Everything that ctest runs.
add_custom_target(tests)

# assay_left_out(RESULT LABEL...): whether tests with these labels are left out of this build.
function(assay_left_out result)
  set(${result} OFF PARENT_SCOPE)
  foreach(label IN LISTS ARGN)
    if(label IN_LIST ASSAY_LEAVE_OUT)
      set(${result} ON PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# assay_library(NAME SOURCES a.cc ... DEPS other ...): the one library target of a folder.
function(assay_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(assay_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(assay_${name} PUBLIC assay_options)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(assay_${name} PUBLIC ${dep})
  endforeach()
  assay_precompiled(assay_${name} libraries)
endfunction()

# What sources of a kind (libraries, programs, tests) include most, compiled once: reading these headers is half of the compiler's time. The target
# that does so does nothing else. Layers do not change: no header of ours is among them.
set(common_headers <algorithm> <array> <bit> <chrono> <cmath> <cstdint> <cstring> <expected> <filesystem> <fmt/format.h> <functional> <map>
  <memory> <mutex> <nlohmann/json.hpp> <optional> <ranges> <set> <span> <sstream> <string> <string_view> <thread> <unordered_map> <utility>
  <variant> <vector>)
set(programs_headers <CLI/CLI.hpp>)
set(tests_headers <fstream> <gmock/gmock.h> <gtest/gtest.h>)
function(assay_precompiled name kind)
  if(NOT ASSAY_PRECOMPILED)
    return()
  endif()
  set(headers assay_${kind}_headers)
  if(NOT TARGET ${headers})
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/${kind}_headers.cc" CONTENT "int main() {}\n")
    if(kind STREQUAL libraries)
      add_library(${headers} STATIC EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/${kind}_headers.cc")
    else()
      add_executable(${headers} EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/${kind}_headers.cc")
    endif()
    target_link_libraries(${headers} PRIVATE assay_options fmt::fmt)
    if(kind STREQUAL tests)
      assay_test_options(${headers})
    endif()
    target_precompile_headers(${headers} PRIVATE ${common_headers} ${${kind}_headers})
  endif()
  # As the headers were compiled.
  target_link_libraries(${name} PRIVATE fmt::fmt)
  target_precompile_headers(${name} REUSE_FROM ${headers})
endfunction()

# Tests spend their time in the libraries, and most of the compiler's time is theirs.
function(assay_test_options name)
  target_link_libraries(${name} PRIVATE assay_options fmt::fmt GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE ASSAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    ASSAY_BINARY_DIR="${CMAKE_BINARY_DIR}")
  # Not in a generator expression: a list of sanitizers has a comma, which CMake 4 takes for one of its own.
  if(ASSAY_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  else()
    target_compile_options(${name} PRIVATE -O1)
  endif()
endfunction()

# assay_test(NAME SOURCES a_test.cc ... DEPS other ... LABELS l ...): one GoogleTest program; each of its tests is a ctest. With SHARDS n it is n
# ctests instead, for programs whose many tests share what is dear to set up (workers, compiled references, a whole run).
function(assay_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;SHARDS" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  assay_left_out(left_out ${ARG_LABELS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  assay_test_options(${name})
  assay_precompiled(${name} tests)
  if(left_out)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  add_dependencies(tests ${name})
  # Those that may take long begin first: one that begins last leaves the other cores idle.
  set(properties TIMEOUT ${ARG_TIMEOUT})
  if(ARG_SHARDS OR ARG_TIMEOUT GREATER 300)
    list(APPEND properties COST ${ARG_TIMEOUT})
  endif()
  if(ARG_SHARDS)
    math(EXPR last "${ARG_SHARDS} - 1")
    foreach(shard RANGE ${last})
      add_test(NAME ${name}.${shard} COMMAND ${name} --gtest_brief=1)
      set_tests_properties(${name}.${shard} PROPERTIES ${properties} LABELS "${ARG_LABELS}"
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
    endforeach()
    return()
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES ${properties} LABELS "${ARG_LABELS}")
endfunction()
