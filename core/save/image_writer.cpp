#include "core/save/image_writer.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>
#include <variant>

#include "core/base/check.hpp"
#include "core/base/print.hpp"
#include "core/format/zip/crc32.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// A contiguous part of the file's content. A background task computes the checksums of the
/// elements in it, stores these checksums in the tails of the items, and writes the part to the
/// file.
struct ImageWriter::Batch {
  struct Elements {  ///< a run of elements within the batch's image
    std::size_t begin;
    std::size_t size;
    std::optional<std::uint32_t> crc;  ///< of these elements, if it is known
  };
  struct Tail {  ///< position of an item's tail, which follows the item's elements
    std::size_t begin;
    std::shared_ptr<const TensorFrame> frame;
  };
  using Mark = std::variant<Elements, Tail>;

  Batch(StagingMemory room, std::size_t bytes) : memory(std::move(room)), capacity(bytes) {}

  std::size_t room() const { return capacity - size; }
  /// Appends `bytes` bytes to the image and returns them for the caller to fill. The memory never
  /// moves.
  MutableByteSpan extend(std::size_t bytes) {
    CHECK(bytes <= room(), bytes, room());
    size += bytes;
    return {memory.get() + size - bytes, bytes};
  }
  MutableByteSpan part(std::size_t begin, std::size_t bytes) {
    return image().subspan(begin, bytes);
  }
  MutableByteSpan image() { return {memory.get(), size}; }
  void clear() {
    size = 0;
    marks.clear();
    crc.reset();
  }

  StagingMemory memory;
  std::size_t capacity;
  std::size_t size = 0;
  std::uint64_t offset = 0;  ///< file offset of the image's first byte
  std::vector<Mark> marks;   ///< elements and tails in the order of the image
  /// CRC-32 of the image, if it is read back and its elements have checksums.
  std::optional<std::uint32_t> crc;
};

/// State of checksumming and writing one file. Background tasks do this work, but the caller may
/// compute the checksums of items. Batches are summed in order and written in order, each task
/// after the one before of its kind, so no two threads use the same members at once.
struct ImageWriter::File {
  enum class SealedBy : std::uint8_t { kCaller, kTask };

  /// First error; later batches are not written.
  std::exception_ptr failure;
  std::atomic<bool> failed = false;  ///< set once `failure` has its final value
  std::mutex failing;

  /// Remembers the current exception, unless there is an earlier one.
  void fail() {
    const std::scoped_lock lock(failing);
    if (failed) return;
    failure = std::current_exception();
    failed = true;
  }

  std::unique_ptr<WriteFile> out;
  Checksums checksums = Checksums::kNone;
  SealedBy sealed_by = SealedBy::kTask;
  bool reads_back = false;
  std::uint32_t crc = 0;  ///< running checksum of the current item's elements
  Sha256 sha256;
  std::vector<WrittenPart> parts;  ///< what was written; only if it is read back

  /// Puts checksums into the batch's tails. Must be called in the order of the batches. `sealed_by`
  /// says whether the caller or a task calls it. No byte is summed twice: the checksum of the image
  /// is joined from those of the elements and that of the bytes around them.
  void seal(Batch& batch) {
    std::uint32_t image = 0;
    std::size_t end = 0;  // of the part of the image that `image` covers
    const auto join_to = [&](std::size_t begin) {
      const MutableByteSpan around = batch.part(end, begin - end);
      image = Crc32(image).update(around).value();
      end = begin;
    };
    for (const auto& mark : batch.marks) {
      if (const auto* elements = std::get_if<Batch::Elements>(&mark)) {
        if (checksums == Checksums::kNone) continue;
        const std::uint32_t sum =
            elements->crc ? *elements->crc : crc32_of(batch.part(elements->begin, elements->size));
        crc = crc32_joined(crc, sum, elements->size);
        if (!reads_back) continue;
        join_to(elements->begin);
        image = crc32_joined(image, sum, elements->size);
        end += elements->size;
      } else {
        const auto& tail = std::get<Batch::Tail>(mark);
        const TensorItemLayout& layout = tail.frame->layout();
        layout.write_tail(crc, batch.part(tail.begin, layout.tail_bytes()));
        crc = 0;
      }
    }
    if (!reads_back || checksums == Checksums::kNone) return;
    join_to(batch.size);
    batch.crc = image;
  }

