# What `cmake --install` lays out below a prefix, which may be moved afterwards: programs find the rest from where they lie
# (base/environment.cc), so the folders' names are fixed.
#
#   bin/assay                   the program
#   libexec/assay/assay-worker  what runs in the jail
#   share/assay/                ops (preludes among them), prompts, schemas, scripts
#   include/assay/, lib/        libassay, with a CMake package: find_package(assay), target assay::assay
#
# Components: `programs` is the first three, `library` the last.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(ASSAY_BUILT)
  install(PROGRAMS "${ASSAY_BUILT}/bin/assay" DESTINATION bin COMPONENT programs)
  install(PROGRAMS "${ASSAY_BUILT}/bin/assay-worker" DESTINATION libexec/assay COMPONENT programs)
else()
  install(TARGETS assay RUNTIME DESTINATION bin COMPONENT programs)
  install(TARGETS assay-worker RUNTIME DESTINATION libexec/assay COMPONENT programs)
endif()
install(DIRECTORY ops DESTINATION share/assay COMPONENT programs
  PATTERN "*.cc" EXCLUDE PATTERN "*.h" EXCLUDE PATTERN "*.in" EXCLUDE PATTERN CMakeLists.txt EXCLUDE)
install(DIRECTORY prompts DESTINATION share/assay COMPONENT programs)
install(DIRECTORY importers/assay_import DESTINATION share/assay/importers COMPONENT programs PATTERN __pycache__ EXCLUDE)
install(FILES scripts/jsonl_to_parquet.py DESTINATION share/assay/scripts COMPONENT programs)
install(DIRECTORY runs/schema/ batch/schemas/ dataset/schemas/ rewards/schemas/ DESTINATION share/assay/schemas COMPONENT programs
  FILES_MATCHING PATTERN "*.schema.json")

if(ASSAY_BUILT)
  return()
endif()
install(DIRECTORY include/assay DESTINATION include COMPONENT library)
install(TARGETS assay_api EXPORT assayTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library NAMELINK_COMPONENT library)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/assay")
install(EXPORT assayTargets NAMESPACE assay:: FILE assayConfig.cmake DESTINATION "${package}" COMPONENT library)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/assayConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/assayConfigVersion.cmake" DESTINATION "${package}" COMPONENT library)
