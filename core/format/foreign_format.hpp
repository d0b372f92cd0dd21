#pragma once
// Recognizes what other programs save instead of a torch_dist checkpoint, from the names in a
// directory or the first bytes of a file. A message can then name it and say what to do.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reprise/types.hpp"

namespace reprise {

/// The format that was recognized.
struct ForeignFormat {
  std::string_view name;    ///< "a DeepSpeed checkpoint", "files of torch.save", ...
  std::string_view advice;  ///< how to make a torch_dist checkpoint of it
  std::string sign;         ///< the path, of those given, that gave it away; empty for a file
  /// True if only a checkpoint has such names. False for names that other files have, too, such as
  /// "vocabulary.pt".
  bool certain = true;
  bool readable = false;  ///< true if it is a file of torch.save that may be whole

  /// Returns the text of an error.
  std::string message() const;
};

/// Recognizes a format by the paths of the files below a directory. They are relative to the
/// directory; those with fewest '/' decide, and names that prove little count only beside none that
/// are certain. Returns nothing if no path belongs to a known format.
std::optional<ForeignFormat> foreign_format_of(std::span<const std::string> paths);

/// Number of bytes at the start of a file that foreign_file_of() reads.
inline constexpr std::size_t kForeignFileBytes = 512;
/// Recognizes the format of a single file by its name and first bytes, and by the names of the
/// files `beside` it. Returns nothing if the file has no known format.
std::optional<ForeignFormat> foreign_file_of(std::string_view name, ByteSpan first,
                                             std::span<const std::string> beside = {});

/// True if the first bytes are those of a safetensors file.
bool is_safetensors_file(ByteSpan first);

/// True if a file with this name is usually part of a torch_dist checkpoint: the checkpoint is then
/// the directory around it.
bool is_part_of_checkpoint(std::string_view name);

}  // namespace reprise
