#include "properties/ruling_watch.hpp"

#include <atomic>

namespace reprise {
namespace {

std::atomic<RulingWatch> watch_now{nullptr};

}  // namespace

void watch_rulings(RulingWatch watch) { watch_now = watch; }

bool may_state(const SourceLine& line, RulingCode code) {
  const RulingWatch watch = watch_now;
  return watch == nullptr || watch(line, code);
}

}  // namespace reprise
