#pragma once
// The working directory of a life: a copy of the user's, so that nothing of the user's is
// overwritten and no life sees what another one wrote.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace reprise::driver {

struct WorkSource {
  std::filesystem::path directory;  ///< the user's working directory
  /// Entries, relative to `directory`, that are linked and not copied: what is only read.
  std::vector<std::string> links;
  /// Entries, relative to `directory`, that are left out.
  std::vector<std::string> without;
  /// Lives run in `directory` itself; nothing is copied, and only {work} is replaced.
  bool in_place = false;
  std::uint64_t bytes_max = std::uint64_t{1} << 30U;
  std::uint64_t files_max = 50'000;
};

/// Makes `target`, which must not exist, a copy of the directory. Linked without being asked for
/// are .git and environments of Python; __pycache__ is left out. A symbolic link stays one: a
/// relative link that stays inside is copied as it is, others point to the same target.
/// Throws USAGE, and copies nothing, if there is more to copy than the limits allow (the message
/// has the largest entries), or if an entry of `links` does not exist. Throws NO_SPACE if there is
/// too little space for the copy.
void copy_work_tree(const WorkSource& source, const std::filesystem::path& target);

/// Returns the command's words as a life in `target` needs them. A path inside the source, alone or
/// after "=", becomes one inside the target, except below linked entries; a path that begins with
/// ".." and exists becomes absolute; {work} becomes the target.
std::vector<std::string> words_in(const WorkSource& source, const std::filesystem::path& target,
                                  const std::vector<std::string>& words);

}  // namespace reprise::driver
