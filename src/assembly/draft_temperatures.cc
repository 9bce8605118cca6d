#include "assembly/draft_temperatures.h"

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "core/draft_choice.h"

namespace fathom::assembly {

Result<std::vector<float>> read_draft_temperatures(const std::filesystem::path& dir) {
  const std::filesystem::path file = dir / kDraftCalibrationFile;
  std::error_code ec;
  std::vector<float> temperatures;
  if (!std::filesystem::exists(file, ec)) return temperatures;
  const auto wrong = [&file](const std::string& what) {
    return Status(StatusCode::kDataLoss, file.string() + ": " + what +
                                             "; remove it, or make it again with fathom calibrate");
  };
  std::ifstream in(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  boost::json::error_code error;
  const boost::json::value root = boost::json::parse(text, error);
  if (error || !root.is_object()) return wrong("not a JSON object");
  const boost::json::value* list = root.as_object().if_contains("temperatures");
  if (list == nullptr || !list->is_array() || list->as_array().size() > size_t{kMaxDrafts}) {
    return wrong("has no list \"temperatures\" of at most " + std::to_string(kMaxDrafts) +
                 " numbers");
  }
  for (const boost::json::value& v : list->as_array()) {
    const double number = v.is_double()  ? v.as_double()
                          : v.is_int64() ? static_cast<double>(v.as_int64())
                                         : 0;
    if (!(number >= 0.01 && number <= 100)) {
      return wrong("a temperature is not a number from 0.01 to 100");
    }
    temperatures.push_back(static_cast<float>(number));
  }
  return temperatures;
}

}  // namespace fathom::assembly
