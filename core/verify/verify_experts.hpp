#pragma once
// Finds experts that were stored with the bits of other experts. Each file is intact then, and so
// is each tensor: only their comparison shows it.
//
//   ...experts.local_experts.2.linear_fc1.weight       the bits of expert 0: no training does that
//   ...experts.experts.linear_fc1.weight [2:4, :, :]   stacked experts: those of [0:2, :, :]

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/format/tensor_item.hpp"

namespace reprise {

/// Collects the chunks of experts while the payload is read, and compares those whose checksums and
/// sizes are equal. Reads no more than the beginnings of those, and the whole of those that begin
/// alike. The catalog must outlive this object.
class ExpertContents {
 public:
  /// Takes a chunk whose item has been read. Passes over what is no expert's, no float, or small.
  void add(const StoredTensor& tensor, const StoredChunk& chunk, const TensorItem& item);

  /// Adds what another one took.
  void add(const ExpertContents& more);

  /// Reports experts that hold the same bits, unless these are of one value throughout, as biases
  /// and moments are at first. Experts may begin as copies of a dense layer (upcycling), so this is
  /// a warning only if they were trained: their moments are stored and not constant, or no moments
  /// are stored at all and the checkpoint is past its first step. Otherwise it is a note.
  Findings findings(Checkpoint& checkpoint) const;

 private:
  struct Part {
    const StoredTensor* tensor = nullptr;
    const StoredChunk* chunk = nullptr;
    ByteRange elements;  ///< within the item
  };
  /// Parts may hold the same bits only if these agree: the key without the number of the expert,
  /// the shape, and the checksum.
  using Alike = std::tuple<std::string, Dims, std::uint32_t>;

  static Bytes head_of(Checkpoint& checkpoint, const Part& part);
  static std::uint64_t hash_of_all(Checkpoint& checkpoint, const Part& part);
  bool trained(Checkpoint& checkpoint, const Part& part) const;

  std::map<Alike, std::vector<Part>> parts_;
  std::map<std::string, std::vector<Part>> moments_;  ///< by the key of the weights
  bool has_moments_ = false;                          ///< of any tensor
};

}  // namespace reprise
