#pragma once
// Writes one `.distcp` file: items one after another, each a complete archive. The file's image is
// built batch by batch in bounded staging and written front to back by background tasks:
//
//   items   [object][object][ head | elements ......... | tail ][ head | elements | tail ]
//   batches |------- batch 0 -------|------- batch 1 -------|------- batch 2 -------|
//
// A batch is filled on the caller's thread (the snapshot) and checksummed and written in the
// background, in order. When staging is full the caller waits for the oldest batch; it does the
// checksums itself where it is known beforehand that it will have to. Batches are
// small enough that what was put into one is still in a cache when it is written, and come back for
// use again.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/image_options.hpp"
#include "core/format/sha256.hpp"
#include "core/format/tensor_item.hpp"
#include "core/seams/stage_seams.hpp"
#include "reprise/device.hpp"
#include "reprise/ports.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// An item to write. A tensor's elements come from a ContentSource; an object is given whole.
struct ImageItem {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims extent;    ///< of the chunk
  Bytes content;  ///< encoded object; empty for a tensor
};

/// Where tensors' elements come from.
class ContentSource {
 public:
  virtual ~ContentSource() = default;
  /// Puts the row-major elements [begin, end) of item `item` into `out`, now or by the next
  /// settle().
  virtual void fill(std::size_t item, std::int64_t begin, std::int64_t end,
                    MutableByteSpan out) = 0;
  /// All that was filled is there; the source may change.
  virtual void settle() = 0;
  /// Memory that it fills best, not initialised.
  virtual StagingMemory staging(std::size_t bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(bytes);
  }
};

/// What was written; ranges in the order of the items.
struct WrittenFile {
  std::vector<ByteRange> ranges;
  std::uint64_t bytes = 0;
  std::optional<Sha256Digest> sha256;  ///< of the file, if asked for
};

/// The most that a writer of these items holds at once: its batches and the encoded objects.
std::uint64_t staging_bound(const std::vector<ImageItem>& items, const ImageOptions& options);

class ImageWriter {
 public:
  /// Creates the file.
  ImageWriter(Store& store, Tasks& tasks, const std::string& path, std::vector<ImageItem> items,
              ImageOptions options, const StageSeams& seams = {});
  ~ImageWriter();

  /// Fills and hands over all batches; when it returns, what `source` reads may change. The source
  /// itself outlives the writer. Blocks where staging is full. Once. If it fails, what was filled
  /// has been settled: no copy is under way into memory that goes.
  void stage(ContentSource& source);
  /// True once everything is written and synced, or failed. Does not block.
  bool done();
  /// Waits; throws what went wrong, each time.
  WrittenFile finish();
  /// Most bytes of staging that were in use at once.
  std::uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  struct Batch;
  struct File;
  class Filler;
  struct InFlight {
    std::shared_ptr<Batch> batch;
    std::shared_ptr<Task> task;
  };

  void fill(Filler& filler);
  std::shared_ptr<Batch> new_batch(ContentSource& source);
  void hand_over(const std::shared_ptr<Batch>& batch, ContentSource& source);
  void start(std::function<void()> work);
  void take_back_oldest();

  Tasks& tasks_;
  std::vector<ImageItem> items_;
  ImageOptions options_;
  StageSeams seams_;
  std::shared_ptr<File> file_;
  std::deque<InFlight> in_flight_;  ///< batches, oldest first
  std::shared_ptr<Task> last_;      ///< that was started; each waits for the one before
  bool staged_ = false;
  std::uint64_t batch_bytes_ = 0;              ///< of each batch
  std::vector<std::shared_ptr<Batch>> spare_;  ///< written; used again, the last one first
  std::uint64_t peak_bytes_ = 0;               ///< of all batches: none goes before the writer
  WrittenFile written_;
};

}  // namespace reprise
