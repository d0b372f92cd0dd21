#include "sim/faults/checkpoint_file.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/engine/set_aside.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/integrity.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"

namespace reprise::sim {
namespace {

constexpr std::array<std::string_view, 7> kFileKinds = {
    "payload", "metadata", "common", "backend", "manifest", "tracker", "checkpoint"};

constexpr std::array kNames = {
    std::pair<std::string_view, std::string_view>{".metadata", "metadata"},
    std::pair<std::string_view, std::string_view>{"common.pt", "common"},
    std::pair<std::string_view, std::string_view>{kBackendFile, "backend"},
    std::pair<std::string_view, std::string_view>{kIntegrityFile, "manifest"},
    std::pair<std::string_view, std::string_view>{kTrackerFile, "tracker"},
};

bool drop_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

}  // namespace

std::span<const std::string_view> file_kinds() { return kFileKinds; }

std::string_view kind_of_file(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  drop_end(name, ".tmp");
  const auto aside = aside_name(name);
  if (aside && aside->suffix == kNextSuffix) name = std::string_view(aside->base);
  if (name.ends_with(".distcp")) return "payload";
  for (const auto& [file, kind] : kNames) {
    if (name == file) return kind;
  }
  const bool going = aside && aside->suffix == kRemovingSuffix;
  return name.starts_with("iter_") && !going ? "checkpoint" : "";
}

std::vector<std::string> files_of(Store& store, const std::string& directory,
                                  std::string_view kind) {
  std::vector<std::string> found;
  for (const auto& entry : store.list(directory)) {
    if (!entry.directory && kind_of_file(entry.name) == kind) {
      found.push_back(join_path(directory, entry.name));
    }
  }
  return found;
}

}  // namespace reprise::sim
