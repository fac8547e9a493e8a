# One way to make a module, one way to make a test.
#
#   weir_module(NAME lease SOURCES ledger.cc holder.cc DEPS limit LIBS some::library PCH <boost/beast.hpp>)
#
# NAME becomes the static library weir_NAME. DEPS are other modules (their direction is enforced by
# test/tidy), LIBS are what the distribution gives us; LIBS stay private to the module.
# A module with no SOURCES is header-only. PCH lists headers worth precompiling (Beast, CAF).
add_library(weir_options INTERFACE)
target_include_directories(weir_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(weir_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Werror -fno-omit-frame-pointer
  # GCC 12 warns of copies that cannot happen when it inlines std::string (GCC bug 105651).
  -Wno-restrict)
if(WEIR_SANITIZE_ADDRESS)
  target_compile_options(weir_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_link_options(weir_options INTERFACE -fsanitize=address,undefined)
endif()
if(WEIR_SANITIZE_THREAD)
  target_compile_options(weir_options INTERFACE -fsanitize=thread)
  target_link_options(weir_options INTERFACE -fsanitize=thread)
endif()

function(weir_module)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPS;LIBS;PCH" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weir_module(${ARG_NAME}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  set(deps ${ARG_DEPS})
  list(TRANSFORM deps PREPEND weir_)
  if(NOT ARG_SOURCES)
    add_library(weir_${ARG_NAME} INTERFACE)
    target_link_libraries(weir_${ARG_NAME} INTERFACE weir_options ${deps})
    return()
  endif()
  add_library(weir_${ARG_NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(weir_${ARG_NAME} PUBLIC weir_options ${deps} PRIVATE ${ARG_LIBS})
  if(ARG_PCH)
    target_precompile_headers(weir_${ARG_NAME} PRIVATE ${ARG_PCH})
    target_compile_options(weir_${ARG_NAME} PRIVATE -fpch-preprocess)
  endif()
endfunction()

#   weir_test(NAME ledger_test LABEL unit SOURCES ledger_test.cc DEPS lease LIBS ...)
#
# One GoogleTest program; ctest knows each of its tests by name and LABEL (run.sh -L LABEL). ALONE:
# a filter of those that keep a machine of two cores busy by themselves; none runs beside another.
include(GoogleTest)
function(weir_test)
  cmake_parse_arguments(ARG "" "NAME;LABEL;TIMEOUT;ALONE" "SOURCES;DEPS;LIBS;PCH" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weir_test(${ARG_NAME}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(deps ${ARG_DEPS})
  list(TRANSFORM deps PREPEND weir_)
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE ${deps} weir_options ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  if(ARG_PCH)
    target_precompile_headers(${ARG_NAME} PRIVATE ${ARG_PCH})
    target_compile_options(${ARG_NAME} PRIVATE -fpch-preprocess)
  endif()
  set(others "*")
  if(ARG_ALONE)
    set(others "-${ARG_ALONE}")
    gtest_discover_tests(${ARG_NAME} DISCOVERY_TIMEOUT 60 TEST_PREFIX "${ARG_LABEL}/"
      TEST_FILTER "${ARG_ALONE}" TEST_LIST ${ARG_NAME}_ALONE
      PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL TRUE)
  endif()
  gtest_discover_tests(${ARG_NAME} DISCOVERY_TIMEOUT 60 TEST_PREFIX "${ARG_LABEL}/"
    TEST_FILTER "${others}"
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()
