# Everything comes from the distribution's packages (scripts/lib/dependencies.sh installs them), except the CUDA Toolkit:
# the machine's own, or NVIDIA's PyPI wheels under .deps/, found by scripts/lib/cuda.sh and handed over as ASSAY_CUDA_ROOT.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3>=3.37)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)  # assay serve, and test servers

find_path(ASSAY_NVRTC_INCLUDE nvrtc.h
  HINTS "${ASSAY_CUDA_ROOT}/include" "$ENV{CUDA_HOME}/include" /usr/local/cuda/include
  REQUIRED)
# NVRTC itself is opened at run time by the compile worker (workers/nvrtc.h): the build needs its header alone.
