#include "core/checkpoint/chunk_reader.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/check.hpp"
#include "core/checkpoint/usual_frame.hpp"
#include "core/format/zip/crc32.hpp"

namespace reprise {
namespace {

/// After this many consecutive items that do not have the usual frame (TensorFrame), the reader
/// parses all further items.
constexpr int kMissesMax = 8;
/// Number of bytes read at a time. It is small enough for the bytes to be still in the CPU's cache
/// when their checksum is computed. An item with at most this many element bytes may be read in one
/// go; its head and tail are then checked afterwards.
constexpr std::size_t kReadStep = std::size_t{256} << 10U;

/// If there is only one target and it receives the whole chunk in row-major order, returns the
/// target's memory; otherwise null.
std::byte* whole_target(const StoredChunk& chunk, std::span<const RegionTarget> targets) {
  if (targets.size() != 1 || !(targets.front().region == chunk.box)) return nullptr;
  const StridedView& target = targets.front().target;
  std::int64_t step = 1;
  for (std::size_t d = chunk.box.ndim(); d-- > 0;) {
    if (chunk.box.extent[d] != 1 && target.strides[d] != step) return nullptr;
    step *= chunk.box.extent[d];
  }
  return target.data;
}

/// True if the targets' regions have as many elements as the chunk.
bool wants_all(const StoredChunk& chunk, std::span<const RegionTarget> targets) {
  std::int64_t wanted = 0;
  for (const auto& target : targets) wanted += target.region.elements();
  return wanted >= chunk.box.elements();
}

}  // namespace

/// An item that should have this frame, while it is read.
struct ChunkReader::Framed {
  const Checkpoint* checkpoint = nullptr;
  const StoredTensor* tensor = nullptr;
  const StoredChunk* chunk = nullptr;
  std::shared_ptr<const TensorFrame> frame = {};
  std::shared_ptr<ReadFile> file = {};
  std::vector<RegionTarget> targets = {};
  Bytes ends = {};  ///< head and tail, unless they are read into the ring
  MutableByteSpan head = {};
  MutableByteSpan tail = {};
  MutableByteSpan elements = {};  ///< where they are read to, if all are read at once
  /// The recorded checksum of the elements; empty until head and tail have matched.
  std::optional<std::uint32_t> recorded = {};
  Crc32 crc = {};  ///< checksum of the elements that have arrived
  std::uint64_t bytes_read = 0;

  void keep_ends() {
    ends.resize(frame->head_bytes() + frame->tail_bytes());
    head = MutableByteSpan(ends).first(frame->head_bytes());
    tail = MutableByteSpan(ends).subspan(frame->head_bytes());
  }
  std::uint64_t elements_at() const { return chunk->range.offset + frame->head_bytes(); }
  template <class Work>
  void here(const Work& work) const {
    in_place(*checkpoint, *tensor, *chunk, work);
  }
  void read_ends() {
    file->read_at(chunk->range.offset, head);
    file->read_at(elements_at() + frame->data_bytes(), tail);
  }
  void read_in_steps(bool checked);
  void add_copies(ByteSpan block, std::int64_t begin, std::int64_t end,
                  std::vector<ScatterCopy>& copies) const;
};

/// Reads a large item, and computes the checksum of the elements if it is to be checked.
void ChunkReader::Framed::read_in_steps(bool checked) {
  read_ends();
  if (!frame->match(head, tail)) return;  // it is read later in another way
  for (std::size_t done = 0; done < elements.size();) {
    const auto part = elements.subspan(done, std::min(elements.size() - done, kReadStep));
    file->read_at(elements_at() + done, part);
    if (checked) crc.update(part);
    done += part.size();
  }
}

/// Adds the copies of the wanted ones among the elements [begin, end) of the chunk.
void ChunkReader::Framed::add_copies(ByteSpan block, std::int64_t begin, std::int64_t end,
                                     std::vector<ScatterCopy>& copies) const {
  const auto width = static_cast<std::int64_t>(size_of(frame->dtype()));
  const Piece payload = contiguous_piece(chunk->box);
  for (const Box& part : boxes_of_range(chunk->box, begin, end)) {
    for (const RegionTarget& wanted : targets) {
      const auto common = intersect(part, wanted.region);
      if (!common) continue;
      const Piece target{wanted.region, 0, wanted.target.strides};
      const std::int64_t from = local_offset(payload, common->offset) - begin;
      const std::int64_t to = local_offset(target, common->offset);
      copies.push_back({.host = {block.data() + from * width, payload.strides},
                        .device = {wanted.target.data + to * width, target.strides},
                        .extents = common->extent,
                        .element_bytes = static_cast<std::size_t>(width)});
    }
  }
}

/// Items that follow one another in a file, and are read by one task.
struct ChunkReader::Run {
  std::vector<Framed> all = {};  ///< more than `count` if the run is used again
  std::size_t count = 0;

