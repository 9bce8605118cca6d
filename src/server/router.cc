#include "server/router.h"

namespace fathom::server {
namespace {

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return path == pattern;
  pattern.remove_suffix(1);
  return path.size() > pattern.size() && path.starts_with(pattern);
}

}  // namespace

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match match;
  for (const Route& route : routes_) {
    if (!matches(route.path, path)) continue;
    if (route.method == method || (method == "HEAD" && route.method == "GET")) {
      match.route = &route;
      return match;
    }
    if (!match.allowed.empty()) match.allowed += ", ";
    match.allowed += route.method;
  }
  return match;
}

}  // namespace fathom::server
