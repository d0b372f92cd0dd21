#include "properties/ruling_watch.hpp"

#include <utility>

#include "core/base/check.hpp"

namespace reprise {
namespace {

RulingWatch*& watch_here() {
  static thread_local RulingWatch* watch = nullptr;
  return watch;
}

/// Returns "life_judge" for "driver/judges/life_judge.cpp".
std::string judge_in(std::string file) {
  file.erase(0, file.rfind('/') + 1);
  return file.substr(0, file.rfind('.'));
}

}  // namespace

RulingWatch::RulingWatch(std::optional<StatedCode> silenced) : silenced_(std::move(silenced)) {
  CHECK(watch_here() == nullptr);
  watch_here() = this;
}

RulingWatch::~RulingWatch() { watch_here() = nullptr; }

bool may_state(const char* file, RulingCode code) {
  RulingWatch* const watch = watch_here();
  if (watch == nullptr) return true;
  const StatedCode stated{judge_in(file), code};
  watch->heard_.insert(stated);
  return watch->silenced_ != stated;
}

}  // namespace reprise
