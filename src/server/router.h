// Which handler answers which path.
//
// Thread: routes are added before the server starts; then any.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/exchange.h"

namespace fathom::server {

// Called on an io thread with the whole request; must not block.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

struct Route {
  std::string method;  // GET also answers HEAD
  std::string path;    // exact, or up to "*" at its end, which stands for one or more characters
  Handler handler;
  bool open = false;       // without a key, also if the server has keys
  bool generates = false;  // counts for the limits of the key; refused while draining
  Dialect dialect = Dialect::kOpenAi;
};

class Router {
 public:
  // The first that matches wins.
  void add(Route route) { routes_.push_back(std::move(route)); }

  struct Match {
    const Route* route = nullptr;
    std::string allowed;  // without a route: methods that this path has; "": no such path
  };
  // Paths are compared as they were sent; nothing is decoded, and no path is a file.
  Match find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace fathom::server
