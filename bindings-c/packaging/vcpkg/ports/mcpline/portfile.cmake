# Builds the library with the Rust toolchain on the PATH, as `make -C bindings-c install` does, from the tree that this port is
# part of.

get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../../.." ABSOLUTE)
if(NOT EXISTS "${SOURCE_PATH}/bindings-c/Makefile")
  message(FATAL_ERROR "mcpline: ${SOURCE_PATH} is not a checkout of mcpline. This port builds the checkout that contains it: do not "
    "copy it, but pass bindings-c/packaging/vcpkg/ports of a checkout as --overlay-ports.")
endif()
find_program(MAKE NAMES gmake make REQUIRED)
find_program(CARGO NAMES cargo HINTS "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin" REQUIRED)

# vcpkg's list begins with `core`, which is not a feature of the library.
set(NAMES server stdio ${FEATURES})
list(REMOVE_ITEM NAMES core)
list(JOIN NAMES " " NAMES)

function(build type short goal prefix)
  if(DEFINED VCPKG_BUILD_TYPE AND NOT VCPKG_BUILD_TYPE STREQUAL type)
    return()
  endif()
  vcpkg_execute_build_process(
    COMMAND "${MAKE}" -C "${SOURCE_PATH}/bindings-c" ${goal} "FEATURES=${NAMES}" "CARGO=${CARGO}"
      "PREFIX=${prefix}" "DOCDIR=${CURRENT_BUILDTREES_DIR}/${TARGET_TRIPLET}-${short}/doc"
      "CARGO_TARGET_DIR=${CURRENT_BUILDTREES_DIR}/${TARGET_TRIPLET}-${short}/target"
    WORKING_DIRECTORY "${CURRENT_BUILDTREES_DIR}"
    LOGNAME "make-${TARGET_TRIPLET}-${short}")
  # The configuration in the folder `share` is for both types. Linkers would take a shared library first.
  file(REMOVE_RECURSE "${prefix}/lib/cmake")
  if(VCPKG_LIBRARY_LINKAGE STREQUAL "dynamic")
    file(REMOVE "${prefix}/lib/libmcpline.a")
  else()
    file(GLOB SHARED "${prefix}/lib/libmcpline*.so*" "${prefix}/lib/libmcpline*.dylib")
    file(REMOVE ${SHARED})
  endif()
endfunction()

build(release rel install-strip "${CURRENT_PACKAGES_DIR}")
build(debug dbg "install;PROFILE=dev" "${CURRENT_PACKAGES_DIR}/debug")
if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/include")
  file(COPY "${CURRENT_PACKAGES_DIR}/debug/include" DESTINATION "${CURRENT_PACKAGES_DIR}")
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")

configure_file("${CURRENT_PORT_DIR}/mcplineConfig.cmake" "${CURRENT_PACKAGES_DIR}/share/${PORT}/mcplineConfig.cmake" COPYONLY)
string(REGEX MATCH "^[0-9]+" MAJOR "${VERSION}")
configure_file("${SOURCE_PATH}/bindings-c/install/mcplineConfigVersion.cmake.in"
  "${CURRENT_PACKAGES_DIR}/share/${PORT}/mcplineConfigVersion.cmake" @ONLY)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/THIRD-PARTY-NOTICES.md")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
