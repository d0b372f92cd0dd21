#pragma once
// Directories beside a checkpoint's place: what is being written, what made way, what is on its way
// out. Their names end in the token of the lock under which they were made, so that two writers
// never share one.
//
//   iter_0000010.saving-0123456789abcdef     written, or what stood there before an exchange
//   iter_0000010.replaced-0123456789abcdef   what stood there, where a store can't exchange
//   iter_0000002.removing-0123456789abcdef   retention's; also of a name that ends in .replaced-...
//   latest_checkpointed_iteration.txt.tmp-0123456789abcdef   the next tracker
//
// Each carries a mark inside, an empty file that names the token: of what is written, or of what
// made way. A directory without its mark, or without a token in its name, is an earlier version's
// or somebody's own. It is read where nothing else is left, and never moved or removed.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/store.hpp"

namespace reprise {

inline constexpr std::string_view kSavingSuffix = ".saving";
inline constexpr std::string_view kReplacedSuffix = ".replaced";
inline constexpr std::string_view kRemovingSuffix = ".removing";
inline constexpr std::string_view kNextSuffix = ".tmp";  ///< of a file; never without a token

/// Such a name taken apart.
struct AsideName {
  std::string base;         ///< of the checkpoint
  std::string_view suffix;  ///< one of the four
  std::string token;        ///< empty in names without one
};
/// Returns nothing for other names.
std::optional<AsideName> aside_name(std::string_view name);
/// Puts the name of `path` set aside together; without the token if that is empty.
std::string aside_path(const std::string& path, std::string_view suffix, const std::string& token);

/// One that stands beside `directory`.
struct Aside {
  std::string path;
  std::string_view suffix;
  std::string token;
};
/// Lists what was set aside of `path` under a token.
std::vector<Aside> asides_of(Store& store, const std::string& path);
/// Returns where the checkpoint of `directory` is if a crash fell between the two steps that
/// replace it; nothing if it is nowhere. Of several the newest that holds metadata, one without a
/// token last.
std::optional<std::string> replaced_copy(Store& store, const std::string& directory);
/// The same of those alone that carry this program's mark.
std::optional<Aside> own_replaced_copy(Store& store, const std::string& directory);

/// Returns the name of the file that marks a directory as one that the lock's holder writes, until
/// the checkpoint in it was confirmed in its place.
std::string mark_of(const std::string& token);
/// Returns that of the file which marks a checkpoint as one that makes way for the lock's holder.
std::string old_mark_of(const std::string& token);
/// True for the name of such a file, of either kind, under whichever token.
bool is_mark(std::string_view name);
/// True if `directory` carries the mark of what is written.
bool is_marked(Store& store, const std::string& directory, const std::string& token);
/// True if it carries that of any writer: then it was not confirmed.
bool is_unconfirmed(Store& store, const std::string& directory);
/// Marks what is about to make way, as far as that is possible. Nothing is put into what a link
/// leads to.
void mark_as_old(Store& store, const std::string& directory, const std::string& token);
/// True if it carries either mark of its own token, or if nothing is in it: marks come first and go
/// last. A list that lags does not show that nothing is in it.
bool is_own(Store& store, const Aside& aside);

/// Removes the metadata of a directory for good, so that what is half removed never looks whole.
/// What a link leads to is somebody else's, and left alone.
void unmark(Store& store, const std::string& directory);
/// Removes from a directory that was set aside what belongs to a checkpoint by its name, metadata
/// first and marks last, and then the directory itself if nothing else is in it. Returns what else
/// there is. A link to a directory is removed, and what it leads to is left alone. Where lists lag
/// the marks stay until one shows them alone.
std::vector<std::string> discard(Store& store, const std::string& directory);
/// Notes in the mark of `directory` what its writer is about to lay there that belongs to a
/// checkpoint by no name: paths within it, each directory before what is in it.
void note_beside(Store& store, const std::string& directory, const std::string& token,
                 const std::vector<std::string>& names);
/// Removes what was being written under that token: what was noted, and what belongs to a
/// checkpoint by its name, the mark last. Returns what else there is, as discard(). Nothing if it
/// does not carry the mark.
std::vector<std::string> discard_unfinished(Store& store, const std::string& directory,
                                            const std::string& token);

}  // namespace reprise
