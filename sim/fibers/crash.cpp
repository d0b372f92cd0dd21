#include "sim/fibers/crash.hpp"

#include <unistd.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <vector>

namespace reprise::sim {
namespace {

constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr unsigned kSecondsToTell = 60;
constexpr std::size_t kHandlerStack = 1U << 16U;

/// Says where this thread goes on after a crash, and which words it writes before that.
struct WayOut {
  sigjmp_buf place = {};
  const char* words = nullptr;
  std::size_t length = 0;
};
thread_local WayOut* way_out_ = nullptr;

extern "C" void leave_crash(int signal) {
  WayOut* out = way_out_;
  if (out == nullptr) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  way_out_ = nullptr;
  alarm(kSecondsToTell);
  static_cast<void>(!write(STDERR_FILENO, out->words, out->length));
  siglongjmp(out->place, signal);
}

/// Installs the handler once, for crashes that nobody handles.
void handle_crashes() {
  static const bool done = [] {
    for (const int signal : kCrashes) {
      struct sigaction before = {};
      sigaction(signal, nullptr, &before);
      if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) continue;
      struct sigaction action = {};
      action.sa_handler = leave_crash;
      action.sa_flags = SA_ONSTACK;
      sigaction(signal, &action, nullptr);
    }
    return true;
  }();
  static_cast<void>(done);
}

/// A stack of its own for this thread's handler: the crash may be a full stack.
class HandlerStack {
 public:
  HandlerStack() : room_(kHandlerStack) {
    stack_t stack = {};
    stack.ss_sp = room_.data();
    stack.ss_size = room_.size();
    sigaltstack(&stack, &before_);
  }
  ~HandlerStack() { sigaltstack(&before_, nullptr); }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  std::vector<std::byte> room_;
  stack_t before_ = {};
};

}  // namespace

int crash_of(const std::string& words, const std::function<void()>& job) {
  handle_crashes();
  const HandlerStack stack;
  WayOut out{.words = words.data(), .length = words.size()};
  if (const int signal = sigsetjmp(out.place, 1); signal != 0) return signal;
  way_out_ = &out;
  try {
    job();
  } catch (...) {
    way_out_ = nullptr;
    throw;
  }
  way_out_ = nullptr;
  return 0;
}

}  // namespace reprise::sim
