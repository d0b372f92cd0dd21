#include "core/checkpoint/set_aside.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/checkpoint_names.hpp"
#include "core/format/metadata.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr std::array kSuffixes = {kSavingSuffix, kReplacedSuffix, kRemovingSuffix, kNextSuffix};
constexpr std::string_view kMarkPrefix = ".reprise-";
constexpr std::string_view kOldMarkSuffix = "-old";
constexpr std::size_t kTokenDigits = 16;
constexpr std::byte kNameEnds{0};
constexpr std::uint64_t kNotedBytesMax = std::uint64_t{64} << 20U;

bool is_token(std::string_view text) {
  return text.size() == kTokenDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string_view name_in(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// True for a directory, but not for a link to one.
bool is_directory(const std::optional<Entry>& entry) {
  return entry && entry->directory && !entry->link;
}

/// Returns a sort key that puts set-aside copies in the order of their save times. If the store
/// does not record times, the tokens decide: later tokens are larger.
std::tuple<std::int64_t, std::string> age_of(Store& store, const Aside& aside,
                                             const std::string& metadata) {
  const auto found = store.stat(join_path(aside.path, metadata));
  return {found ? found->modified_ns.value_or(0) : 0, aside.token};
}

/// True if a directory above `name` is a link. The target of a link may belong to somebody else, so
/// nothing in it is removed.
bool lies_behind_link(Store& store, const std::string& directory, const std::string& name) {
  for (auto at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1)) {
    const auto above = store.stat(join_path(directory, name.substr(0, at)));
    if (!is_directory(above)) return true;
  }
  return false;
}

/// Removes a file or an empty directory.
void remove_noted(Store& store, const std::string& directory, const std::string& name) {
  if (lies_behind_link(store, directory, name)) return;
  const std::string path = join_path(directory, name);
  const auto found = store.stat(path);
  if (is_directory(found)) {
    store.remove_empty(path);
  } else if (found) {
    store.remove(path);
  }
}

/// True if `entries` contains only marks, among them the mark of an old checkpoint. This proves
/// that the directory contains no other files, even if the store's listings lag: that mark is
/// created after all other files, so a listing with the mark shows every other file too. If the
/// mark is missing, creates it, so that the listing of a later save can include it.
bool shows_marks_alone(Store& store, const std::string& directory,
                       const std::vector<Entry>& entries) {
  const auto name = aside_name(name_in(directory));
  if (!name) return false;
  const std::string last = old_mark_of(name->token);
  if (!store.stat(join_path(directory, last))) mark_as_old(store, directory, name->token);
  return std::ranges::all_of(entries, is_mark, &Entry::name) &&
         std::ranges::find(entries, last, &Entry::name) != entries.end();
}

/// Returns the names recorded by note_beside().
std::vector<std::string> noted_beside(Store& store, const std::string& directory,
                                      const std::string& token) {
  const std::string mark = join_path(directory, mark_of(token));
  const auto found = store.stat(mark);
  if (!found || found->size == 0) return {};
  const Bytes content = read_all(store, mark, kNotedBytesMax);
  std::vector<std::string> names;
  for (auto begin = content.begin(); begin != content.end();) {
    const auto end = std::find(begin, content.end(), kNameEnds);
    if (end == content.end()) break;  // the record was truncated
    names.emplace_back(as_text(ByteSpan(begin, end)));
    begin = end + 1;
  }
  return names;
}

/// Returns the newest copy that has metadata and for which `counts` returns true.
template <class Counts>
std::optional<Aside> newest_copy(Store& store, const std::string& directory, Counts counts) {
  const auto above = store.stat(parent_path(directory));
  if (!above || !above->directory) return std::nullopt;
  std::optional<Aside> newest;
  std::tuple<std::int64_t, std::string> newest_age;
  for (const Aside& aside : asides_of(store, directory)) {
    if (aside.suffix != kReplacedSuffix || !counts(aside)) continue;
    const auto metadata = metadata_names(store, aside.path);
    if (metadata.empty()) continue;
    auto age = age_of(store, aside, metadata.front());
    if (newest && age < newest_age) continue;
    newest = aside;
    newest_age = std::move(age);
  }
  return newest;
}

}  // namespace

std::optional<AsideName> aside_name(std::string_view name) {
  for (const auto suffix : kSuffixes) {
    const auto at = name.rfind(suffix);
    if (at == std::string_view::npos || at == 0) continue;
    const auto rest = name.substr(at + suffix.size());
    const bool has_token = rest.starts_with('-') && is_token(rest.substr(1));
    if (!has_token && (!rest.empty() || suffix == kNextSuffix)) continue;
    return AsideName{std::string(name.substr(0, at)), suffix,
                     std::string(has_token ? rest.substr(1) : rest)};
  }
  return std::nullopt;
}

