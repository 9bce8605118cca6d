// The web page at /, whose files are in the program (cmake/embed_page.cmake).
//
// Thread: any.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "server/router.h"

namespace fathom::server {

struct PageFile {
  std::string_view path;  // "/" or "/page/NAME"
  std::string_view content_type;
  std::string_view etag;  // with its quotes
  std::span<const unsigned char> bytes;
};

// All of them, by name.
std::span<const PageFile> page_files();

// What a browser lets the page do: its own scripts and styles, this server, nothing else.
inline constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The page needs no key: it holds no secrets, and asks its user for one.
void add_page_routes(Router* router);

}  // namespace fathom::server
