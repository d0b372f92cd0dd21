#pragma once
// Writes one `.distcp` file: items one after another, each a complete archive. The file's image is built
// batch by batch in bounded staging and written front to back by background tasks:
//
//   items   [object][object][ head | elements ......... | tail ][ head | elements | tail ]
//   batches |------- batch 0 -------|------- batch 1 -------|------- batch 2 -------|
//
// A batch is filled on the caller's thread (the snapshot) and checksummed and written in the
// background, in order. When staging is full the caller waits for the oldest batch.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/format/tensor_item.hpp"
#include "core/ports/store.hpp"
#include "core/ports/tasks.hpp"

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
  /// Puts the row-major elements [begin, end) of item `item` into `out`, now or by the next settle().
  virtual void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) = 0;
  /// All that was filled is there; the source may change.
  virtual void settle() = 0;
};

enum class Checksums : std::uint8_t { kNone, kCrc32, kCrc32AndSha256 };

struct ImageOptions {
  std::uint64_t staging_bytes_max = std::uint64_t{256} << 20U;
  std::uint64_t batch_bytes = std::uint64_t{16} << 20U;
  Checksums checksums = Checksums::kCrc32;
};

/// What was written; ranges in the order of the items.
struct WrittenFile {
  std::vector<ByteRange> ranges;
  std::uint64_t bytes = 0;
  std::string sha256;  ///< of the file, lower-case hex; empty unless asked for
};

class ImageWriter {
 public:
  /// Creates the file. `source` is used by stage() alone.
  ImageWriter(Store& store, Tasks& tasks, std::string path, std::vector<ImageItem> items,
              ImageOptions options);
  ~ImageWriter();

  /// Fills and hands over all batches; when it returns, `source` may change. Blocks where staging is full.
  void stage(ContentSource& source);
  /// True once everything is written and synced, or failed. Does not block.
  bool done();
  /// Waits; throws what went wrong.
  WrittenFile finish();
  /// Most bytes of staging that were in use at once.
  std::uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  struct Batch;
  struct File;
  class Filler;

  void hand_over(std::unique_ptr<Batch> batch);
  void wait_oldest();

  Store& store_;
  Tasks& tasks_;
  std::vector<ImageItem> items_;
  ImageOptions options_;
  std::shared_ptr<File> file_;
  std::deque<std::pair<std::uint64_t, std::shared_ptr<Task>>> in_flight_;
  std::uint64_t staged_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::vector<ByteRange> ranges_;
};

}  // namespace reprise
