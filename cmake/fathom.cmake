# Build rules of the project: warnings, ISA flags, and one function for each kind of target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(FATHOM_CCACHE ccache)
if(FATHOM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the checkout count as relative, so that another checkout of the same commit hits.  DEPEND: no
  # run of the preprocessor for a file that is not in the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros
    ${FATHOM_CCACHE})
endif()
find_program(FATHOM_MOLD mold)
if(FATHOM_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Every target of ours: warnings are errors, no contraction of a*b+c (a row's bits must not depend on
# the compiler's mood), and paths relative to the checkout so that ccache hits across checkouts.
add_library(fathom_options INTERFACE)
target_compile_options(fathom_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Werror -ffp-contract=off
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Werror,-ffp-contract=off
    -Werror=all-warnings --fmad=false --expt-relaxed-constexpr>)
# GCC's sanitizers hide what its flow analysis needs, and it then warns of moves that are fine.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_compile_options(fathom_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
target_include_directories(fathom_options INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)

set(FATHOM_FLAGS_AVX2 -mavx2 -mfma -mf16c)
set(FATHOM_FLAGS_AVXVNNI ${FATHOM_FLAGS_AVX2} -mavxvnni)
set(FATHOM_FLAGS_AVX512
  -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx512vbmi -mavx512vbmi2 -mfma -mf16c)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # g++ 12: false alarms inside its own intrinsics
  list(APPEND FATHOM_FLAGS_AVX512 -Wno-maybe-uninitialized -Wno-uninitialized)
endif()

set(FATHOM_FLAGS_AMX ${FATHOM_FLAGS_AVX512} -mamx-tile -mamx-int8)

# fathom_precompile(TARGET [tests]): its sources find the standard headers (tests: GoogleTest too) parsed already.  Only
# in the presets release and cuda, whose builds from nothing people wait for; in the others a missing include shows.
option(FATHOM_PRECOMPILE "Parse standard headers once for all sources" OFF)
function(fathom_precompile target)
  if(NOT FATHOM_PRECOMPILE)
    return()
  endif()
  set(from fathom_precompiled)
  set(headers <algorithm> <cstdint> <functional> <map> <memory> <optional> <span> <string> <string_view>
    <unordered_map> <utility> <variant> <vector>)
  if(ARGN)
    set(from fathom_precompiled_tests)
    list(APPEND headers <filesystem> <gtest/gtest.h>)
  endif()
  if(NOT TARGET ${from})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${from}.cc CONTENT "")
    add_library(${from} OBJECT ${PROJECT_BINARY_DIR}/generated/${from}.cc)
    target_link_libraries(${from} PRIVATE fathom_options)
    if(ARGN)
      target_link_libraries(${from} PRIVATE GTest::gtest)
      target_compile_options(${from} PRIVATE -O1)
    endif()
    target_precompile_headers(${from} PRIVATE ${headers})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # g++ 12: false alarms inside libstdc++, no longer known as a system header
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread>)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${from})
endfunction()

# Compiles the files named x86_avx2*.cc / x86_avxvnni*.cc / x86_avx512*.cc / x86_amx*.cc of the calling directory for their ISA; the
# code in them runs only after a check of cpuid (device/cpu_features.h).
function(fathom_isa_flags)
  foreach(file IN LISTS ARGN)
    if(file MATCHES "x86_[^/]*\\.cc$")
      set_source_files_properties(${file} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
    if(file MATCHES "x86_avx512[^/]*\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${FATHOM_FLAGS_AVX512}")
    elseif(file MATCHES "x86_amx[^/]*\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${FATHOM_FLAGS_AMX}")
    elseif(file MATCHES "x86_avxvnni[^/]*\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${FATHOM_FLAGS_AVXVNNI}")
    elseif(file MATCHES "x86_avx2[^/]*\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${FATHOM_FLAGS_AVX2}")
    endif()
  endforeach()
endfunction()

# fathom_library(NAME folder DEPS folders... [LIBS external targets...]): every .cc below the calling
# directory becomes the static library fathom_<folder>.  DEPS are the edges of the include graph.
# With CUDA also every .cu and what lies in a folder cuda/; without, the twin no_cuda.cc instead.
function(fathom_library)
  cmake_parse_arguments(arg "" "NAME" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cc)
  list(FILTER sources EXCLUDE REGEX "(^|/)peer/")  # programs, of bench
  set(twins ${sources})
  list(FILTER twins INCLUDE REGEX "(^|/)no_cuda\\.cc$")
  if(FATHOM_HAS_CUDA AND twins)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cu)
    list(REMOVE_ITEM sources ${twins})
    list(APPEND sources ${kernels})
  else()
    list(FILTER sources EXCLUDE REGEX "(^|/)cuda/")
  endif()
  add_library(fathom_${arg_NAME} STATIC ${sources})
  if(FATHOM_HAS_CUDA AND twins)
    target_link_libraries(fathom_${arg_NAME} PUBLIC CUDA::cudart_static)
  endif()
  fathom_isa_flags(${sources})
  list(TRANSFORM arg_DEPS PREPEND fathom_)
  target_link_libraries(fathom_${arg_NAME} PUBLIC ${arg_DEPS} PRIVATE fathom_options ${arg_LIBS})
  fathom_precompile(fathom_${arg_NAME})
endfunction()

# fathom_test(NAME folder LABEL label DEPS folders... [LIBS external...]): every *_test.cc of the calling
# directory in one program, each TEST a ctest of its own.
function(fathom_test)
  cmake_parse_arguments(arg "" "NAME;LABEL" "DEPS;LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${arg_NAME}_test ${sources})
  list(TRANSFORM arg_DEPS PREPEND fathom_)
  target_link_libraries(${arg_NAME}_test PRIVATE ${arg_DEPS} fathom_options ${arg_LIBS} GTest::gtest_main)
  target_compile_options(${arg_NAME}_test PRIVATE -O1)  # half the compile time; tests need no speed
  fathom_precompile(${arg_NAME}_test tests)
  target_include_directories(${arg_NAME}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${arg_NAME}_test PRIVATE
    FATHOM_SOURCE_DIR="${PROJECT_SOURCE_DIR}" FATHOM_BINARY_DIR="${PROJECT_BINARY_DIR}")
  gtest_discover_tests(${arg_NAME}_test TEST_PREFIX "${arg_NAME}/" DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 600)
  # tests_control, tests_kernels, ...: what a sanitizer build needs and no more.
  if(NOT TARGET tests_${arg_LABEL})
    add_custom_target(tests_${arg_LABEL})
  endif()
  add_dependencies(tests_${arg_LABEL} ${arg_NAME}_test)
endfunction()

# fathom_fuzzer(NAME thing DEPS folders...): thing_fuzz.cc of the calling directory as a libFuzzer program;
# its corpus is corpus/thing.  The target `fuzzers` builds all of them.
function(fathom_fuzzer)
  cmake_parse_arguments(arg "" "NAME" "DEPS" ${ARGN})
  add_executable(${arg_NAME}_fuzz ${arg_NAME}_fuzz.cc)
  list(TRANSFORM arg_DEPS PREPEND fathom_)
  target_link_libraries(${arg_NAME}_fuzz PRIVATE ${arg_DEPS} fathom_options)
  target_link_options(${arg_NAME}_fuzz PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${arg_NAME}_fuzz)
endfunction()
