#pragma once
// Checks that a verb can write a checkpoint to a path without destroying any other files.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments/checkpoint_argument.hpp"

namespace reprise::cli {

/// Returns the path that a verb is to write. A directory before ".." need not exist and is not
/// made: a/../out is out. Throws the same errors as stored_path().
StoredPath path_to_write(const std::string& argument);

/// Removes the parents of OUT that did not exist when this object was made, unless OUT was written.
/// Directories that hold anything stay.
class NewParents {
 public:
  explicit NewParents(const StoredPath& out);
  ~NewParents();
  NewParents(const NewParents&) = delete;
  NewParents& operator=(const NewParents&) = delete;

  void keep() { missing_.clear(); }

 private:
  std::vector<std::filesystem::path> missing_;  ///< innermost first
};

/// Throws USAGE if the directories IN and OUT are the same, if one contains the other, or if IN is
/// in a directory that a writer of OUT would move or remove. `in` is the path that the user gave.
/// Links are followed.
void require_apart(const std::string& in, const StoredPath& out);

/// Says what happens to an existing checkpoint at OUT.
enum class Standing : std::uint8_t { kKept, kReplaced };

/// Throws USAGE if OUT exists and must be kept, or if it contains anything other than a checkpoint.
/// A checkpoint that a crash left next to OUT is treated as if it were at OUT.
void require_free(const StoredPath& out, Standing standing);

/// Lists the unfinished files that earlier writers of OUT left. The paths include the directory
/// that the user gave, so they can be printed.
std::vector<std::string> unfinished_of(const StoredPath& out);
/// Describes the state of OUT after an interrupt of `verb`. Lists files that were written and could
/// not be removed; usually there are none.
std::string left_by_interrupt(const StoredPath& out, std::string_view verb);

}  // namespace reprise::cli