  /// True if tasks compute something before they write.
  bool has_sums() const {
    return reads_back || checksums == Checksums::kCrc32AndSha256 ||
           (sealed_by == SealedBy::kTask && checksums != Checksums::kNone);
  }
  void sum(Batch& batch) {
    if (sealed_by == SealedBy::kTask) seal(batch);
    if (checksums == Checksums::kCrc32AndSha256) sha256.update(batch.image());
    if (reads_back) parts.push_back({batch.size, batch.crc ? *batch.crc : crc32_of(batch.image())});
  }

  void write(Batch& batch) {
    if (!has_sums()) sum(batch);  // nothing but the tails, which have to be written all the same
    out->write_at(batch.offset, batch.image());
  }
};

namespace {

/// Upper bound for the bytes that a tensor's item has around its elements (head and tail).
constexpr std::uint64_t kAroundTensor = 2048;
/// The same for each of its folded dimensions: an extent and a stride.
constexpr std::uint64_t kAroundFolded = 24;

std::uint64_t expected_bytes(const std::vector<ImageItem>& items) {
  std::uint64_t sum = 0;
  for (const auto& item : items) {
    sum += item.content.size();
    if (!item.content.empty()) continue;
    sum += static_cast<std::uint64_t>(volume(item.extent)) * size_of(item.dtype) + kAroundTensor +
           kAroundFolded * item.folded.size();
  }
  return sum;
}

/// Waits for copies into memory that is about to be freed. Ignores their errors, because an earlier
/// error is reported instead.
void drain_anyhow(ContentSource& source) {
  try {
    source.drain();
  } catch (...) {  // NOLINT(bugprone-empty-catch): nothing is left to wait for
  }
}

}  // namespace

BatchOrder drain_then_write(BatchWork work) {
  return {std::move(work.drain), std::move(work.sum), std::move(work.write)};
}

bool is_done(Task& writing) { return writing.done(); }

void confirm_parts(Store& store, const std::string& path, std::span<const WrittenPart> parts,
                   MutableByteSpan room) {
  const auto refuse = [&](std::uint64_t offset, const std::string& what) {
    throw Error(Code::kIo, what, {.file = store.display(path), .offset = offset});
  };
  std::uint64_t written = 0;
  for (const WrittenPart& part : parts) written += part.bytes;
  const auto file = store.open(path);
  if (file->size() != written) {
    refuse(std::min(file->size(), written), "the store reported that " + with_commas(written) +
                                                " bytes of this file were written, but it has " +
                                                with_commas(file->size()));
  }
  std::uint64_t offset = 0;
  for (const WrittenPart& part : parts) {
    const MutableByteSpan read = room.first(part.bytes);
    file->read_at(offset, read);
    if (crc32_of(read) != part.crc) {
      refuse(offset, "these " + with_commas(part.bytes) +
                         " bytes of the file were written, but other bytes were read back");
    }
    offset += part.bytes;
  }
}

ImageOptions with_batches_of(std::uint64_t least, ImageOptions options) {
  least = std::min(least, options.staging_bytes_max / 4);
  options.batch_bytes = std::max(options.batch_bytes, least);
  return options;
}

std::uint64_t staging_bound(const std::vector<ImageItem>& items, const ImageOptions& options) {
  std::uint64_t objects = 0;
  for (const auto& item : items) objects += item.content.size();
  const std::uint64_t expected = expected_bytes(items);
  if (expected <= options.batch_bytes) return objects + expected;
  // A head or tail is not split between batches. If it does not fit at the end of a batch, that
  // space stays unused; this loses less than kAroundTensor bytes per batch.
  const std::uint64_t used = options.batch_bytes - kAroundTensor;
  const std::uint64_t batches = (expected + used - 1) / used;
  return objects + std::min(options.staging_bytes_max, batches * options.batch_bytes);
}

/// Copies items into batches and hands over each batch when it is full.
class ImageWriter::Filler {
 public:
  Filler(ImageWriter& writer, ContentSource& source) : writer_(writer), source_(source) {}

  void bytes(ByteSpan rest) {
    while (!rest.empty()) {
      const std::size_t part = std::min(rest.size(), room(1));
      std::copy_n(rest.begin(), part, batch_->extend(part).begin());
      rest = rest.subspan(part);
    }
  }