  std::span<Framed> items() { return {all.data(), count}; }
  /// `most` is the largest number of items, always the same.
  Framed& add(std::size_t most) {
    if (all.empty()) all.reserve(most);  // so that the items stay where they are
    if (count == all.size()) all.emplace_back();
    return all[count++];
  }
  bool can_be_followed_by(const StoredChunk& next, std::uint64_t joined, std::size_t most) const {
    const StoredChunk& first = *all[0].chunk;
    const StoredChunk& last = *all[count - 1].chunk;
    return count < most && last.file == next.file &&
           last.range.offset + last.range.size == next.range.offset &&
           next.range.offset + next.range.size - first.range.offset <= joined;
  }
  /// Adds to errors the key and the file of the item that they are about, or of the first item if
  /// that is not known.
  template <class Work>
  void here(const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      std::size_t at = 0;
      while (at + 1 < count &&
             all[at + 1].chunk->range.offset <= error.place().offset.value_or(0)) {
        ++at;
      }
      all[at].here([&] { throw Error(error); });
    }
  }
  void read(bool checked, std::size_t at_once);
};

/// Reads all items, the elements to where they belong, at most `at_once` bytes of these by one call
/// unless an item is larger. Computes the checksums of the elements if they are to be checked.
void ChunkReader::Run::read(bool checked, std::size_t at_once) {
  std::array<MutableByteSpan, 3 * kJoinedMax> parts;
  for (std::size_t begin = 0; begin < count;) {
    if (all[begin].elements.size() > at_once) {
      all[begin++].read_in_steps(checked);
      continue;
    }
    std::size_t size = 0;
    std::size_t end = begin;
    for (std::size_t sum = 0; end < count; ++end) {
      sum += all[end].elements.size();
      if (sum > at_once) break;
      for (const MutableByteSpan part : {all[end].head, all[end].elements, all[end].tail}) {
        parts[size++] = part;
      }
    }
    all[begin].file->read_parts(all[begin].chunk->range.offset, {parts.data(), size});
    for (; begin < end; ++begin) {
      if (checked) all[begin].crc.update(all[begin].elements);
    }
  }
}

void ChunkReader::read(const StoredTensor& tensor, const StoredChunk& chunk,
                       std::span<const RegionTarget> targets) {
  if (!others_.empty()) catch_up();
  if (auto frame = frame_of(tensor, chunk)) {
    auto file = file_of(tensor, chunk);
    if (chunk.range.fits(file->size())) {
      const bool staged = is_staged(*frame);
      const bool joins = chunk.range.size <= joined_ && (staged || ring_.device().host_memory()) &&
                         at_once(*frame, chunk, targets) && on_device(*frame, chunk) == nullptr;
      if (pending_ && !(joins && joins_pending(chunk, staged))) read_pending();
      if (!pending_) pending_ = unused_run();
      Framed& item = pending_->add(run_items_);
      item.checkpoint = &checkpoint_;
      item.tensor = &tensor;
      item.chunk = &chunk;
      item.frame = std::move(frame);
      item.file = std::move(file);
      item.targets.assign(targets.begin(), targets.end());
      item.recorded.reset();
      item.crc = {};
      item.bytes_read = 0;
      if (!joins) read_pending();
      return;
    }
  }
  catch_up();  // what follows is read at once, and errors come in the order of the items
  read_parsed(tensor, chunk, targets);
}

void ChunkReader::catch_up() {
  read_pending();
  ring_.catch_up();
  for (const auto& item : std::exchange(others_, {})) {
    bytes_read_ -= item->bytes_read;
    read_parsed(*item->tensor, *item->chunk, item->targets);
  }
  ring_.catch_up();
}

std::shared_ptr<ReadFile> ChunkReader::file_of(const StoredTensor& tensor,
                                               const StoredChunk& chunk) {
  try {
    return in_place(checkpoint_, tensor, chunk,
                    [&] { return checkpoint_.shared_file(chunk.file); });
  } catch (const Error&) {
    catch_up();  // errors of earlier items come first
    throw;
  }
}

ChunkReader::ItemRun ChunkReader::unused_run() {
  const auto unused = std::find_if(runs_.begin(), runs_.end(),
                                   [](const auto& run) { return run.use_count() == 1; });
  if (unused == runs_.end()) return runs_.emplace_back(std::make_shared<Run>());
  (*unused)->count = 0;
  return *unused;
}

