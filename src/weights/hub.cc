#include "weights/hub.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <fstream>
#include <string>

namespace fathom::weights {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPartMax = 96;
constexpr size_t kRevisionMax = 200;

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

// One part of an id: what the hub allows, so no "..", no leading dot or dash.
bool is_part(std::string_view s) {
  return !s.empty() && s.size() <= kPartMax && s.front() != '.' && s.front() != '-' &&
         s.find("..") == s.npos && std::ranges::all_of(s, is_name_char);
}

// Branch names may hold slashes ("refs/pr/1"); each piece must be harmless as a file name.
bool is_revision(std::string_view s) {
  if (s.size() > kRevisionMax) return false;
  for (;;) {
    const size_t slash = s.find('/');
    if (!is_part(s.substr(0, slash))) return false;
    if (slash == s.npos) return true;
    s.remove_prefix(slash + 1);
  }
}

std::string printable(std::string_view s) {
  std::string out(s.substr(0, kRevisionMax));
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return out;
}

struct HubId {
  std::string org;
  std::string name;
  std::string revision;

  std::string repository() const { return org + "/" + name; }
  std::string fetch_command() const {
    return "hf download " + repository() + (revision == "main" ? "" : " --revision " + revision);
  }
};

Result<HubId> parse_id(std::string_view model) {
  HubId id;
  const size_t at = model.find('@');
  const std::string_view repository = model.substr(0, at);
  id.revision = at == model.npos ? "main" : std::string(model.substr(at + 1));
  const size_t slash = repository.find('/');
  if (slash != repository.npos) {
    id.org = repository.substr(0, slash);
    id.name = repository.substr(slash + 1);
  }
  // "--" separates the parts in the cache's folder names; the hub does not allow it inside of them.
  const bool ambiguous = repository.find("--") != repository.npos;
  if (!ambiguous && is_part(id.org) && is_part(id.name) && is_revision(id.revision)) return id;
  return Status(StatusCode::kInvalidArgument,
                "\"" + printable(model) +
                    "\": neither a folder nor a hub id of the form org/name or org/name@revision");
}

// A path to a place on this machine, and not a hub id.
bool looks_like_path(std::string_view model) {
  return model.starts_with('/') || model.starts_with("./") || model.starts_with("../") ||
         model.starts_with('~') || model == "." || model == "..";
}

// The commit of a branch or tag, or the revision itself if it is no ref.
Result<std::string> commit_of(const HubId& id, const fs::path& repository) {
  const fs::path ref = repository / "refs" / id.revision;
  std::error_code ec;
  if (!fs::is_regular_file(ref, ec)) return id.revision;
  std::ifstream file(ref);
  std::string hash;
  file >> hash;
  if (is_part(hash)) return hash;
  return Status(StatusCode::kDataLoss,
                ref.string() + ": holds no commit; run " + id.fetch_command());
}

Result<fs::path> find_snapshot(const HubId& id, const fs::path& cache_root) {
  const fs::path repository = cache_root / ("models--" + id.org + "--" + id.name);
  std::error_code ec;
  if (!fs::is_directory(repository, ec)) {
    return Status(StatusCode::kNotFound, id.repository() + " is not in the Hugging Face cache (" +
                                             cache_root.string() +
                                             "); fetch it with: " + id.fetch_command());
  }
  FATHOM_ASSIGN(const std::string commit, commit_of(id, repository));
  const fs::path snapshot = repository / "snapshots" / commit;
  if (!fs::is_directory(snapshot, ec)) {
    return Status(StatusCode::kNotFound,
                  id.repository() + ": the Hugging Face cache has no revision " + id.revision +
                      " (" + snapshot.string() + "); fetch it with: " + id.fetch_command());
  }
  if (!fs::exists(snapshot / "config.json", ec)) {
    return Status(StatusCode::kNotFound, snapshot.string() +
                                             ": no config.json, the download is not complete; "
                                             "finish it with: " +
                                             id.fetch_command());
  }
  return snapshot;
}

Result<fs::path> resolve(std::string_view model, const fs::path& cache_root) {
  if (model.empty()) return Status(StatusCode::kInvalidArgument, "the name of the model is empty");
  if (model.find('\0') != model.npos) {
    return Status(StatusCode::kInvalidArgument, "the name of the model holds a zero byte");
  }
  const fs::path path{std::string(model)};
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (fs::is_directory(status)) return path;
  if (fs::exists(status)) {
    return Status(StatusCode::kInvalidArgument,
                  printable(model) + ": a file; give the folder that holds config.json");
  }
  if (looks_like_path(model)) {
    return Status(StatusCode::kNotFound, printable(model) + ": no such folder");
  }
  FATHOM_ASSIGN(const HubId id, parse_id(model));
  return find_snapshot(id, cache_root);
}

}  // namespace

Result<fs::path> resolve_model(std::string_view model, const fs::path& cache_root) {
  try {
    return resolve(model, cache_root);
  } catch (const std::exception& e) {
    return Status(StatusCode::kResourceExhausted, std::string("model name: ") + e.what());
  }
}

}  // namespace fathom::weights
