#pragma once
// Reads tensors on all threads, for digests and counts.

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "reprise/device.hpp"
#include "reprise/inspect.hpp"
#include "reprise/ports.hpp"

namespace reprise {

struct SurveyPorts {
  Device& device;  ///< of the host
  Tasks& tasks;    ///< each thread needs about 0.5 MiB
  Progress& progress;
};

/// Boxes of a tensor that one thread reads.
struct SurveyItem {
  const StoredTensor* tensor = nullptr;
  std::vector<Box> boxes;
};
/// Appends an item for each chunk of the tensor.
void add_chunks(const StoredTensor& tensor, std::vector<SurveyItem>& items);

/// Reads the items, and hands their elements in blocks to what `taker(i)` returns, on any thread;
/// the blocks of an item come in order. Compares each record that was read as a whole with its
/// checksum, and returns what was found, which does not depend on the number of threads. Throws the
/// errors of TensorReader and of require_apart, and STALE_METADATA if the checkpoint was replaced
/// meanwhile.
Findings survey(Checkpoint& checkpoint, std::span<const SurveyItem> items, const SurveyPorts& ports,
                const std::function<TakeElements(std::size_t)>& taker);

}  // namespace reprise