std::string aside_path(const std::string& path, std::string_view suffix, const std::string& token) {
  return path + std::string(suffix) + (token.empty() ? "" : "-" + token);
}

std::vector<Aside> asides_of(Store& store, const std::string& path) {
  const std::string parent = parent_path(path);
  std::vector<Aside> found;
  for (const Entry& entry : store.list(parent)) {
    const auto name = aside_name(entry.name);
    if (!name || name->token.empty() || name->base != name_in(path)) continue;
    found.push_back({join_path(parent, entry.name), name->suffix, name->token});
  }
  return found;
}

std::optional<std::string> replaced_copy(Store& store, const std::string& directory) {
  if (auto copy = newest_copy(store, directory, [](const Aside&) { return true; })) {
    return std::move(copy->path);
  }
  const std::string plain = aside_path(directory, kReplacedSuffix, "");
  return holds_metadata(store, plain) ? std::optional(plain) : std::nullopt;
}

std::optional<Aside> own_replaced_copy(Store& store, const std::string& directory) {
  return newest_copy(store, directory,
                     [&store](const Aside& aside) { return is_own(store, aside); });
}

std::string mark_of(const std::string& token) { return std::string(kMarkPrefix) + token; }

std::string old_mark_of(const std::string& token) {
  return mark_of(token) + std::string(kOldMarkSuffix);
}

bool is_mark(std::string_view name) {
  if (!name.starts_with(kMarkPrefix)) return false;
  name.remove_prefix(kMarkPrefix.size());
  if (name.ends_with(kOldMarkSuffix)) name.remove_suffix(kOldMarkSuffix.size());
  return is_token(name);
}

bool is_marked(Store& store, const std::string& directory, const std::string& token) {
  return is_directory(store.stat(directory)) &&
         store.stat(join_path(directory, mark_of(token))).has_value();
}

bool is_unconfirmed(Store& store, const std::string& directory) {
  if (!is_directory(store.stat(directory))) return false;
  const auto entries = store.list(directory);
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return is_mark(entry.name) && !entry.name.ends_with(kOldMarkSuffix);
  });
}

void mark_as_old(Store& store, const std::string& directory, const std::string& token) {
  if (!is_directory(store.stat(directory))) return;
  try {
    store.create(join_path(directory, old_mark_of(token)))->close();
    // Without this sync, a power cut could leave a renamed directory without its mark.
    store.sync_directory(directory);
  } catch (const Error&) {
    // Another user's directory cannot always be marked. If this writer dies after moving such a
    // directory, no later writer removes it.
  }
}

bool is_own(Store& store, const Aside& aside) {
  if (!is_directory(store.stat(aside.path))) return false;
  const auto entries = store.list(aside.path);
  return (entries.empty() && !store.capabilities().lists_lag) ||
         std::any_of(entries.begin(), entries.end(), [&aside](const Entry& entry) {
           return entry.name == mark_of(aside.token) || entry.name == old_mark_of(aside.token);
         });
}

void unmark(Store& store, const std::string& directory) {
  if (!is_directory(store.stat(directory))) return;
  bool removed = false;
  for (const Entry& entry : store.list(directory)) {
    if (entry.name != kMetadataFile && !rank_of_metadata(entry.name)) continue;
    if (entry.directory && !entry.link) continue;
    store.remove(join_path(directory, entry.name));
    removed = true;
  }
  if (removed) store.sync_directory(directory);
}

std::vector<std::string> discard(Store& store, const std::string& directory) {
  const auto found = store.stat(directory);
  if (!found) return {};
  if (found->link) {
    store.remove(directory);
    return {};
  }
  if (!found->directory) return {found->name};
  unmark(store, directory);
  std::vector<std::string> others;
  std::vector<std::string> marks;
  const auto entries = store.list(directory);
  for (const Entry& entry : entries) {
    if (is_mark(entry.name)) {
      marks.push_back(entry.name);
    } else if (belongs_to_checkpoint(entry)) {
      store.remove(join_path(directory, entry.name));
    } else {
      others.push_back(entry.name);
    }
  }
  if (store.capabilities().lists_lag && !shows_marks_alone(store, directory, entries)) {
    return others;
  }
  for (const auto& name : marks) store.remove(join_path(directory, name));
  if (others.empty() && !store.remove_empty(directory)) others.emplace_back("what was put there");
  return others;
}

void note_beside(Store& store, const std::string& directory, const std::string& token,
                 const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::string content;
  for (const std::string& name : names) content += name + '\0';
  write_durably(store, join_path(directory, mark_of(token)), as_bytes(content));
}

std::vector<std::string> discard_unfinished(Store& store, const std::string& directory,
                                            const std::string& token) {
  if (!is_marked(store, directory, token)) return {};
  const std::vector<std::string> names = noted_beside(store, directory, token);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    remove_noted(store, directory, *name);
  }
  return discard(store, directory);
}

}  // namespace reprise
