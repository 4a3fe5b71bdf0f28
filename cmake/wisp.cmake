# How every target of the project is declared.

add_library(wisp_options INTERFACE)
target_include_directories(wisp_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
# No contraction of a*b+c: sums must not depend on what the compiler fuses (docs/architecture.md).
# Designated initialisers leave out what keeps its default.
target_compile_options(wisp_options INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers
                       -ffp-contract=off)
if(WISP_ASAN)
  target_compile_options(wisp_options INTERFACE -fsanitize=address,undefined
                         -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(wisp_options INTERFACE -fsanitize=address,undefined)
endif()
if(WISP_FUZZ)
  target_compile_options(wisp_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What tests run with. GPU tests take Mesa's CPU driver, whatever GPU the machine has: the same
# everywhere. Its cache of shaders leaks memory.
set(WISP_TEST_ENVIRONMENT "VK_DRIVER_FILES=${WISP_DEPS}/mesa/lvp_icd.json")
if(WISP_ASAN)
  list(APPEND WISP_TEST_ENVIRONMENT "MESA_SHADER_CACHE_DISABLE=true")
endif()

# wisp_layer(NAME SOURCES a.cpp ... DEPS wisp_base ...): the static library wisp_NAME of src/NAME.
function(wisp_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(wisp_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(wisp_${name} PUBLIC wisp_options ${ARG_DEPS})
endfunction()

# wisp_test(NAME SOURCES a_test.cpp ... DEPS ...): one GoogleTest program, one ctest entry.
function(wisp_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE wisp_options fmt::fmt ${ARG_DEPS} GTest::gtest
                        GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE WISP_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             WISP_BUILD_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${WISP_TEST_ENVIRONMENT}")
endfunction()

find_package(GTest REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(HWY_INCLUDE_DIR hwy/highway.h REQUIRED)
find_library(HWY_LIBRARY hwy REQUIRED)
add_library(wisp_highway INTERFACE)
target_include_directories(wisp_highway INTERFACE ${HWY_INCLUDE_DIR})
target_link_libraries(wisp_highway INTERFACE ${HWY_LIBRARY})
