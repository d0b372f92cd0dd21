#include "core/engine/generations.hpp"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <tuple>

#include "core/engine/checkpoint.hpp"
#include "core/engine/commit.hpp"
#include "core/format/tracker.hpp"

namespace reprise {
namespace {

/// The name without the suffix; empty if it doesn't end so.
std::string_view without(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : std::string_view();
}

std::optional<Step> step_of(std::string_view name) {
  const auto tracker = tracker_of_directory(name);
  return tracker ? tracker->step : std::nullopt;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Generation& generation) {
  return out << generation.directory << (generation.committed ? "" : " (unfinished)");
}

std::vector<Generation> generations(Store& store, const std::string& root) {
  std::vector<Generation> found;
  const auto top = store.stat(root);
  if (!root.empty() && (!top || !top->directory)) return found;
  for (const Entry& entry : store.list(root)) {
    if (!entry.directory) continue;
    const std::string path = join_path(root, entry.name);
    const std::string_view replaced = without(entry.name, kReplacedSuffix);
    if (const auto step = step_of(entry.name)) {
      found.push_back({*step, path, holds_metadata(store, path)});
    } else if (const auto moved = step_of(replaced)) {
      const bool stands = holds_metadata(store, join_path(root, std::string(replaced)));
      found.push_back({*moved, path, !stands && holds_metadata(store, path)});
    } else if (const auto saved = step_of(without(entry.name, kSavingSuffix))) {
      found.push_back({*saved, path, false});
    }
  }
  std::sort(found.begin(), found.end(), [](const Generation& a, const Generation& b) {
    return std::tuple(a.step.value, !a.committed, a.directory) <
           std::tuple(b.step.value, !b.committed, b.directory);
  });
  return found;
}

}  // namespace reprise
