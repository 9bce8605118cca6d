// Reading the golden JSON files.
#pragma once

#include <boost/json.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fathom::test {

inline boost::json::value read_json(const std::string& path_in_source) {
  std::ifstream in(std::string(FATHOM_SOURCE_DIR) + "/" + path_in_source);
  std::stringstream text;
  text << in.rdbuf();
  return boost::json::parse(text.str());
}

inline std::vector<int32_t> to_ids(const boost::json::value& v) {
  return boost::json::value_to<std::vector<int32_t>>(v);
}

// [[id, logit], ...], best first, logits rounded to 4 digits.
using TopList = std::vector<std::pair<int32_t, double>>;
inline TopList to_top(const boost::json::value& v) {
  TopList out;
  for (const auto& e : v.as_array()) {
    out.emplace_back(e.as_array()[0].to_number<int32_t>(), e.as_array()[1].to_number<double>());
  }
  return out;
}

}  // namespace fathom::test
