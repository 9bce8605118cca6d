// Reads one JSON object strictly: every key must be asked for, or finish() says that it is unknown.
//
// The first error sticks and later calls do nothing, so a caller lists all keys and checks once.
// Borrows the object until finish().
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "fathom/status.h"

namespace fathom::model {

enum class Presence { kRequired, kOptional };

class JsonObject {
 public:
  // `where` is the file, `path` the place in it ("text_config"; empty for the top).
  JsonObject(const boost::json::object& object, std::string_view where, std::string_view path);

  // Integers in [min, max].  An optional key that is absent or null leaves *out alone.
  void integer(std::string_view key, int64_t min, int64_t max, int32_t* out,
               Presence presence = Presence::kRequired);
  void integer(std::string_view key, int64_t min, int64_t max, int64_t* out,
               Presence presence = Presence::kRequired);
  // Finite numbers in [min, max].
  void number(std::string_view key, double min, double max, double* out,
              Presence presence = Presence::kRequired);
  void number(std::string_view key, double min, double max, float* out,
              Presence presence = Presence::kRequired);
  void boolean(std::string_view key, bool* out, Presence presence = Presence::kRequired);
  // A list of at most `size_max` integers in [min, max].
  void integers(std::string_view key, int64_t min, int64_t max, size_t size_max,
                std::vector<int32_t>* out, Presence presence = Presence::kRequired);
  void integers(std::string_view key, int64_t min, int64_t max, size_t size_max,
                std::vector<int64_t>* out, Presence presence = Presence::kRequired);

  // The only value that the engine implements.
  void must_be(std::string_view key, const boost::json::value& expected,
               Presence presence = Presence::kOptional);
  // A key without effect on inference.
  void ignore(std::initializer_list<std::string_view> keys);
  // The object under `key`; nullptr if it is absent or null, or after an error.
  const boost::json::object* object(std::string_view key, Presence presence);

  void fail(std::string_view key, const std::string& what);
  // The first error, or one about the first key that nobody asked for.
  Status finish();

 private:
  const boost::json::value* find(std::string_view key, Presence presence);
  std::string place(std::string_view key) const;
  template <class Int>
  void integer_as(std::string_view key, int64_t min, int64_t max, Int* out, Presence presence);
  template <class Int>
  void integers_as(std::string_view key, int64_t min, int64_t max, size_t size_max,
                   std::vector<Int>* out, Presence presence);

  const boost::json::object& object_;
  std::string where_;
  std::string path_;
  std::unordered_set<std::string> known_;
  Status status_;
};

}  // namespace fathom::model
