#include "core/checkpoint/generations.hpp"

#include <algorithm>
#include <ostream>
#include <set>
#include <string_view>
#include <tuple>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
std::ostream& operator<<(std::ostream& out, const Generation& generation) {
  return out << generation.directory << (generation.committed ? "" : " (unfinished)");
}

std::optional<Generation> newest_generation(Store& store, const std::string& root,
                                            const StepNames& names) {
  const auto all = generations(store, root, names);
  const auto newest =
      std::find_if(all.rbegin(), all.rend(), [](const Generation& one) { return one.committed; });
  return newest == all.rend() ? std::nullopt : std::optional(*newest);
}

std::vector<Generation> generations(Store& store, const std::string& root, const StepNames& names) {
  std::vector<Generation> found;
  std::set<std::string> newest;  // newest set-aside copy of each step
  const auto top = store.stat(root);
  if (!root.empty() && (!top || !top->directory)) return found;
  for (const Entry& entry : store.list(root)) {
    if (!entry.directory) continue;
    const std::string path = join_path(root, entry.name);
    if (const auto step = names.step_of(entry.name)) {
      found.push_back({*step, path, holds_metadata(store, path)});
      continue;
    }
    const auto aside = aside_name(entry.name);
    const auto step = aside ? names.step_of(aside->base) : std::nullopt;
    if (!step || aside->suffix == kRemovingSuffix) continue;
    const std::string base = join_path(root, aside->base);
    const bool moved = aside->suffix == kReplacedSuffix && !holds_metadata(store, base);
    found.push_back({*step, path, moved && holds_metadata(store, path)});
    if (moved) newest.insert(replaced_copy(store, base).value_or(""));
  }
  const auto place = [&newest](const Generation& one) {
    return std::tuple(one.step.value, !one.committed, newest.contains(one.directory),
                      one.directory);
  };
  std::sort(found.begin(), found.end(),
            [&place](const Generation& a, const Generation& b) { return place(a) < place(b); });
  return found;
}

}  // namespace reprise
