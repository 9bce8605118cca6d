# The libraries that tools/gpu-check packs, as the targets that find_package would make.
foreach(library gtest gtest_main)
  add_library(GTest::${library} STATIC IMPORTED GLOBAL)
  set_target_properties(GTest::${library} PROPERTIES
    IMPORTED_LOCATION ${FATHOM_BUNDLE}/lib/lib${library}.a
    INTERFACE_INCLUDE_DIRECTORIES ${FATHOM_BUNDLE}/include
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endforeach()
target_link_libraries(GTest::gtest_main INTERFACE GTest::gtest)
add_library(Boost::json STATIC IMPORTED GLOBAL)
set_target_properties(Boost::json PROPERTIES
  IMPORTED_LOCATION ${FATHOM_BUNDLE}/lib/libboost_json.a
  INTERFACE_INCLUDE_DIRECTORIES ${FATHOM_BUNDLE}/include)
add_library(OpenSSL::Crypto STATIC IMPORTED GLOBAL)
set_target_properties(OpenSSL::Crypto PROPERTIES
  IMPORTED_LOCATION ${FATHOM_BUNDLE}/lib/libcrypto.a
  INTERFACE_INCLUDE_DIRECTORIES ${FATHOM_BUNDLE}/include
  INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
