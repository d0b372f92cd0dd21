#include "core/checkpoint/stored_form.hpp"

#include <algorithm>

#include "core/checkpoint/locate_checkpoint.hpp"
#include "core/checkpoint/rank_files.hpp"
#include "core/checkpoint/safetensors_files.hpp"

namespace reprise {

bool has_payload(Store& store, const std::string& directory) {
  const auto entries = store.list(directory);
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return entry.name.ends_with(".distcp"); });
}

std::optional<StoredForm> other_form_in(Store& store, const std::string& directory) {
  if (holds_universal(store, directory)) return StoredForm::kRankFiles;
  if (holds_torch_checkpointing(store, directory)) return StoredForm::kTorchCheckpointing;
  if (holds_files_of_ranks(store, directory)) return StoredForm::kRankFiles;
  if (holds_safetensors(store, directory)) return StoredForm::kSafetensors;
  if (holds_torch_save(store, directory)) return StoredForm::kTorchSave;
  return std::nullopt;
}

std::optional<StoredForm> form_in(Store& store, const std::string& directory) {
  if (holds_metadata(store, directory) || has_payload(store, directory)) {
    return StoredForm::kTorchDist;
  }
  return other_form_in(store, directory);
}

}  // namespace reprise
