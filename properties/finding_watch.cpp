#include "properties/finding_watch.hpp"

#include <atomic>

namespace reprise {
namespace {

std::atomic<FindingWatch> watch_now{nullptr};

}  // namespace

void watch_findings(FindingWatch watch) { watch_now = watch; }

bool may_state(const SourceLine& line, FindingCode code) {
  const FindingWatch watch = watch_now;
  return watch == nullptr || watch(line, code);
}

}  // namespace reprise
