#include "grammar/schema_formats.h"

#include <algorithm>
#include <array>

namespace fathom::grammar {
namespace {

#define FATHOM_DATE                                                                 \
  "[12][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:" \
  "0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
#define FATHOM_TIME                                                                               \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-" \
  "5][0-9])"
#define FATHOM_BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define FATHOM_LABEL "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,40}[a-zA-Z0-9])?"
#define FATHOM_HOST FATHOM_LABEL "(?:\\." FATHOM_LABEL "){0,4}"
#define FATHOM_PATH "(?:/[a-zA-Z0-9._~-]{0,100}){0,16}"
#define FATHOM_URI                                                           \
  "[a-z][a-z0-9+-]{1,11}://" FATHOM_HOST "(?::[1-9][0-9]{0,3})?" FATHOM_PATH \
  "(?:\\?[a-zA-Z0-9._~=&-]{0,200})?(?:#[a-zA-Z0-9._~-]{0,100})?"
#define FATHOM_CLOCK \
  "T(?:[0-9]{1,2}H(?:[0-9]{1,2}M(?:[0-9]{1,2}S)?)?|[0-9]{1,2}M(?:[0-9]{1,2}S)?|[0-9]{1,2}S)"
#define FATHOM_HEX "[0-9a-fA-F]"

struct Row {
  std::string_view name, pattern;
};

constexpr auto kRows = std::to_array<Row>({
    {"date", FATHOM_DATE},
    {"time", FATHOM_TIME},
    {"date-time", FATHOM_DATE "T" FATHOM_TIME},
    {"duration",
     "P(?:(?:[0-9]{1,4}Y(?:[0-9]{1,2}M(?:[0-9]{1,2}D)?)?|[0-9]{1,2}M(?:[0-9]{1,2}D)?|[0-9]{1,3}D)(?"
     ":" FATHOM_CLOCK ")?|" FATHOM_CLOCK "|[0-9]{1,4}W)"},
    {"email", "[a-zA-Z0-9][a-zA-Z0-9_%+-]{0,30}(?:\\.[a-zA-Z0-9_%+-]{1,30}){0,3}@" FATHOM_LABEL
              "(?:\\." FATHOM_LABEL "){0,2}\\.[a-zA-Z]{2,12}"},
    {"hostname", FATHOM_HOST},
    {"ipv4", FATHOM_BYTE "(?:\\." FATHOM_BYTE "){3}"},
    {"ipv6", "(?:" FATHOM_HEX "{1,4}:){7}" FATHOM_HEX "{1,4}|::(?:" FATHOM_HEX
             "{1,4}(?::" FATHOM_HEX "{1,4}){0,5})?|(?:" FATHOM_HEX "{1,4}:){1,3}:" FATHOM_HEX
             "{1,4}(?::" FATHOM_HEX "{1,4}){0,2}"},
    {"uuid",
     FATHOM_HEX "{8}-" FATHOM_HEX "{4}-" FATHOM_HEX "{4}-" FATHOM_HEX "{4}-" FATHOM_HEX "{12}"},
    {"uri", FATHOM_URI},
    {"iri", FATHOM_URI},
    {"uri-reference", FATHOM_URI "|/[a-zA-Z0-9._~-]{0,100}" FATHOM_PATH},
    {"iri-reference", FATHOM_URI "|/[a-zA-Z0-9._~-]{0,100}" FATHOM_PATH},
    {"json-pointer", "(?:/(?:[a-zA-Z0-9 ._-]|~[01]){0,40}){0,8}"},
});

}  // namespace

std::string_view format_pattern(std::string_view format) {
  const auto* row =
      std::find_if(kRows.begin(), kRows.end(), [format](const Row& r) { return r.name == format; });
  return row == kRows.end() ? std::string_view() : row->pattern;
}

std::string_view format_names() {
  return "date, time, date-time, duration, email, hostname, ipv4, ipv6, uuid, uri, uri-reference, "
         "iri, "
         "iri-reference, json-pointer";
}

}  // namespace fathom::grammar
