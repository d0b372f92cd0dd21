#pragma once
// Decides which items of a checkpoint are read, in which order, and in which runs threads share
// them. Reads nothing.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/state/catalog.hpp"
#include "core/verify/verify_catalog.hpp"

namespace reprise {

/// One item that is read.
struct Visit {
  FileIndex file = kNoFile;
  ByteRange range;
  const StoredTensor* tensor = nullptr;  ///< null for an object; otherwise `chunk` is set too
  const StoredChunk* chunk = nullptr;
  const StoredObject* object = nullptr;
};

struct PayloadVisits {
  std::vector<Visit> visits;  ///< in the order of files and offsets
  /// Runs of visits of one file that a thread reads at a time. They depend on nothing but the
  /// catalog, so that what is found run by run does not depend on the number of threads.
  std::vector<std::span<const Visit>> runs;
  std::uint64_t left_out = 0;  ///< items that overlap others and are not read
  std::uint64_t bytes = 0;     ///< of all visits
};

/// Leaves out items that lie outside their files. The catalog must outlive the result. Pure.
PayloadVisits payload_visits(const Catalog& catalog, std::span<const StoredFile> files);

}  // namespace reprise
