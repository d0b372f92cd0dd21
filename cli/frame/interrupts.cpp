#include "cli/frame/interrupts.hpp"

#include <array>
#include <csignal>
#include <cstddef>

namespace reprise::cli {
namespace {

volatile std::sig_atomic_t came_ = 0;

extern "C" void note_signal(int /*number*/) { came_ = 1; }

/// SIGHUP comes when the terminal closes.
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
/// What the signals did before.
std::array<struct sigaction, kSignals.size()> before_ = {};

}  // namespace

std::string left_as_it_was(const std::string& place) {
  return place.empty() ? "" : place + " was not changed, because this run is incomplete\n";
}

Interrupts::Interrupts() {
  came_ = 0;
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    const bool nohup = kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN;
    if (!nohup) sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupts::~Interrupts() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool Interrupts::came() { return came_ != 0; }

}  // namespace reprise::cli
