#include "fetch/curl_library.h"

#include <dlfcn.h>

#include <optional>

namespace fathom::fetch {
namespace {

template <class Function>
bool find(void* library, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(library, name));
  return *out != nullptr;
}

std::optional<CurlLibrary> load() {
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) return std::nullopt;
  CurlLibrary curl{};
  const bool whole = find(library, "curl_global_init", &curl.global_init) &&
                     find(library, "curl_easy_init", &curl.easy_init) &&
                     find(library, "curl_easy_setopt", &curl.easy_setopt) &&
                     find(library, "curl_easy_perform", &curl.easy_perform) &&
                     find(library, "curl_easy_getinfo", &curl.easy_getinfo) &&
                     find(library, "curl_easy_cleanup", &curl.easy_cleanup) &&
                     find(library, "curl_easy_strerror", &curl.easy_strerror) &&
                     find(library, "curl_url", &curl.url) &&
                     find(library, "curl_url_set", &curl.url_set) &&
                     find(library, "curl_url_get", &curl.url_get) &&
                     find(library, "curl_url_cleanup", &curl.url_cleanup) &&
                     find(library, "curl_free", &curl.free);
  if (!whole || curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return std::nullopt;
  return curl;
}

}  // namespace

const CurlLibrary* CurlLibrary::get() {
  static const std::optional<CurlLibrary> curl = load();
  return curl ? &*curl : nullptr;
}

}  // namespace fathom::fetch
