#pragma once
// Writes one `.distcp` file: a sequence of items, each a complete archive. The file's image is
// built batch by batch in bounded staging and written front to back by background tasks:
//
//   items   [object][object][ head | elements ......... | tail ][ head | elements | tail ]
//   batches |------- batch 0 -------|------- batch 1 -------|------- batch 2 -------|
//
// The caller's thread fills a batch (the snapshot); background tasks checksum the batches in order
// and write them in order, the checksums of a batch beside the write of the one before. The copies
// of a batch run while the caller fills the next ones. If staging holds the whole file, the tasks
// wait for the copies of each batch once they have begun, and the caller once for all. Otherwise
// the caller waits for the copies of each batch, and for the oldest batch when staging is full, and
// computes the checksums, to relieve the tasks. Batches are reused, and are so small that their
// content is still in a cache when it is written.

#include <array>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/sha256.hpp"
#include "core/format/tensor_frames.hpp"
#include "core/save/image_options.hpp"
#include "core/seams/stage_seams.hpp"
#include "reprise/device.hpp"
#include "reprise/ports.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// An item to write. A ContentSource supplies a tensor's elements; an object is passed whole.
struct ImageItem {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims extent;                ///< extent of the chunk
  Bytes content;              ///< encoded object; empty for a tensor
  FoldedExtents folded = {};  ///< see StoredTensor
};

/// Supplies the elements of tensors.
class ContentSource {
 public:
  virtual ~ContentSource() = default;
  /// Writes the row-major elements [begin, end) of item `item` to `out`, during this call or at the
  /// latest before the function returns that the next start() returns.
  virtual void fill(std::size_t item, std::int64_t begin, std::int64_t end,
                    MutableByteSpan out) = 0;
  /// Returns the CRC-32 of what the latest fill() wrote; nothing if it would have to be computed.
  virtual std::optional<std::uint32_t> filled_crc() const { return std::nullopt; }
  /// Returns a function that waits until the copies of all fill() calls since the last start() are
  /// complete. Any thread may call that function, also twice. The default waits at once.
  virtual std::function<void()> start() {
    drain();
    return [] {};
  }
  /// Returns how many of the start() calls so far have no copy that is only collected. A task
  /// should wait only for these: to wait for others would make them begin, a few at a time.
  virtual std::size_t begun() const { return std::numeric_limits<std::size_t>::max(); }
  /// Copies that were only collected begin now.
  virtual void publish() {}
  /// Waits until the outputs of all previous fill() calls are complete. After that, the source data
  /// may change.
  virtual void drain() = 0;
  /// Returns uninitialised memory of the kind that this source can fill fastest.
  virtual StagingMemory staging(std::size_t bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(bytes);
  }
};

/// A file that was written; `ranges` is in the order of the items.
struct WrittenFile {
  std::vector<ByteRange> ranges;
  std::uint64_t bytes = 0;
  std::optional<Sha256Digest> sha256;  ///< digest of the file, if requested
};

/// Returns an upper limit on the memory that a writer of these items uses at once: its batches plus
/// encoded objects.
std::uint64_t staging_bound(const std::vector<ImageItem>& items, const ImageOptions& options);

class ImageWriter {
 public:
  /// Creates the file.
  ImageWriter(Store& store, Tasks& tasks, const std::string& path, std::vector<ImageItem> items,
              ImageOptions options, const StageSeams& seams = {});
  ~ImageWriter();

  /// Fills all batches and hands them over. After that, the data that `source` reads may change,
  /// unless options.returns is kWhenQueued: then it may change after wait_for_copies(). The source
  /// must outlive the writer. Blocks while staging is full. Must not be called twice. If it throws,
  /// no copy is still running, so memory can be freed.
  void stage(ContentSource& source);
  /// Waits until `source` is no longer read. If a copy fails, finish() throws that error.
  void wait_for_copies(ContentSource& source);
  /// True once everything has been written, synced and, if requested, read back, or has failed.
  /// Does not block.
  bool done();
  /// Waits for the background tasks; rethrows their error on every call.
  WrittenFile finish();
  /// Returns the peak use of staging, in bytes.
  std::uint64_t peak_bytes() const { return peak_bytes_; }
  /// True if stage() waited for a batch to be written, because staging was full.
  bool has_waited() const { return has_waited_; }

 private:
  struct Batch;
  struct File;
  class Filler;
  struct InFlight {
    std::shared_ptr<Batch> batch;
    std::shared_ptr<Task> task;
  };

  /// A batch that no task has yet.
  struct Copying {
    std::shared_ptr<Batch> batch;
    BatchOrder order;
  };

  void fill(Filler& filler);
  void hand_on(std::size_t begun);
  void hand_on_all(ContentSource& source);
  std::shared_ptr<Batch> new_batch(ContentSource& source);
  void hand_over(const std::shared_ptr<Batch>& batch, ContentSource& source);
  void write_later(const std::shared_ptr<Batch>& batch, std::function<void()> drain,
                   const BatchOrder& order);
  std::shared_ptr<Task> start(std::array<std::shared_ptr<Task>, 2> after,
                              std::function<void()> drain, std::function<void()> work);
  std::function<void()> read_back();
  void take_back_oldest();

  Store& store_;
  Tasks& tasks_;
  std::string path_;
  std::vector<ImageItem> items_;
  ImageOptions options_;
  StageSeams seams_;
  std::shared_ptr<File> file_;
  bool early_ = false;           ///< true if staging holds the whole file
  std::deque<Copying> copying_;  ///< oldest first; one at most, unless staging holds the whole file
  std::size_t handed_on_ = 0;    ///< batches that tasks have
  std::exception_ptr copy_failure_;  ///< first error of wait_for_copies()
  std::deque<InFlight> in_flight_;   ///< batches, oldest first
  std::shared_ptr<Task> summed_;     ///< computes the checksums of the latest batch
  std::shared_ptr<Task> last_;       ///< last task that writes; each waits for the previous one
  bool staged_ = false;
  bool has_waited_ = false;
  std::uint64_t batch_bytes_ = 0;              ///< size of each batch
  std::vector<std::shared_ptr<Batch>> spare_;  ///< written batches for reuse, most recent first
  /// Total size of all batches. They are freed only with the writer, so this is also the peak.
  std::uint64_t peak_bytes_ = 0;
  WrittenFile written_;
};

}  // namespace reprise
