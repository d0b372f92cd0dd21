#pragma once
// Finds the pickles in a file, and lists what loading them would import (pickle_imports.hpp).
//
//   model.pkl       a pickle, or several in a row
//   old.pt          torch.save before 1.6: five pickles, then the elements of the storages
//   model.pt        an archive; each record that is a pickle, whatever its name
//   __0_0.distcp    archives in a row, one for each item
//   *.safetensors   no pickle, if the header describes the whole file
//   *.npy           no pickle, if the array has numbers
//   *.gz, *.tar     not looked into (pickle_wrapping.hpp)

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format/pickle/pickle_imports.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/item_source.hpp"

namespace reprise {

/// A name that some pickles of a file import, and where it is first.
struct ScannedName {
  std::string name;
  pickle::Standing standing = pickle::Standing::kKnown;
  std::string why;            ///< empty for a name that is known
  std::string record;         ///< name of the archive's record; empty outside archives
  std::uint64_t offset = 0;   ///< in the file
  std::uint64_t pickles = 0;  ///< number of pickles that have it
};

/// A part of a file that could not be looked at.
struct Unscanned {
  std::string why;
  std::string record;
  std::uint64_t offset = 0;
};

struct FileScan {
  /// What the file is, in words. Empty if it is of no kind that has pickles, or that is known to
  /// have none; then nothing was looked at, and nothing suspicious was found.
  std::string kind;
  std::vector<ScannedName> names;  ///< in the order of the file
  std::vector<Unscanned> unscanned;
  std::uint64_t pickles = 0;
};

/// Reads the file's pickles: of an archive each record that must be one by its name, and each other
/// record that turns out to be one. Memory holds one record at a time, of at most 2 GiB. Throws IO
/// and TORN_FILE if the file can't be read; what is damaged within, or does not fit in memory, goes
/// to FileScan::unscanned.
FileScan scan_file(ItemSource& file);

/// True if a file with this name should be a pickle or have some, such as "model.pt" or
/// ".metadata". Upper case is the same.
bool is_name_of_pickles(std::string_view name);

/// Adds to FileScan::unscanned if the file has no pickle where its name promises some.
void require_promised(std::string_view name, FileScan& scan);

}  // namespace reprise
