#pragma once
// Manages directories next to a checkpoint's final path: new ones being written, old ones moved
// away, and ones being removed. Each name ends in the token of the writer's lock, so that two
// writers never use the same directory.
//
//   iter_0000010.saving-0123456789abcdef     being written, or the old one after an exchange
//   iter_0000010.replaced-0123456789abcdef   the old one, if a store cannot exchange
//   iter_0000002.removing-0123456789abcdef   being removed by retention
//   latest_checkpointed_iteration.txt.tmp-0123456789abcdef   the next tracker
//
// Each directory contains a mark. This is a small file whose name has the token and tells whether
// the checkpoint is new or old. A directory without a mark or without a token in its name comes
// from an earlier version or from a user. Such a directory is never moved or removed, and loads use
// it only if there is no other.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/store.hpp"

namespace reprise {

inline constexpr std::string_view kSavingSuffix = ".saving";
inline constexpr std::string_view kReplacedSuffix = ".replaced";
inline constexpr std::string_view kRemovingSuffix = ".removing";
inline constexpr std::string_view kNextSuffix = ".tmp";  ///< suffix of a file; a token follows it

/// Parts of a set-aside name.
struct AsideName {
  std::string base;         ///< name of the checkpoint
  std::string_view suffix;  ///< one of the four suffixes
  std::string token;        ///< token; empty if the name has none
};
/// Parses `name`; returns nothing if it is not a set-aside name.
std::optional<AsideName> aside_name(std::string_view name);
/// Builds the set-aside name for `path`. If `token` is empty, the name has no token part.
std::string aside_path(const std::string& path, std::string_view suffix, const std::string& token);

/// A set-aside directory next to `directory`.
struct Aside {
  std::string path;
  std::string_view suffix;
  std::string token;
};
/// Lists set-aside directories of `path` that have a token.
std::vector<Aside> asides_of(Store& store, const std::string& path);
/// If a crash interrupted the replacement of the checkpoint at `directory`, returns the path of the
/// old copy; nothing if there is none. If there are several copies, returns the newest that has
/// metadata. A copy without a token is returned only if no other copy has metadata.
std::optional<std::string> replaced_copy(Store& store, const std::string& directory);
/// Like replaced_copy(), but considers only copies with this program's mark.
std::optional<Aside> own_replaced_copy(Store& store, const std::string& directory);

/// Returns the name of the file that marks a directory as being written by the lock's holder. The
/// mark stays until the checkpoint has been confirmed at its final path.
std::string mark_of(const std::string& token);
/// Returns the name of the file that marks an old checkpoint as moved away by the lock's holder.
std::string old_mark_of(const std::string& token);
/// True for the name of a mark file of either kind, with any token.
bool is_mark(std::string_view name);
/// True if `directory` has the mark of a directory being written.
bool is_marked(Store& store, const std::string& directory, const std::string& token);
/// True if `directory` has the mark of any writer, which means that its checkpoint was not
/// confirmed.
bool is_unconfirmed(Store& store, const std::string& directory);
/// If possible, marks a checkpoint that is about to be moved away. Never writes through a link.
void mark_as_old(Store& store, const std::string& directory, const std::string& token);
/// True if the directory contains a mark of either kind with the token in the directory's own name.
/// An empty directory is accepted too, because marks are added first and removed last. If the
/// store's listings lag, an empty listing proves nothing and is not accepted.
bool is_own(Store& store, const Aside& aside);

/// Durably removes the metadata of a directory, so that a half-removed checkpoint never looks
/// complete. Does nothing if the directory is a link, because the link's target belongs to somebody
/// else.
void unmark(Store& store, const std::string& directory);
/// Removes all files with names of checkpoint files from a set-aside directory: metadata first and
/// marks last. Then removes the directory if it is empty. Returns what remains. If `directory` is a
/// link, removes the link and does not touch its target. If the store's listings lag, the marks
/// stay until a listing shows nothing but marks.
std::vector<std::string> discard(Store& store, const std::string& directory);
/// Writes `names` into the mark of `directory`, so that discard_unfinished() can remove these
/// files. The writer is about to add them, and their names do not show that they belong to a
/// checkpoint. The names are paths within the directory, each directory before its contents.
void note_beside(Store& store, const std::string& directory, const std::string& token,
                 const std::vector<std::string>& names);
/// Removes an unfinished directory that was written under `token`: the files listed in the mark,
/// the files that belong to a checkpoint by name, and last the mark. Returns what remains, as
/// discard() does. Does nothing if the mark is missing.
std::vector<std::string> discard_unfinished(Store& store, const std::string& directory,
                                            const std::string& token);

}  // namespace reprise
