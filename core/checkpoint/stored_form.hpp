#pragma once
// Recognizes the form of the checkpoint that a directory itself holds, whatever a tracker in it
// names.

#include <optional>
#include <string>

#include "core/format/metadata.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// True if the directory, which must exist, has payload files of torch_dist.
bool has_payload(Store& store, const std::string& directory);

/// Returns the form of a checkpoint without metadata and payload of torch_dist; nothing if there is
/// none.
std::optional<StoredForm> other_form_in(Store& store, const std::string& directory);

/// The same, and kTorchDist for metadata, and for payload without metadata, which was never
/// committed.
std::optional<StoredForm> form_in(Store& store, const std::string& directory);

}  // namespace reprise
