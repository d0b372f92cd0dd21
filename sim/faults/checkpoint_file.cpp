#include "sim/faults/checkpoint_file.hpp"

#include <algorithm>
#include <array>

#include "core/checkpoint/set_aside.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/integrity.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"

namespace reprise::sim {
namespace {

struct KindRow {
  FileKind kind;
  std::string_view name;
  std::string_view file;  ///< empty if the kind has no fixed name
};
constexpr std::array kKindRows = {
    KindRow{FileKind::kPayload, "payload", ""},
    KindRow{FileKind::kMetadata, "metadata", ".metadata"},
    KindRow{FileKind::kCommon, "common", "common.pt"},
    KindRow{FileKind::kBackend, "backend", kBackendFile},
    KindRow{FileKind::kManifest, "manifest", kIntegrityFile},
    KindRow{FileKind::kTracker, "tracker", kTrackerFile},
    KindRow{FileKind::kCheckpoint, "checkpoint", ""},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kKindRows.size(); ++i) {
    if (static_cast<std::size_t>(kKindRows[i].kind) != i) return false;
  }
  return true;
}
static_assert(is_in_order());

bool drop_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

}  // namespace

std::string_view name_of(FileKind kind) {
  return kKindRows.at(static_cast<std::size_t>(kind)).name;
}

std::vector<std::string_view> file_kind_names() {
  std::vector<std::string_view> names;
  for (const KindRow& row : kKindRows) names.push_back(row.name);
  return names;
}

std::optional<FileKind> file_kind_named(std::string_view name) {
  const auto* const row = std::ranges::find(kKindRows, name, &KindRow::name);
  return row == kKindRows.end() ? std::nullopt : std::optional(row->kind);
}

std::optional<FileKind> kind_of_file(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  drop_end(name, ".tmp");
  const auto aside = aside_name(name);
  if (aside && aside->suffix == kNextSuffix) name = std::string_view(aside->base);
  if (name.empty()) return std::nullopt;
  if (name.ends_with(".distcp")) return FileKind::kPayload;
  for (const KindRow& row : kKindRows) {
    if (name == row.file) return row.kind;
  }
  const bool going = aside && aside->suffix == kRemovingSuffix;
  if (!name.starts_with("iter_") || going) return std::nullopt;
  return FileKind::kCheckpoint;
}

std::vector<std::string> files_of(Store& store, const std::string& directory, FileKind kind) {
  std::vector<std::string> found;
  for (const auto& entry : store.list(directory)) {
    if (!entry.directory && kind_of_file(entry.name) == kind) {
      found.push_back(join_path(directory, entry.name));
    }
  }
  return found;
}

}  // namespace reprise::sim
