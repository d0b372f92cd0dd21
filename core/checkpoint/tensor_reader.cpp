#include "core/checkpoint/tensor_reader.hpp"

#include <algorithm>
#include <utility>

#include "core/base/caught.hpp"
#include "core/checkpoint/record_checksum.hpp"
#include "core/checkpoint/region_reader.hpp"
#include "core/checkpoint/usual_frame.hpp"
#include "core/geometry/blocks.hpp"
#include "core/plan/cover.hpp"

namespace reprise {
namespace {

/// Returns a view of `region`'s elements in the local buffer for `piece`.
StridedView view_of(const Piece& piece, const Box& region, std::byte* local, std::size_t width) {
  std::int64_t element = piece.local;
  for (std::size_t d = 0; d < region.ndim(); ++d) {
    element += (region.offset[d] - piece.box.offset[d]) * piece.strides[d];
  }
  return {local + static_cast<std::size_t>(element) * width, piece.strides};
}

/// Decides which elements of a storage belong to the item's view. The view may have gaps.
class View {
 public:
  explicit View(const TensorItem& item) : item_(item) {
    for (std::size_t d = 0; d < item.size.size(); ++d) {
      if (item.size[d] > 1) dims_.push_back(d);
    }
    std::ranges::sort(
        dims_, [&item](std::size_t a, std::size_t b) { return item.strides[a] > item.strides[b]; });
  }

  /// True if `element` is in the view. No two positions of a view share an element: see
  /// read_tensor_item().
  bool holds(std::int64_t element) const {
    std::int64_t rest = element - item_.storage_offset;
    if (rest < 0) return false;
    for (const std::size_t d : dims_) {
      rest -= std::min(rest / item_.strides[d], item_.size[d] - 1) * item_.strides[d];
    }
    return rest == 0;
  }

