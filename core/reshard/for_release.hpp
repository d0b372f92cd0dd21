#pragma once
// Decides what `reshard` writes differently so that certain releases of torch and Megatron-Core
// read it, and refuses what these can't read in any form.

#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/format/releases.hpp"
#include "core/reshard/reshard.hpp"

namespace reprise {

/// What is written in place of files and objects of the source.
struct OtherForms {
  std::vector<WrittenInstead> files;
  std::vector<std::string> left_objects;  ///< keys of objects that `files` replace
  bool one_metadata = false;              ///< see RankChoice
  std::vector<std::string> changes;       ///< what changes, as sentences without a full stop
};

/// Returns the forms that all of these releases read. Throws UNSUPPORTED with the release, the
/// reason and the key if there are none, and USAGE if a release of Megatron-Core is asked for and
/// the checkpoint is not Megatron-Core's. `common` is the common state that will be written in the
/// place of the source's, if not null. `strides` says if strides are to be written.
OtherForms forms_for(Checkpoint& source, const Value* common, std::span<const Release> releases,
                     bool strides);

/// Throws UNSUPPORTED if the checkpoint, which was just written, is not read by all releases.
void require_readers(Checkpoint& written, std::span<const Release> releases);

}  // namespace reprise