/// Returns the frame (TensorFrame) that items of chunks with this shape usually have; null if this
/// chunk's item must be parsed. An item with a frame is read only once, so its bytes cannot change
/// between check and delivery.
std::shared_ptr<const TensorFrame> ChunkReader::frame_of(const StoredTensor& tensor,
                                                         const StoredChunk& chunk) {
  if (misses_ >= kMissesMax || !may_have_frame(tensor, chunk)) return nullptr;
  auto usual = usual_frame(frames_, tensor, chunk);
  if (usual && usual->length() - usual->data_bytes() <= kAroundMax) return usual;
  ++misses_;
  return nullptr;
}

/// Takes in head and tail. If they are not those of the frame, returns false, and the item is read
/// later in another way; then the targets may already have been written.
bool ChunkReader::match(const FramedItem& item) {
  if (const auto matched = item->frame->match(item->head, item->tail)) {
    item->recorded = matched->crc;
    misses_ = 0;
    return true;
  }
  ++misses_;
  others_.push_back(item);
  return false;
}

/// True if items in this frame are read into the ring as they are, with heads and tails.
bool ChunkReader::is_staged(const TensorFrame& frame) const {
  const std::uint64_t most = ring_.device().host_memory() ? kStagedMax : ring_.room();
  return frame.length() <= std::min<std::uint64_t>(most, ring_.room());
}

/// True if the item can be read together with those that are to be read next.
bool ChunkReader::joins_pending(const StoredChunk& chunk, bool staged) const {
  if (is_staged(*pending_->all[0].frame) != staged) return false;
  return staged ? pending_->can_be_followed_by(
                      chunk, std::min<std::uint64_t>(joined_, ring_.room()), run_items_)
                : pending_->can_be_followed_by(chunk, joined_, joined_items_);
}

/// True if all elements of the chunk are read by one piece of work: straight into their target, or
/// into one part of the ring.
bool ChunkReader::at_once(const TensorFrame& frame, const StoredChunk& chunk,
                          std::span<const RegionTarget> targets) const {
  if (ring_.device().host_memory() && !is_staged(frame)) {
    return whole_target(chunk, targets) != nullptr;
  }
  return frame.data_bytes() <= ring_.room() && (checksums_ != nullptr || wants_all(chunk, targets));
}

/// Returns the elements of the chunk in the memory of the device; null if they have to be read.
const std::byte* ChunkReader::on_device(const TensorFrame& frame, const StoredChunk& chunk) const {
  if (checksums_ != nullptr) return nullptr;
  return checkpoint_.on_device(chunk.file,
                               {chunk.range.offset + frame.head_bytes(), frame.data_bytes()});
}

void ChunkReader::read_pending() {
  const ItemRun run = std::exchange(pending_, nullptr);
  if (!run) return;
  run->here([&] { read_run(run); });
  for (const Framed& item : run->items()) bytes_read_ += item.bytes_read;
  if (!ring_.reads_ahead() && !others_.empty()) catch_up();
}

void ChunkReader::read_run(const ItemRun& run) {
  const FramedItem first(run, run->all.data());
  const std::byte* const there = on_device(*first->frame, *first->chunk);
  const bool whole = at_once(*first->frame, *first->chunk, first->targets);
  if (there == nullptr && whole) return read_at_once(run);
  CHECK(run->count == 1, run->count);  // the others would not be read
  if (there != nullptr) return read_on_device(first, there);
  read_in_parts(first);
}

/// Reads all elements of the items by one piece of work.
void ChunkReader::read_at_once(const ItemRun& run) {
  const bool checked = checksums_ != nullptr;
  const bool staged = is_staged(*run->all[0].frame);
  const bool direct = ring_.device().host_memory() && !staged;
  std::size_t elements = 0;
  std::size_t room = 0;
  for (Framed& item : run->items()) {
    item.bytes_read = item.frame->data_bytes();
    if (!staged) item.keep_ends();
    if (direct) item.elements = {whole_target(*item.chunk, item.targets), item.bytes_read};
    elements += item.bytes_read;
    if (!direct) room += staged ? item.frame->length() : item.bytes_read;
  }
  // In host memory, elements are checked while they are in the CPU's cache.
  const std::size_t step = direct && (checked || run->count == 1) ? kReadStep : elements;
  ring_.read(
      room,
      [held = run, checked, step, staged](MutableByteSpan block) mutable {
        // A finished task must not keep the items from being used again.
        const ItemRun own = std::move(held);
        const auto next = [&block](std::size_t bytes) {
          const MutableByteSpan part = block.first(bytes);
          block = block.subspan(bytes);
          return part;
        };
        for (Framed& item : own->items()) {
          if (block.empty()) break;
          if (staged) item.head = next(item.frame->head_bytes());
          item.elements = next(item.bytes_read);
          if (staged) item.tail = next(item.frame->tail_bytes());
        }
        own->here([&] { own->read(checked, step); });
      },
      [this, run](MutableByteSpan /*block*/) { use(run); });
}

