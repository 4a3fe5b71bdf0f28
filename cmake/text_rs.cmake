# text_rs: the Rust crate with the tokenizers and the chat templates, as an imported static library.
# One cargo target folder serves all presets, so it is compiled once.
find_program(WISP_CARGO cargo HINTS "$ENV{HOME}/.cargo/bin" REQUIRED
             DOC "cargo, at least 1.85, for the crate text_rs")

set(text_rs_dir ${CMAKE_SOURCE_DIR}/text_rs)
set(text_rs_target ${CMAKE_SOURCE_DIR}/build/cargo)
set(text_rs_library ${text_rs_target}/release/libtext_rs.a)
file(GLOB text_rs_sources CONFIGURE_DEPENDS ${text_rs_dir}/src/*.rs)

# cargo decides what is out of date; the stamp says that this preset has asked it since.
set(text_rs_stamp ${CMAKE_CURRENT_BINARY_DIR}/text_rs.stamp)
add_custom_command(
  OUTPUT ${text_rs_stamp}
  BYPRODUCTS ${text_rs_library}
  COMMAND ${WISP_CARGO} build --release --locked --quiet --manifest-path ${text_rs_dir}/Cargo.toml
          --target-dir ${text_rs_target}
  COMMAND ${CMAKE_COMMAND} -E touch ${text_rs_stamp}
  DEPENDS ${text_rs_sources} ${text_rs_dir}/Cargo.toml ${text_rs_dir}/Cargo.lock
  COMMENT "Building text_rs with cargo"
  VERBATIM)
add_custom_target(text_rs_build DEPENDS ${text_rs_stamp})

add_library(text_rs STATIC IMPORTED GLOBAL)
set_target_properties(text_rs PROPERTIES
  IMPORTED_LOCATION ${text_rs_library}
  INTERFACE_INCLUDE_DIRECTORIES ${text_rs_dir}/include
  INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS};Threads::Threads;m")
add_dependencies(text_rs text_rs_build)
