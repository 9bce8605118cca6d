#include "grammar/xgrammar_calls.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace fathom::grammar {
namespace {

// Warnings of the call that runs on this thread.
thread_local std::string* warnings = nullptr;

constexpr size_t kMaxMessageBytes = 600;

}  // namespace

void note_warning(const std::string& message) {
  if (warnings == nullptr || warnings->size() > kMaxMessageBytes) return;
  if (!warnings->empty()) *warnings += "; ";
  *warnings += message;
}

Status guarded(std::string_view what, const std::function<void()>& call) {
  std::string collected, fault;
  std::string* const outer = warnings;
  warnings = &collected;
  try {
    call();
    fault = collected;
  } catch (const std::bad_alloc&) {
    warnings = outer;
    return Status(StatusCode::kResourceExhausted, std::string(what) + ": out of memory");
  } catch (const std::exception& error) {
    fault = error.what();
    if (fault.empty()) fault = "refused";
  } catch (...) {
    fault = "refused";
  }
  warnings = outer;
  if (fault.empty()) return Status();
  return Status(StatusCode::kInvalidArgument,
                std::string(what) + ": " + fault.substr(0, kMaxMessageBytes));
}

}  // namespace fathom::grammar

// The library's own log functions, which we define (XGRAMMAR_LOG_CUSTOMIZE): its messages hold
// paths of the build, and it would print them.
namespace xgrammar {

[[noreturn]] void LogFatalImpl(const std::string& file, int line, const std::string& message);
void LogMessageImpl(const std::string& file, int line, int level, const std::string& message);

void LogFatalImpl(const std::string&, int, const std::string& message) {
  throw std::runtime_error(message);
}

void LogMessageImpl(const std::string&, int, int level, const std::string& message) {
  constexpr int kWarning = 2;
  if (level >= kWarning) fathom::grammar::note_warning(message);
}

}  // namespace xgrammar
