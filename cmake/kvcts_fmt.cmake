# kvcts_fmt: {fmt} as one target to link. Debian ships no static archive of it, so a static build
# takes its header-only form.
include_guard(GLOBAL)
find_package(fmt REQUIRED)
add_library(kvcts_fmt INTERFACE)
if(KVCTS_STATIC)
  target_link_libraries(kvcts_fmt INTERFACE fmt::fmt-header-only)
else()
  target_link_libraries(kvcts_fmt INTERFACE fmt::fmt)
endif()
