# The Rust parts as one imported static library, so that Rust's standard library and common crates
# are in the program once: the targets text_rs and, for the default WebGPU library, webgpu_rs. One
# cargo target folder serves all presets, so everything is compiled once.
find_program(WISP_CARGO cargo HINTS "$ENV{HOME}/.cargo/bin" REQUIRED
             DOC "cargo, at least 1.87, for the Rust parts")

# Another WebGPU library takes the place of webgpu_rs: both define the same functions.
if(WISP_WEBGPU_ROOT)
  set(rust_package text_rs)
  set(rust_crates guard_rs text_rs)
else()
  set(rust_package wisp_rs)
  set(rust_crates guard_rs text_rs webgpu_rs rust)
endif()
set(rust_target ${CMAKE_SOURCE_DIR}/build/cargo)
set(rust_library ${rust_target}/release/lib${rust_package}.a)
set(rust_sources ${CMAKE_SOURCE_DIR}/Cargo.toml ${CMAKE_SOURCE_DIR}/Cargo.lock)
foreach(crate IN LISTS rust_crates)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${crate}/src/*.rs)
  list(APPEND rust_sources ${sources} ${CMAKE_SOURCE_DIR}/${crate}/Cargo.toml)
endforeach()

# cargo decides what is out of date; the stamp says that this preset has asked it since.
set(rust_stamp ${CMAKE_BINARY_DIR}/${rust_package}.stamp)
add_custom_command(
  OUTPUT ${rust_stamp}
  BYPRODUCTS ${rust_library}
  COMMAND ${WISP_CARGO} build --release --locked --quiet -p ${rust_package}
          --manifest-path ${CMAKE_SOURCE_DIR}/Cargo.toml --target-dir ${rust_target}
  COMMAND ${CMAKE_COMMAND} -E touch ${rust_stamp}
  DEPENDS ${rust_sources}
  COMMENT "Building ${rust_package} with cargo"
  VERBATIM)
add_custom_target(rust_build DEPENDS ${rust_stamp})

add_library(wisp_rust STATIC IMPORTED GLOBAL)
set_target_properties(wisp_rust PROPERTIES
  IMPORTED_LOCATION ${rust_library}
  INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS};Threads::Threads;m"
  # Each Rust function is a section: those that nothing calls stay out of the program.
  INTERFACE_LINK_OPTIONS "$<$<PLATFORM_ID:Linux>:-Wl,--gc-sections>")
add_dependencies(wisp_rust rust_build)

add_library(text_rs INTERFACE)
target_include_directories(text_rs INTERFACE ${CMAKE_SOURCE_DIR}/text_rs/include)
target_link_libraries(text_rs INTERFACE wisp_rust)
