# Build-wide settings: language level, warnings, floating-point rules, sanitizers.
option(ASSAY_BENCH "Build bench/" ON)
option(ASSAY_FUZZ "Build the libFuzzer targets (needs Clang)" OFF)
option(ASSAY_WERROR "Treat warnings as errors" ON)
option(ASSAY_PRECOMPILED "Compile common headers once for many sources; OFF shows which source lacks an include" ON)
set(ASSAY_SANITIZE "" CACHE STRING "Value for -fsanitize=, e.g. address,undefined")
set(ASSAY_LEAVE_OUT "" CACHE STRING "Labels of tests that are neither built by the target `tests` nor known to ctest")

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# All programs land in one place, so that `assay` finds `assay-worker` beside itself.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

find_program(ASSAY_CCACHE ccache)
if(ASSAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${ASSAY_CCACHE}")
endif()

# Some eighty programs are linked from the same libraries; with mold that takes seconds.
find_program(ASSAY_MOLD mold)
if(ASSAY_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(assay_options INTERFACE)
target_include_directories(assay_options INTERFACE "${CMAKE_SOURCE_DIR}")
# Contraction would give the emulator and the oracle results that no source line asks for.
target_compile_options(assay_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -ffp-contract=off -fno-fast-math -fno-strict-aliasing)
# Designated initialisers name what matters; the rest has defaults.
target_compile_options(assay_options INTERFACE -Wno-missing-field-initializers)
if(ASSAY_WERROR)
  target_compile_options(assay_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these inside libstdc++ and nlohmann/json headers under -O2 and sanitizers; they are not about our code.
  target_compile_options(assay_options INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread
    -Wno-array-bounds)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of libstdc++ 12 calls a function that C++17 deprecated; GCC's pragmas for loops are hints.
  target_compile_options(assay_options INTERFACE -Wno-deprecated-declarations -Wno-unknown-pragmas)
endif()
if(ASSAY_SANITIZE)
  target_compile_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  if(ASSAY_SANITIZE MATCHES "undefined")
    # A null pointer and a read beyond an object end in the address sanitizer as well; saying so twice costs a third of the compiler's time.
    target_compile_options(assay_options INTERFACE -fno-sanitize=null,object-size)
  endif()
  target_link_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()
if(ASSAY_FUZZ)
  # Coverage for libFuzzer in every library; its main is linked into the targets of fuzz/ alone.
  target_compile_options(assay_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
