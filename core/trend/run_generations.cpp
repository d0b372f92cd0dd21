#include "core/trend/run_generations.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/natural_order.hpp"
#include "core/checkpoint/locate_checkpoint.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

constexpr int kLevels = 2;

/// Splits "step-10" into "step-" and 10.
std::optional<std::pair<std::string, std::int64_t>> numbered(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::size_t digits = last == std::string_view::npos ? 0 : last + 1;
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(name.data() + digits, name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return std::pair(std::string(name.substr(0, digits)), number);
}

/// True if a checkpoint is in the directory itself, also one that can't be read.
bool is_checkpoint(Store& store, const std::string& directory) {
  try {
    return locate(store, directory, {}, Formats::kAll).directory == directory;
  } catch (const Error& error) {
    return error.code() == Code::kUnsupported;
  }
}

void add_checkpoints(Store& store, const std::string& directory, const std::string& name,
                     int levels, std::vector<std::string>& found) {
  if (is_checkpoint(store, directory)) {
    found.push_back(name);
    return;
  }
  if (levels == 0) return;
  for (const Entry& entry : store.list(directory)) {
    if (!entry.directory) continue;
    add_checkpoints(store, join_path(directory, entry.name),
                    name.empty() ? entry.name : name + "/" + entry.name, levels - 1, found);
  }
}

}  // namespace

std::vector<std::string> checkpoints_within(Store& store, const std::string& directory) {
  std::vector<std::string> found;
  add_checkpoints(store, directory, "", kLevels, found);
  std::ranges::sort(found, in_natural_order);
  return found;
}

RunGenerations run_generations(Store& store, const std::string& root) {
  std::map<std::string, std::vector<RunGeneration>> by_text;
  std::map<std::string, std::vector<std::string>> unfinished;
  for (const Entry& entry : store.list(root)) {
    const auto split = entry.directory ? numbered(entry.name) : std::nullopt;
    if (!split || aside_name(entry.name)) continue;
    const std::string path = join_path(root, entry.name);
    RunGeneration one{.number = split->second, .name = entry.name, .path = path};
    try {
      one.parts = checkpoints_within(store, path);
    } catch (const Error& error) {
      one.unread = error.what();
    }
    if (one.parts.empty() && one.unread.empty()) {
      unfinished[split->first].push_back(entry.name);
    } else {
      by_text[split->first].push_back(std::move(one));
    }
  }
  RunGenerations run;
  const auto most =
      std::ranges::max_element(by_text, {}, [](const auto& named) { return named.second.size(); });
  if (most == by_text.end()) return run;
  run.found = most->second;
  std::ranges::stable_sort(run.found, {}, &RunGeneration::number);
  run.unfinished = unfinished[most->first];
  for (const auto& [text, others] : by_text) {
    if (text == most->first) continue;
    for (const RunGeneration& other : others) run.other_names.push_back(other.name);
  }
  return run;
}

}  // namespace reprise
