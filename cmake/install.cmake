# The installed package:
#   fathom::codec   libfathom_codec.a  include/fathom/codec.h: text, requests, answers; no weights
#   fathom::engine  libfathom.a        all of include/fathom; brings fathom::codec with it
# for find_package(fathom) and pkg-config (fathom-codec, fathom), the program, and the demo model.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Of `target` and all that it links: our static libraries into `ours`, what comes from the system
# into `system`.
function(fathom_collect target ours system)
  set(todo ${target})
  set(found_ours "")
  set(found_system "")
  while(todo)
    list(POP_FRONT todo item)
    if(item IN_LIST found_ours OR item IN_LIST found_system)
      continue()
    endif()
    if(NOT TARGET ${item})
      list(APPEND found_system ${item})
      continue()
    endif()
    get_target_property(imported ${item} IMPORTED)
    get_target_property(type ${item} TYPE)
    if(imported)
      list(APPEND found_system ${item})
    elseif(type STREQUAL "STATIC_LIBRARY")
      list(APPEND found_ours ${item})
      get_target_property(links ${item} LINK_LIBRARIES)
      if(links)
        list(APPEND todo ${links})
      endif()
    endif()
  endwhile()
  set(${ours} ${found_ours} PARENT_SCOPE)
  set(${system} ${found_system} PARENT_SCOPE)
endfunction()

# One archive of the objects of `libraries`.
function(fathom_archive name export_name file_name)
  set(objects "")
  foreach(library IN LISTS ARGN)
    list(APPEND objects $<TARGET_OBJECTS:${library}>)
  endforeach()
  add_library(${name} STATIC ${objects})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${file_name}
    EXPORT_NAME ${export_name} ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/package)
  target_include_directories(${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${name} INTERFACE cxx_std_20)
endfunction()

# What the config file and the .pc files know how to find.
function(fathom_check_known)
  foreach(item IN LISTS ARGN)
    if(NOT item MATCHES "^(Boost::json|Threads::Threads|OpenSSL::Crypto|CUDA::cudart_static|.*utf8proc.*)$")
      message(FATAL_ERROR "cmake/install.cmake: say how users of the package find ${item}")
    endif()
  endforeach()
endfunction()

fathom_collect(fathom_codec codec_libraries codec_system)
fathom_collect(fathom_assembly engine_libraries engine_system)
list(REMOVE_ITEM engine_libraries ${codec_libraries})
fathom_check_known(${codec_system} ${engine_system})

fathom_archive(fathom_package_codec codec fathom_codec ${codec_libraries})
target_link_libraries(fathom_package_codec INTERFACE Boost::json $<INSTALL_INTERFACE:fathom::utf8proc>)
fathom_archive(fathom_package_engine engine fathom ${engine_libraries})
target_link_libraries(fathom_package_engine INTERFACE
  fathom_package_codec Boost::json OpenSSL::Crypto Threads::Threads)

set(pc_cuda "")
if(CUDA::cudart_static IN_LIST engine_system)
  target_link_libraries(fathom_package_engine INTERFACE CUDA::cudart_static)
  get_target_property(cudart CUDA::cudart_static IMPORTED_LOCATION)
  set(pc_cuda "${cudart} -ldl -lrt")
endif()

install(TARGETS fathom_package_codec fathom_package_engine EXPORT fathomTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fathom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS fathom RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/demo
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fathom/models)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fathom)
install(EXPORT fathomTargets NAMESPACE fathom:: DESTINATION ${config_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fathomConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/fathomConfig.cmake INSTALL_DESTINATION ${config_dir})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/fathomConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/fathomConfig.cmake
  ${PROJECT_BINARY_DIR}/package/fathomConfigVersion.cmake DESTINATION ${config_dir})

# Paths from where the .pc file lies, so that the prefix may move.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_to_prefix /prefix/${pc_dir} /prefix)
foreach(name fathom fathom-codec)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/package/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/${name}.pc DESTINATION ${pc_dir})
endforeach()
