#pragma once
// Returns the batches of training in order, and repeats them if an iteration is run again. Keeps
// the batches read since the start of the iteration. After a rewind, returns the kept batches
// without reading the source.
//
//   source   0 .. 7 | 8 .. 15 | 16 ..          cursor: the next sample that the source gives
//                     kept: [8, 16)            rewind() returns 8 .. 15 again; advance() drops them

#include <cstdint>
#include <string_view>
#include <vector>

#include "reprise/value.hpp"

namespace reprise::sim {

struct SampleRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

/// Position of an iterator.
struct DataPosition {
  std::int64_t cursor = 0;
  std::vector<SampleRange> kept;  ///< batches of the current iteration
  bool replaying = false;

  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

/// Says whether an iterator can repeat batches. kWrapped keeps the batches of an iteration for this
/// purpose; kPlain keeps none and only reads the source.
enum class Wrapping : std::uint8_t { kWrapped, kPlain };

class DataIterator {
 public:
  DataIterator() = default;
  explicit DataIterator(DataPosition position, Wrapping wrapping = Wrapping::kWrapped)
      : position_(std::move(position)), wrapping_(wrapping) {}

  /// Returns the next batch. All runs of an iteration must read the same batches: throws USAGE if a
  /// run after a rewind reads more batches than the run before.
  SampleRange next(std::int64_t count);
  /// Goes back to the first batch of the iteration. Throws UNSUPPORTED if the iterator is plain.
  void rewind();
  /// Throws UNSUPPORTED if the iterator is plain. The message says what a wrapped iterator was
  /// needed for, and how to get one.
  void require_wrapped(std::string_view what_for) const;
  /// Ends the iteration and drops its batches.
  void advance();

  const DataPosition& position() const { return position_; }

 private:
  DataPosition position_;
  Wrapping wrapping_ = Wrapping::kWrapped;
  std::size_t at_ = 0;  ///< index in `kept` while replaying
};

/// Encodes the position in Megatron's form: {saved_microbatches: [{first, count}], replaying,
/// replay_pos}.
Value encode(const DataPosition& position);
/// Returns the kept batches. Throws LOAD_REJECTED if the value does not have the right form.
std::vector<SampleRange> decode_batches(const Value& value);

}  // namespace reprise::sim
