# The target webgpu: the headers <webgpu/webgpu.h> and <webgpu/wgpu.h>, and a library behind them:
# webgpu_rs, or the one in WISP_WEBGPU_ROOT.
find_path(WISP_WEBGPU_INCLUDE webgpu/webgpu.h NO_DEFAULT_PATH
          PATHS ${WISP_WEBGPU_ROOT}/include ${WISP_DEPS}/wgpu/include)
if(NOT WISP_WEBGPU_INCLUDE)
  message(FATAL_ERROR "No webgpu/webgpu.h: run tools/setup.sh (or tools/fetch_wgpu.sh "
                      "${WISP_DEPS}/wgpu)")
endif()

if(WISP_WEBGPU_ROOT)
  find_library(WISP_WEBGPU_LIBRARY NAMES wgpu_native PATHS ${WISP_WEBGPU_ROOT}
               PATH_SUFFIXES lib lib64 NO_DEFAULT_PATH)
  if(NOT WISP_WEBGPU_LIBRARY)
    message(FATAL_ERROR "No WebGPU library in ${WISP_WEBGPU_ROOT}")
  endif()
  add_library(webgpu SHARED IMPORTED GLOBAL)
  # The library has no soname: link by its file name, found through the run path.
  set_target_properties(webgpu PROPERTIES IMPORTED_LOCATION ${WISP_WEBGPU_LIBRARY}
                        IMPORTED_NO_SONAME TRUE)
else()
  add_library(webgpu INTERFACE)
  target_link_libraries(webgpu INTERFACE wisp_rust)
  target_include_directories(webgpu INTERFACE ${CMAKE_SOURCE_DIR}/webgpu_rs/include)
  target_compile_definitions(webgpu INTERFACE WISP_WEBGPU_RS)
endif()
target_include_directories(webgpu INTERFACE ${WISP_WEBGPU_INCLUDE})
