# The target webgpu: the header <webgpu/webgpu.h> and the library behind it.

# Another provider (a Dawn package, say): a folder with include/webgpu/webgpu.h and lib/.
set(WISP_WEBGPU_ROOT "${WISP_DEPS}/wgpu" CACHE PATH "Folder with the WebGPU header and library")

find_path(WISP_WEBGPU_INCLUDE webgpu/webgpu.h PATHS ${WISP_WEBGPU_ROOT}/include NO_DEFAULT_PATH)
find_library(WISP_WEBGPU_LIBRARY NAMES wgpu_native webgpu_dawn PATHS ${WISP_WEBGPU_ROOT}
             PATH_SUFFIXES lib lib64 NO_DEFAULT_PATH)
if(NOT WISP_WEBGPU_INCLUDE OR NOT WISP_WEBGPU_LIBRARY)
  message(FATAL_ERROR "No WebGPU library in ${WISP_WEBGPU_ROOT}: run tools/setup.sh (or "
                      "tools/fetch_wgpu.sh ${WISP_DEPS}/wgpu), or name one by -DWISP_WEBGPU_ROOT=")
endif()

add_library(webgpu SHARED IMPORTED)
# The library has no soname: link by its file name, found through the run path.
set_target_properties(webgpu PROPERTIES IMPORTED_LOCATION ${WISP_WEBGPU_LIBRARY}
                      IMPORTED_NO_SONAME TRUE INTERFACE_INCLUDE_DIRECTORIES ${WISP_WEBGPU_INCLUDE})