  /// Returns the item's length.
  std::uint64_t tensor(std::size_t item, const ImageItem& form) {
    const auto frame = frames_.of(form.dtype, form.extent, form.folded);
    const TensorItemLayout& layout = frame->layout();
    bytes(layout.head());
    const std::uint64_t width = size_of(form.dtype);
    const std::uint64_t total = layout.data_bytes() / width;
    for (std::uint64_t begin = 0; begin < total;) {
      const std::uint64_t count = std::min<std::uint64_t>(total - begin, room(width) / width);
      const std::size_t at = batch_->size;
      source_.fill(item, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin + count),
                   batch_->extend(count * width));
      batch_->marks.push_back(Batch::Elements{at, count * width, source_.filled_crc()});
      begin += count;
    }
    const std::size_t size = layout.tail_bytes();
    room(size);
    batch_->marks.push_back(Batch::Tail{batch_->size, frame});
    batch_->extend(size);
    return layout.length();
  }

  void flush() {
    if (!batch_) return;
    offset_ += batch_->size;
    writer_.hand_over(batch_, source_);  // batch_ keeps a reference until the copies drain
    batch_.reset();
  }

 private:
  /// Makes sure that the batch has room for `least` bytes, if necessary by starting a new batch.
  /// Returns the room that is left.
  std::size_t room(std::size_t least) {
    if (!batch_ || batch_->room() < least) {
      flush();
      batch_ = writer_.new_batch(source_);
      batch_->offset = offset_;
    }
    return batch_->room();
  }

  ImageWriter& writer_;
  ContentSource& source_;
  TensorFrames frames_;  // because a state has many tensors of few shapes
  std::shared_ptr<Batch> batch_;
  std::uint64_t offset_ = 0;
};

ImageWriter::ImageWriter(Store& store, Tasks& tasks, const std::string& path,
                         std::vector<ImageItem> items, ImageOptions options,
                         const StageSeams& seams)
    : store_(store),
      tasks_(tasks),
      path_(path),
      items_(std::move(items)),
      options_(options),
      seams_(seams),
      file_(std::make_shared<File>()) {
  CHECK(options_.batch_bytes >= 4096 && options_.staging_bytes_max >= options_.batch_bytes);
  file_->out = store.create(path);
  file_->checksums = options_.checksums;
  file_->reads_back = options_.read_back == ReadBack::kAlways;
  const std::uint64_t expected = expected_bytes(items_);
  batch_bytes_ = std::min(options_.batch_bytes, expected);
  // If the data does not fit into staging, the caller will have to wait for the background tasks.
  // In that case the caller computes the checksums, to relieve the tasks.
  const bool waits = expected > options_.staging_bytes_max;
  early_ = !waits;
  file_->sealed_by = waits ? File::SealedBy::kCaller : File::SealedBy::kTask;
}

ImageWriter::~ImageWriter() = default;

void ImageWriter::fill(Filler& filler) {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    ImageItem& item = items_[i];
    ByteRange range{written_.bytes, item.content.size()};
    if (!item.content.empty()) {
      filler.bytes(item.content);
      item.content = {};
    } else {
      range.size = filler.tensor(i, item);
    }
    written_.ranges.push_back(range);
    written_.bytes += range.size;
  }
  filler.flush();
}

void ImageWriter::stage(ContentSource& source) {
  CHECK(!staged_);
  Filler filler(*this, source);
  try {
    fill(filler);
    hand_on_all(source);
    if (options_.returns == BeginReturns::kWhenCopied) source.drain();
  } catch (...) {
    drain_anyhow(source);
    throw;
  }
  last_ = start({last_}, {}, [file = file_] {
    file->out->sync();
    file->out->close();
  });
  if (file_->reads_back) last_ = start({last_}, {}, read_back());
  staged_ = true;
}

/// Returns the work of comparing the written file with what was written to it. It reads into the
/// last batch, so it takes no further memory: when the work runs, that batch has been written.
std::function<void()> ImageWriter::read_back() {
  std::shared_ptr<Batch> last = in_flight_.empty() ? nullptr : in_flight_.back().batch;
  return [&store = store_, path = path_, file = file_, confirm = seams_.confirm, last]() mutable {
    const auto room =
        last ? MutableByteSpan(last->memory.get(), last->capacity) : MutableByteSpan();
    confirm(store, path, file->parts, room);
    last.reset();  // a finished task must not keep the batch alive
  };
}

