#pragma once
// What the ranks of a layout hold and read if they load a checkpoint in the way of torch, which
// reads each chunk that a wanted box meets as a whole, once for each box, and then takes the box's
// part of it. Pure.
//
//   stored chunks of 4 rows    0123 4567       wanted: rows 2:6, one box
//   holds 4 rows, reads 8: both chunks         read amplification 2

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/plan/layout_boxes.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// What the ranks at one place hold and read. Objects, such as random states, are not counted.
struct PlaceReads {
  std::uint64_t held = 0;     ///< bytes of the elements that a rank asks for
  std::uint64_t read = 0;     ///< bytes of the elements of all chunks that it reads
  std::uint64_t largest = 0;  ///< the largest of these chunks
  std::uint64_t second = 0;   ///< the next largest read, perhaps of the same chunk
  std::uint64_t chunks = 0;   ///< number of reads
  std::map<FileIndex, std::uint64_t> of_file;  ///< bytes that it reads of each file; whole items

  /// Most memory for tensors at one time: what it asks for, and two chunks, as torch keeps the one
  /// that it copied from until it has read the next.
  std::uint64_t peak() const { return held + largest + second; }
};

/// Returns the reads of each place. Throws COVERAGE_GAP or CHUNK_OVERLAP with the key if the chunks
/// do not have each element of a wanted box once.
std::vector<PlaceReads> layout_reads(const Catalog& catalog, const LayoutBoxes& boxes,
                                     std::span<const LayoutPlace> places);

/// Returns `read` of all places by `held` of all places: 1 if nothing is read that is not wanted, 0
/// if nothing is read. `ranks` has the number of ranks at each place.
double read_amplification(std::span<const PlaceReads> reads, std::span<const std::uint64_t> ranks);

}  // namespace reprise
