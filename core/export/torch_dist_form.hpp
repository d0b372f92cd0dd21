#pragma once
// Tensors as a checkpoint of torch's distributed checkpoint (DCP): `.metadata` and a payload file
// for each writer. With a common state it is one that Megatron-Core reads.

#include <cstdint>
#include <utility>
#include <vector>

#include "core/export/export_form.hpp"
#include "core/format/metadata.hpp"
#include "core/reshard/reshard.hpp"
#include "reprise/value.hpp"

namespace reprise {

class TorchDistForm final : public ExportForm {
 public:
  struct Options {
    CutRule rule = {};         ///< tensors that it does not cut have one chunk
    std::int32_t writers = 1;  ///< number of payload files
    bool manifest = false;     ///< true to write integrity.json
    /// Common state, a dict; if it is None, there is neither common.pt nor metadata.json.
    Value common = {};
  };

  explicit TorchDistForm(Options options) : options_(std::move(options)) {}

  void require_holds(const MappedTensor& tensor) const override;
  std::vector<OutputFile> lay_out(const std::vector<MappedTensor>& tensors) override;
  void complete(Store& store, const CommitTarget& target) override;
  Checkpoint opened(Store& store, const CommitTarget& target) override;
  void commit(Store& store, CommitTarget& target) override;

 private:
  OutputFile file_of(const WriterShare& share, FileIndex file);

  Options options_;
  CommitContent content_ = {};
  Metadata metadata_;                     ///< what is written, as it is read back
  std::vector<std::uint32_t> tensor_of_;  ///< index of the mapped tensor, by that of the catalog
};

}  // namespace reprise
