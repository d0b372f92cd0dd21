#pragma once
// Keeps the books of a device's batches of copies: what is collected, queued, given up, or refused
// because of a capture. Queues nothing itself.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/adapters/cuda/copy_batch.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"

namespace reprise {

/// Events are numbered. Each of them is the end of a batch:
///
///   batches  1, 2: queued | 3: open, filled by one call after the other, not queued yet
///
/// Not for several threads at a time.
class CopyBatches {
 public:
  /// A batch has copies of one kind, because its copies run in any order.
  enum class Kind : std::uint8_t { kGathers, kScatters };

  /// A wait asks for these ends. That needs no lock, so gather() does not wait for it. Only the
  /// last copies of each way are asked for, because those before them have ended.
  struct Ends {
    std::shared_ptr<CopyBatch> kernels;  ///< null if nothing is to be asked for
    std::shared_ptr<CopyBatch> engine;   ///< the same
    const CudaEvent* dropped = nullptr;  ///< the end of copies that could not be queued whole

    bool reached() const {
      return (!kernels || kernels->kernels_done()) && (!engine || engine->engine_done()) &&
             (dropped == nullptr || dropped->done());
    }
  };

  explicit CopyBatches(int device) : device_(device) {}

  /// Returns the open batch; opens one of this kind if there is none.
  CopyBatch& open(Kind kind);
  /// Returns the open batch, which is not empty; null if nothing is collected.
  CopyBatch* collected() const { return open_.copies.get(); }
  /// True if something is collected whose event is `event` or an earlier one.
  bool collected_by(std::uint64_t event) const { return open_.copies && open_.event <= event; }
  /// Returns the kind of the open batch.
  Kind kind() const { return open_.kind; }
  /// Returns the event of the batch that was opened last.
  std::uint64_t last_event() const { return last_event_; }

  /// Takes note that the open batch was queued.
  void enqueue();
  bool any_queued() const { return !queued_.empty(); }
  /// True if a batch is queued whose event is `event` or an earlier one.
  bool queued_by(std::uint64_t event) const {
    return any_queued() && queued_.front().event <= event;
  }
  /// Returns the ends of all copies up to `event` that are queued.
  Ends ends_of(std::uint64_t event) const;
  /// Finishes the batches up to `event`, which have ended.
  void finish(std::uint64_t event);

  /// Takes note whether what is collected, if anything, was refused because of a capture.
  void set_refused(bool refused) { refused_ = refused && collected() != nullptr; }
  /// Gives up what was collected and then refused: the caller was told, so the memory may have
  /// other uses by now.
  void give_up_refused();
  /// True if the batch with this event was given up.
  bool gave_up(std::uint64_t event) const;

 private:
  struct Batch {
    std::uint64_t event = 0;
    std::shared_ptr<CopyBatch> copies;
    Kind kind = Kind::kGathers;
  };

  int device_;
  CopyTables tables_ = {};
  std::uint64_t last_event_ = 0;
  Batch open_;                            ///< no batch (null) or one that is not empty
  std::deque<Batch> queued_;              ///< oldest batch first
  bool refused_ = false;                  ///< true if the open batch met a capture
  std::vector<std::uint64_t> forgotten_;  ///< events of the batches that were given up
  std::vector<std::shared_ptr<CopyBatch>> spare_;
};

}  // namespace reprise
