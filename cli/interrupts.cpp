#include "cli/interrupts.hpp"

#include <csignal>
#include <initializer_list>

namespace reprise::cli {
namespace {

volatile std::sig_atomic_t came_ = 0;

extern "C" void note_signal(int /*number*/) { came_ = 1; }

void take(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
}

}  // namespace

std::string left_as_it_was(const std::string& place) {
  return place.empty() ? "" : place + " was not changed, because this run is not whole\n";
}

Interrupts::Interrupts() {
  came_ = 0;
  take(note_signal, SA_RESTART | static_cast<int>(SA_RESETHAND));
}

Interrupts::~Interrupts() { take(SIG_DFL, 0); }

bool Interrupts::came() { return came_ != 0; }

}  // namespace reprise::cli
