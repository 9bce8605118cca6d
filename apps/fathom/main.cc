#include <clocale>
#include <exception>
#include <new>

#include "command_line.h"
#include "failure.h"
#include "interrupt.h"

int main(int argc, char** argv) {
  using namespace fathom::app;
  catch_signals();
  std::setlocale(LC_CTYPE, "C.UTF-8");
  try {
    return run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    print_failure("out of memory; close other programs or give less work at once");
    return kExitNoRoom;
  } catch (const std::exception& e) {
    print_failure(std::string("unexpected failure: ") + e.what());
    return kExitFailed;
  }
}
