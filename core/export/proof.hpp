#pragma once
// Shows that what was written is what the checkpoint has: reads it back through the inverse of the
// mapping, and compares it with the checkpoint, element by element.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/piece_reader.hpp"
#include "core/export/mapped_tensor.hpp"
#include "reprise/device.hpp"
#include "reprise/ports.hpp"

namespace reprise {

struct ProofPorts {
  Device& device;
  Tasks& tasks;
  ByteProgress& progress;
};

/// Compares `written` with `source`, and returns the number of elements that were found to be the
/// same. `readers` has a reader of the source for each thread; they read each element of a tensor
/// that was mapped once, and hand over. Elements that are padding must be zero. Throws CHECKSUM
/// with the key if anything differs, or if a record of `written` does not have its checksum.
std::uint64_t prove(const Checkpoint& source, const std::vector<MappedTensor>& tensors,
                    const Checkpoint& written, std::vector<std::unique_ptr<PieceReader>>& readers,
                    const ProofPorts& ports);

/// Returns the parts of a tensor of this shape that no box covers; boxes may overlap.
std::vector<Box> gaps(const Dims& shape, std::vector<Box> boxes);
/// Returns what the parts of the mapped tensor cover.
std::vector<Box> targets(const MappedTensor& tensor);

}  // namespace reprise