 private:
  const TensorItem& item_;
  std::vector<std::size_t> dims_;  ///< dimensions, sorted by stride, largest first
};

/// Updates `crc` with the bytes of the storage that belong to no element of the item's view. Most
/// items have no such bytes.
void add_unused(ItemSource& slice, const TensorItem& item, ScatteredCrc32& crc) {
  constexpr std::uint64_t kStep = std::uint64_t{64} << 10U;  // a multiple of every element's width
  if (crc.seen() == item.data_bytes) return;
  const View view(item);
  const std::uint64_t width = size_of(item.dtype);
  for (std::uint64_t at = 0; at < item.data_bytes; at += kStep) {
    const Bytes block =
        read_range(slice, {item.data_offset + at, std::min(kStep, item.data_bytes - at)});
    for (std::uint64_t begin = 0; begin < block.size(); begin += width) {
      if (view.holds(static_cast<std::int64_t>((at + begin) / width))) continue;
      const std::uint64_t size = std::min(width, block.size() - begin);
      crc.add(at + begin, ByteSpan(block).subspan(begin, size));
    }
  }
}

}  // namespace

TensorReader::TensorReader(const ReaderResources& resources, const StoredTensor& tensor)
    : resources_(resources), tensor_(tensor), opened_(tensor.chunks.size()) {
  std::vector<Box> boxes;
  for (std::uint32_t c = 0; c < tensor.chunks.size(); ++c) {
    const auto pieces = pieces_of(tensor, tensor.chunks[c]);
    for (std::uint32_t p = 0; p < pieces.size(); ++p) {
      boxes.push_back(pieces[p].box);
      wanted_ += static_cast<std::uint64_t>(pieces[p].box.elements());
      if (!pieces[p].box.empty()) sources_.push_back({c, p, pieces[p].box});
    }
  }
  if (const auto defect = prove_cover(logical_shape(tensor), boxes)) {
    const Checkpoint& checkpoint = resources.checkpoint;
    throw Error(
        defect->code, defect->message,
        {.key = tensor.key, .file = checkpoint.store().display(checkpoint.location().directory)});
  }
}

TensorReader::TensorReader(const ReaderResources& resources, const TensorReader& whole)
    : resources_(resources),
      tensor_(whole.tensor_),
      sources_(whole.sources_),
      opened_(whole.opened_.size()),
      judges_(false),
      wanted_(whole.wanted_) {
  for (std::uint32_t chunk = 0; chunk < opened_.size(); ++chunk) {
    const auto& theirs = whole.opened_[chunk];
    if (!theirs) continue;
    Opened& known = opened_[chunk].emplace(Opened{theirs->item, std::nullopt});
    if (theirs->seen) known.seen.emplace(theirs->item.data_bytes);
  }
}

/// Checks and counts all records of the item, except the one with the elements if these are to be
/// delivered once each. The checksums are computed from the same bytes that were parsed.
void TensorReader::count_around(Archive& archive, const TensorItem& item,
                                ChecksumTally& tally) const {
  const std::string file = archive.source().place_at(0).file;
  for (const Record& record : archive.records()) {
    const std::uint64_t offset = archive.content_range(record).offset;
    const bool of_elements = offset == item.data_offset && record.size == item.data_bytes;
    if (record.size == 0 || (of_elements && !item.overlaps)) continue;
    tally.add(file, record, archive.checksum_matches(record), [&] {
      ErrorPlace place = archive.source().place_at(offset);
      place.key = tensor_.key;
      return place;
    });
  }
}

/// Opens an item once, even if that fails: what was counted of it must not be counted again.
TensorReader::Opened& TensorReader::opened(std::uint32_t chunk) {
  auto& found = opened_[chunk];
  if (found) return *found;
  const auto failed = unopened_.find(chunk);
  if (failed != unopened_.end()) throw Error(failed->second);
  try {
    return found.emplace(open(tensor_.chunks[chunk]));
  } catch (const Error& error) {
    unopened_.emplace(chunk, error);
    throw;
  }
}

TensorReader::Opened TensorReader::open(const StoredChunk& stored) {
  if (stored.form != ItemForm::kArchive) {
    Opened opened{resources_.checkpoint.tensor_item(tensor_, stored), std::nullopt};
    if (stored.form == ItemForm::kView && resources_.checksums != nullptr) {
      if (!judges_ && is_whole_record(stored)) {  // others read parts of it
        opened.item.crc = stored.view->record->crc;
        opened.seen.emplace(stored.range.size);
      } else {
        check_record(stored, judges_ ? *resources_.checksums : opened.around);
      }
    }
    return opened;
  }
  Opened opened;
  ChecksumTally* const checksums =
      resources_.checksums == nullptr || judges_ ? resources_.checksums : &opened.around;
  if (auto framed = framed_item(resources_.checkpoint, tensor_, stored, checksums)) {
    opened.item = std::move(*framed);
  } else {
    const auto slice = resources_.checkpoint.slice(tensor_.key, stored.file, stored.range);
    Archive archive(*slice);
    opened.item = Checkpoint::tensor_item(tensor_, stored, archive);
    if (checksums != nullptr) count_around(archive, opened.item, *checksums);
  }
  if (checksums != nullptr && !opened.item.overlaps) opened.seen.emplace(opened.item.data_bytes);
  return opened;
}

/// Compares the record in which the chunk's view lies with its checksum, if nobody did before.
void TensorReader::check_record(const StoredChunk& stored, ChecksumTally& tally) {
  ChecksumTally own;
  if (!count_record(resources_.checkpoint, tensor_, stored, own)) return;
  tally.add(own);
  own.require_no_damage();
}

/// As soon as all elements have been delivered, compares the checksum of the chunk's elements with
/// the stored checksum.
void TensorReader::judge(std::uint32_t chunk, Opened& opened) {
  if (!judges_ || !opened.seen || opened.seen->seen() != opened.item.element_bytes()) return;
  const StoredChunk& stored = tensor_.chunks[chunk];
  const auto slice = resources_.checkpoint.slice(tensor_.key, stored.file, stored.range);
  add_unused(*slice, opened.item, *opened.seen);
  const Record record{.name = stored.view ? stored.view->record->name : "data/0",
                      .size = opened.item.data_bytes,
                      .crc = opened.item.crc};
  const bool matches = opened.seen->value() == record.crc;
  if (matches && stored.view) stored.view->record->checked = true;
  resources_.checksums->add(slice->place_at(0).file, record, matches, [&] {
    ErrorPlace place = slice->place_at(opened.item.data_offset);
    place.key = tensor_.key;
    return place;
  });
  opened.seen.reset();
}

void TensorReader::read_chunk(std::span<const Source> sources, std::span<const Piece> wanted,
                              std::byte* local, FilledCrc32* filled) {
  const std::size_t width = size_of(tensor_.dtype);
  std::vector<RegionTarget> targets;
  std::uint64_t elements = 0;
  for (const Source& source : sources) {
    for (const Piece& piece : wanted) {
      const auto region = intersect(source.box, piece.box);
      if (!region) continue;
      targets.push_back({source.piece, *region, view_of(piece, *region, local, width)});
      elements += static_cast<std::uint64_t>(region->elements());
    }
  }
  if (targets.empty()) return;
  const std::uint32_t chunk = sources.front().chunk;
  Opened& source = opened(chunk);
  read_regions(resources_.checkpoint, tensor_, tensor_.chunks[chunk], source.item, targets,
               resources_.staging, resources_.device, source.seen ? &*source.seen : nullptr,
               filled);
  delivered_ += elements;
  judge(chunk, source);
}

void TensorReader::read(std::span<const Piece> wanted, std::byte* local, FilledCrc32* filled) {
  const std::span<const Source> all(sources_);
  FirstFailure failure;  // what follows is read all the same, so that its damage is told too
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin + 1;
    while (end < all.size() && all[end].chunk == all[begin].chunk) ++end;
    failure.attempt([&] { read_chunk(all.subspan(begin, end - begin), wanted, local, filled); });
    begin = end;
  }
  failure.rethrow();
}

