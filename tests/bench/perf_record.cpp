#include "tests/bench/perf_record.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/bench/limit.hpp"

namespace reprise::bench {
namespace {

struct Pipes {
  OpenFile control;
  OpenFile ack;
};

/// Returns the pipes to perf; null if REPRISE_PERF is not set.
const Pipes* pipes() {
  static const char* const said = std::getenv("REPRISE_PERF");
  if (said == nullptr) return nullptr;
  static const std::string text = said;
  static const auto comma = text.find(',');
  if (comma == std::string::npos) give_up("REPRISE_PERF is not CONTROL,ACK: " + text);
  static const Pipes opened{OpenFile(text.substr(0, comma), O_WRONLY),
                            OpenFile(text.substr(comma + 1), O_RDONLY)};
  return &opened;
}

/// Sends a command, and waits until perf has acknowledged it.
void tell_perf(std::string_view command) {
  const Pipes* const perf = pipes();
  if (perf == nullptr) return;
  std::array<char, 8> answer = {};
  if (::write(perf->control.get(), command.data(), command.size()) < 0 ||
      ::read(perf->ack.get(), answer.data(), answer.size()) <= 0) {
    give_up("perf does not answer");
  }
}

}  // namespace

PerfRecord::PerfRecord() { tell_perf("enable\n"); }
PerfRecord::~PerfRecord() { tell_perf("disable\n"); }

}  // namespace reprise::bench
