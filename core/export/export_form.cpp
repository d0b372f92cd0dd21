#include "core/export/export_form.hpp"

#include "core/checkpoint/set_aside.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

/// Removes the directories of exports that were killed before they wrote anything.
void remove_empty_asides(Store& store, const CommitTarget& target) {
  if (!target.claim.keeps_others_out()) return;
  for (const Aside& aside : asides_of(store, target.directory)) {
    if (aside.suffix == kSavingSuffix && aside.token != target.claim.token) {
      store.remove_empty(aside.path);
    }
  }
}

}  // namespace

void ExportForm::prepare(Store& store, CommitTarget& target,
                         const std::vector<std::string>& names) {
  reprise::prepare(store, target);
  remove_empty_asides(store, target);
  note_beside(store, target.saving(), target.claim.token, names);
}

std::string ExportForm::path_of(const CommitTarget& target, const std::string& name) const {
  return join_path(target.saving(), name);
}

void ExportForm::complete(Store& store, const CommitTarget& target) {
  store.sync_directory(target.saving());
}

void ExportForm::abandon(Store& store, CommitTarget& target) { reprise::abandon(store, target); }

std::uint64_t bytes_of(const MappedTensor& tensor) {
  return static_cast<std::uint64_t>(volume(tensor.shape)) * size_of(tensor.dtype);
}

void publish_directory(Store& store, CommitTarget& target) {
  store.publish({target.saving(), target.directory, target.claim.directory.get()});
  store.remove(join_path(target.directory, mark_of(target.claim.token)));
  store.sync_directory(target.directory);
  store.sync_directory(parent_path(target.directory));
  target.claim = {};
}

}  // namespace reprise
