#include "core/checkpoint/checkpoint_names.hpp"

#include <algorithm>
#include <string_view>

#include "core/checkpoint/set_aside.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/format/metadata.hpp"

namespace reprise {
namespace {

bool take_number(std::string_view& text) {
  const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(end);
  return end > 0;
}

/// True for names such as "__3_0.distcp".
bool is_payload(std::string_view name) {
  if (!name.starts_with("__")) return false;
  name.remove_prefix(2);
  if (!take_number(name) || !name.starts_with('_')) return false;
  name.remove_prefix(1);
  return take_number(name) && name == ".distcp";
}

}  // namespace

bool is_small_file(const Entry& entry) {
  if (entry.directory && !entry.link) return false;
  const std::string_view name = entry.name;
  return name == kMetadataFile || rank_of_metadata(name) || name == kCommonFile ||
         name == kBackendFile || name == kIntegrityFile || name == kSealFile || is_mark(name);
}

bool belongs_to_checkpoint(const Entry& entry) {
  if (entry.directory && !entry.link) return false;
  return is_small_file(entry) || is_payload(entry.name);
}

std::vector<std::string> others_in(Store& store, const std::string& directory) {
  std::vector<std::string> others;
  for (const Entry& entry : store.list(directory)) {
    if (!belongs_to_checkpoint(entry)) others.push_back(entry.name);
  }
  return others;
}

}  // namespace reprise