void TensorReader::take(TensorReader& other) {
  delivered_ += other.delivered_;
  for (std::uint32_t chunk = 0; chunk < opened_.size(); ++chunk) {
    auto& theirs = other.opened_[chunk];
    auto& ours = opened_[chunk];
    if (!theirs) continue;
    if (!ours) {
      resources_.checksums->add(theirs->around);
      ours = std::move(theirs);
    } else if (ours->seen && theirs->seen) {
      ours->seen->add(*theirs->seen);
    }
  }
}

void TensorReader::judge_taken() {
  FirstFailure failure;
  for (std::uint32_t chunk = 0; chunk < opened_.size(); ++chunk) {
    if (opened_[chunk]) failure.attempt([&] { judge(chunk, *opened_[chunk]); });
  }
  failure.rethrow();
}

void TensorReader::open_rest() {
  FirstFailure failure;
  for (std::uint32_t chunk = 0; chunk < tensor_.chunks.size(); ++chunk) {
    if (!opened_[chunk]) failure.attempt([&] { judge(chunk, opened(chunk)); });
  }
  failure.rethrow();
}

bool TensorReader::judged() const {
  return std::ranges::none_of(opened_, [](const auto& chunk) { return chunk && chunk->seen; });
}

void TensorReader::read(const Box& box, std::byte* local) {
  const Piece piece = contiguous_piece(box);
  read(std::span(&piece, 1), local);
}

void TensorReader::read(const Box& box, MutableByteSpan block, const TakeElements& take) {
  const std::size_t width = size_of(tensor_.dtype);
  for_each_block(box, static_cast<std::int64_t>(block.size() / width), [&](const Box& part) {
    read(part, block.data());
    take(part, ByteSpan(block).first(static_cast<std::size_t>(part.elements()) * width));
  });
}

}  // namespace reprise
