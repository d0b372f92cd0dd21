#pragma once
// Tensors as one file of torch.save: a dict from names to tensors, which torch.load reads with
// weights_only. The target is the file; it is written beside under a name of its own.

#include <string>
#include <utility>
#include <vector>

#include "core/export/export_form.hpp"

namespace reprise {

class TorchSaveForm final : public ExportForm {
 public:
  /// `name` is that of the file, for the report.
  explicit TorchSaveForm(std::string name) : name_(std::move(name)) {}

  void require_holds(const MappedTensor& tensor) const override;
  std::vector<OutputFile> lay_out(const std::vector<MappedTensor>& tensors) override;
  void prepare(Store& store, CommitTarget& target, const std::vector<std::string>& names) override;
  std::string path_of(const CommitTarget& target, const std::string& name) const override;
  void complete(Store& store, const CommitTarget& target) override;
  Checkpoint opened(Store& store, const CommitTarget& target) override;
  void commit(Store& store, CommitTarget& target) override;
  void abandon(Store& store, CommitTarget& target) override;

 private:
  std::string name_;
};

}  // namespace reprise
