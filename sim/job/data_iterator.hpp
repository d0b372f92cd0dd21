#pragma once
// The batches of training, in order, and again where an iteration is run again. What was read since
// the iteration began is kept; after a rewind it is read from there and the source stands still.
//
//   source   0 .. 7 | 8 .. 15 | 16 ..          cursor: the next sample that the source gives
//                     kept: [8, 16)            rewind: 8 .. 15 once more; advance: dropped

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

/// Where an iterator stands.
struct DataPosition {
  std::int64_t cursor = 0;
  std::vector<SampleRange> kept;  ///< of the present iteration
  bool replaying = false;

  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

/// Whether batches are kept, so that an iteration can be run again. Where none has to be, the
/// source alone does.
enum class Wrapping : std::uint8_t { kWrapped, kPlain };

class DataIterator {
 public:
  DataIterator() = default;
  explicit DataIterator(DataPosition position, Wrapping wrapping = Wrapping::kWrapped)
      : position_(std::move(position)), wrapping_(wrapping) {}

  /// USAGE after more reads than before the rewind: an iteration reads alike in every run.
  SampleRange next(std::int64_t count);
  /// To the first batch of the iteration. UNSUPPORTED if it is plain.
  void rewind();
  /// UNSUPPORTED, saying what for and what to do, if it is plain.
  void require_wrapped(std::string_view what_for) const;
  /// The iteration is over.
  void advance();

  const DataPosition& position() const { return position_; }

 private:
  DataPosition position_;
  Wrapping wrapping_ = Wrapping::kWrapped;
  std::size_t at_ = 0;  ///< in `kept` while replaying
};

/// As Megatron keeps an iterator: {saved_microbatches: [{first, count}], replaying, replay_pos}.
Value encode(const DataPosition& position);
/// The kept batches. LOAD_REJECTED if it is not of that form.
std::vector<SampleRange> decode_batches(const Value& value);

}  // namespace reprise::sim
