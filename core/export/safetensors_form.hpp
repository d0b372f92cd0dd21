#pragma once
// Tensors as safetensors files: model.safetensors, or model-00001-of-0000n.safetensors and so on
// with an index.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/export/export_form.hpp"

namespace reprise {

class SafetensorsForm final : public ExportForm {
 public:
  /// A file gets further tensors until it would have more bytes of elements than this. A larger
  /// tensor has a file of its own. `texts` are what each file says of itself.
  explicit SafetensorsForm(std::uint64_t shard_bytes_max,
                           std::map<std::string, std::string> texts = {{"format", "pt"}})
      : shard_bytes_max_(shard_bytes_max), texts_(std::move(texts)) {}

  void require_holds(const MappedTensor& tensor) const override;
  std::vector<OutputFile> lay_out(const std::vector<MappedTensor>& tensors) override;
  std::vector<std::string> small_files() const override;
  void complete(Store& store, const CommitTarget& target) override;
  Checkpoint opened(Store& store, const CommitTarget& target) override;
  void commit(Store& store, CommitTarget& target) override;

 private:
  std::uint64_t shard_bytes_max_;
  std::map<std::string, std::string> texts_;
  bool has_index_ = false;
  std::map<std::string, std::string> shard_of_;  ///< by key
  std::uint64_t bytes_ = 0;                      ///< of all elements
};

}  // namespace reprise