void ChunkReader::use(const ItemRun& run) {
  copies_.clear();
  for (Framed& item : run->items()) {
    if (!match({run, &item})) continue;
    item.here([&] {
      if (!ring_.device().host_memory() || is_staged(*item.frame)) {
        item.add_copies(item.elements, 0, item.chunk->box.elements(), copies_);
      }
      if (checksums_ != nullptr) count(item);
    });
  }
  for (Framed& item : run->items()) {  // so that they don't keep files open
    item.file.reset();
    item.frame.reset();
  }
  run->here([&] { ring_.scatter(copies_); });
}

/// Copies the wanted elements within the device, once both ends of the item have been read.
void ChunkReader::read_on_device(const FramedItem& item, const std::byte* elements) {
  item->keep_ends();
  for (const auto& target : item->targets) {
    item->bytes_read +=
        static_cast<std::uint64_t>(target.region.elements()) * size_of(item->frame->dtype());
  }
  ring_.read(
      0, [item](MutableByteSpan /*none*/) { item->here([&] { item->read_ends(); }); },
      [this, item, elements](MutableByteSpan /*none*/) {
        if (!match(item)) return;
        copies_.clear();
        item->here([&] {
          item->add_copies({elements, item->frame->data_bytes()}, 0, item->chunk->box.elements(),
                           copies_);
          ring_.scatter(copies_);
        });
      });
}

/// Reads both ends of the item, and then its wanted elements, or all of them if there are
/// checksums.
void ChunkReader::read_in_parts(const FramedItem& item) {
  item->keep_ends();
  ring_.read(
      0, [item](MutableByteSpan /*none*/) { item->here([&] { item->read_ends(); }); },
      [this, item](MutableByteSpan /*none*/) { match(item); });
  const auto is_other = [&] { return !ring_.reads_ahead() && !item->recorded; };
  if (is_other()) return;
  if (checksums_ == nullptr) {
    item->bytes_read = read_regions(checkpoint_, *item->tensor, *item->chunk,
                                    item->frame->unchecked(), item->targets, ring_);
    return;
  }
  item->bytes_read = item->frame->data_bytes();
  const auto width = static_cast<std::int64_t>(size_of(item->frame->dtype()));
  const auto room = static_cast<std::int64_t>(ring_.room()) / width;
  const std::int64_t elements = item->chunk->box.elements();
  CHECK(room > 0, ring_.room(), width);
  for (std::int64_t begin = 0; begin < elements; begin += room) {
    const std::int64_t end = std::min(begin + room, elements);
    const std::uint64_t offset = item->elements_at() + static_cast<std::uint64_t>(begin * width);
    ring_.read(
        static_cast<std::size_t>((end - begin) * width),
        [item, offset](MutableByteSpan block) {
          item->here([&] { item->file->read_at(offset, block); });
        },
        [this, item, begin, end](MutableByteSpan block) {
          if (!item->recorded) return;
          item->here([&] {
            item->crc.update(block);
            copies_.clear();
            item->add_copies(block, begin, end, copies_);
            ring_.scatter(copies_);
            if (end == item->chunk->box.elements()) count(*item);
          });
        });
  }
}

void ChunkReader::count(const Framed& item) {
  ChecksumTally& tally = *checksums_;
  const std::string file = checkpoint_.display(item.chunk->file);
  const auto place = [&item, &file](std::uint64_t offset) {
    return ErrorPlace{.key = item.tensor->key, .file = file, .offset = offset};
  };
  const TensorFrame& frame = *item.frame;
  tally.add(file, {.name = "data/0", .size = frame.data_bytes(), .crc = *item.recorded},
            *item.recorded == item.crc.value(), [&] { return place(item.elements_at()); });
  const std::uint64_t tail = item.elements_at() + frame.data_bytes();
  count_frame(
      frame, item.tail, file, [&] { return place(tail); }, tally);
  tally.require_no_damage();
}

void ChunkReader::read_parsed(const StoredTensor& tensor, const StoredChunk& chunk,
                              std::span<const RegionTarget> targets) {
  // The checksum is verified before parsing: if a changed byte makes parsing fail, the checksum
  // error gives the cause.
  if (checksums_ != nullptr && chunk.form == ItemForm::kArchive) {
    const auto slice = checkpoint_.slice(tensor.key, chunk.file, chunk.range);
    checksums_->add(*slice, tensor.key);
    checksums_->require_no_damage();
  }
  if (checksums_ != nullptr && chunk.form == ItemForm::kView) {
    checkpoint_.check_record(tensor, chunk, *checksums_);
  }
  const TensorItem item = checkpoint_.tensor_item(tensor, chunk);
  bytes_read_ += read_regions(checkpoint_, tensor, chunk, item, targets, ring_);
}

}  // namespace reprise
