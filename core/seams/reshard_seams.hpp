#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/geometry/box.hpp"
#include "core/geometry/piece.hpp"

namespace reprise {

struct Cut;
struct Metadata;
struct RankChoice;
struct ReshardOptions;
enum class PerRank : std::uint8_t;

/// Returns the boxes of the parts by the ceil-chunk rule, in order. None of them is empty, so there
/// may be fewer than requested.
std::vector<Box> ceil_parts(const Dims& shape, const Cut& cut);
/// Returns kKeep if the number of ranks stays the same and nothing else is requested; otherwise
/// what is requested. Throws USAGE if ranks are to keep their values and their number changes.
std::optional<PerRank> as_requested(const RankChoice& choice, std::int64_t ranks_before);
/// Returns the metadata unchanged.
Metadata take_all(Metadata source);
/// True if the options request it.
bool checksums_requested(const ReshardOptions& options);

struct ReshardSeams {
  /// Returns the boxes into which a tensor of this shape is divided.
  std::vector<Box> (*divide)(const Dims& shape, const Cut& cut) = ceil_parts;
  /// Returns the boxes of the source from which the elements [begin, end) of the box `part` are
  /// read, with their places in the buffer.
  std::vector<Piece> (*read_from)(const Box& part, std::int64_t begin,
                                  std::int64_t end) = pieces_of_range;
  /// Returns what becomes of values that each of `ranks_before` ranks saved for itself. If it
  /// returns nothing, values that differ are refused.
  std::optional<PerRank> (*per_rank)(const RankChoice& choice,
                                     std::int64_t ranks_before) = as_requested;
  /// Returns what the new checkpoint takes over from the source.
  Metadata (*carried)(Metadata source) = take_all;
  /// True if what is read is compared with its checksums.
  bool (*compares_checksums)(const ReshardOptions& options) = checksums_requested;
};

}  // namespace reprise