std::shared_ptr<ImageWriter::Batch> ImageWriter::new_batch(ContentSource& source) {
  while (!in_flight_.empty() && seams_.free_again(*in_flight_.front().task)) take_back_oldest();
  if (spare_.empty() && peak_bytes_ + batch_bytes_ > options_.staging_bytes_max) {
    hand_on_all(source);
    has_waited_ = true;
    in_flight_.front().task->wait();
    take_back_oldest();
  }
  if (spare_.empty()) {
    peak_bytes_ += batch_bytes_;
    return std::make_shared<Batch>(source.staging(batch_bytes_), batch_bytes_);
  }
  auto batch = std::move(spare_.back());
  spare_.pop_back();
  if (batch.use_count() > 1) return std::make_shared<Batch>(batch->memory, batch_bytes_);
  batch->clear();
  return batch;
}

void ImageWriter::hand_over(const std::shared_ptr<Batch>& batch, ContentSource& source) {
  BatchWork work = {.drain = source.start(), .bytes = batch->size};
  // If staging holds everything, the source begins when it has collected enough.
  if (!early_) source.publish();
  // A finished task must not keep the batch alive.
  if (file_->has_sums()) {
    work.sum = [file = file_, held = batch]() mutable {
      file->sum(*held);
      held.reset();
    };
  }
  work.write = [file = file_, held = batch]() mutable {
    file->write(*held);
    held.reset();
  };
  if (!early_) hand_on(std::numeric_limits<std::size_t>::max());
  copying_.push_back({batch, seams_.order(std::move(work))});
  if (early_) hand_on(source.begun());
}

/// Lets tasks write batches, up to that number of all, in their order. If staging holds the whole
/// file, the tasks wait for the copies, otherwise the caller.
void ImageWriter::hand_on(std::size_t begun) {
  for (; !copying_.empty() && handed_on_ < begun; ++handed_on_) {
    Copying oldest = std::move(copying_.front());
    copying_.pop_front();
    if (early_) {
      write_later(oldest.batch, std::move(oldest.order.now), oldest.order);
      continue;
    }
    oldest.order.now();
    if (file_->sealed_by == File::SealedBy::kCaller) file_->seal(*oldest.batch);
    write_later(oldest.batch, {}, oldest.order);
  }
}

void ImageWriter::hand_on_all(ContentSource& source) {
  source.publish();
  hand_on(std::numeric_limits<std::size_t>::max());
}

/// Lets tasks compute the checksums of a batch, after those of the batch before, and then write it,
/// after that batch. The first of them calls `drain` before, if there is one.
void ImageWriter::write_later(const std::shared_ptr<Batch>& batch, std::function<void()> drain,
                              const BatchOrder& order) {
  if (order.sum) {
    summed_ = start({summed_}, std::exchange(drain, {}), order.sum);
    last_ = start({summed_, last_}, {}, order.later);
  } else {
    last_ = start({last_}, std::move(drain), order.later);
  }
  in_flight_.push_back({batch, last_});
}

/// Starts a task that waits for the others, and then calls `drain`, if there is one, and `work`
/// unless the file has failed.
std::shared_ptr<Task> ImageWriter::start(std::array<std::shared_ptr<Task>, 2> after,
                                         std::function<void()> drain, std::function<void()> work) {
  return tasks_.start([after = std::move(after), file = file_, drain = std::move(drain),
                       work = std::move(work)]() mutable {
    for (auto& task : after) {
      if (task) task->wait();
      task.reset();
    }
    try {
      if (drain) drain();  // even after a failure, because the memory is freed after this task
      if (!file->failed) work();
    } catch (const std::exception&) {
      file->fail();
    }
  });
}

void ImageWriter::take_back_oldest() {
  if (file_->failed) std::rethrow_exception(file_->failure);
  spare_.push_back(std::move(in_flight_.front().batch));
  in_flight_.pop_front();
}

void ImageWriter::wait_for_copies(ContentSource& source) {
  if (!early_ || options_.returns == BeginReturns::kWhenCopied) return;  // stage() has waited
  try {
    source.drain();
  } catch (const std::exception&) {
    if (!copy_failure_) copy_failure_ = std::current_exception();
  }
}

bool ImageWriter::done() { return staged_ && last_->done(); }

WrittenFile ImageWriter::finish() {
  CHECK(staged_);
  last_->wait();
  summed_.reset();  // after a failure it still has its batch
  in_flight_.clear();
  spare_.clear();  // no more batches are filled
  if (file_->failed) std::rethrow_exception(file_->failure);
  if (copy_failure_) std::rethrow_exception(copy_failure_);
  if (options_.checksums == Checksums::kCrc32AndSha256) written_.sha256 = file_->sha256.digest();
  return written_;
}

}  // namespace reprise
