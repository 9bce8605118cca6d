// FATHOM_CHECK(cond) << values: aborts with place and values when an invariant of our own is
// broken. Never for what a user, a file or the system can cause: those are a Status.
#pragma once

#include <sstream>

namespace fathom {

// Collects the message; its destructor prints it to stderr and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  template <class T>
  CheckFailure& operator<<(const T& value) {
    message_ << value;
    return *this;
  }

 private:
  std::ostringstream message_;
};

}  // namespace fathom

#define FATHOM_CHECK(cond) \
  if (cond) [[likely]] {   \
  } else                   \
    ::fathom::CheckFailure(__FILE__, __LINE__, #cond)

#ifdef NDEBUG
#define FATHOM_DCHECK(cond) \
  if (true) {               \
  } else                    \
    ::fathom::CheckFailure(__FILE__, __LINE__, #cond)
#else
#define FATHOM_DCHECK(cond) FATHOM_CHECK(cond)
#endif
