#pragma once
// Reads a file of torch.save, such as model.pt: an archive of one pickle and a record for each
// storage.
//
//   data.pkl   nested dicts and lists of values; a tensor is a view of a storage
//   data/<n>   the elements of a storage, uncompressed, little-endian or as `byteorder` says
//
// Tensors that share memory are views of one storage. Elements are not read.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/format/pickle/pickle_state.hpp"
#include "core/format/zip/item_source.hpp"
#include "core/state/catalog.hpp"
#include "reprise/inspect.hpp"
#include "reprise/state.hpp"

namespace reprise {

struct TorchSaveFile {
  struct Tensor {
    std::string key;
    KeyPath path;
    DType dtype = DType::kFloat32;
    Dims shape;
    FoldedExtents folded = {};
    bool requires_grad = false;
    ByteRange range;  ///< from its first element to its last, in the file
    std::shared_ptr<const StoredView> view;
    std::optional<ShardPlace> shard = {};       ///< if it is one rank's part of a DTensor
    std::optional<std::int64_t> saved_by = {};  ///< the rank, if the DTensor says it
  };
  std::vector<Tensor> tensors;  ///< in the order of the pickle; keys are unique
  std::vector<PickledState::Object> objects;
  /// What can't be read, with its key, and notes on tensors that share memory.
  Findings findings;
  std::uint64_t hash = 0;  ///< of the pickle and of where the records lie
};

/// Reads everything but the elements. Throws the same errors as Archive, check_torch_records and
/// decode_state. What is wrong with one tensor goes to `findings`: a record that is missing
/// (COVERAGE_GAP), or shorter than the pickle says (TORN_FILE). So does a pickle that does not have
/// its checksum, unless that is 0. If `item` is given, all names begin
/// with it.
TorchSaveFile read_torch_save(ItemSource& source, const std::string& item = "");

}  // namespace reprise
