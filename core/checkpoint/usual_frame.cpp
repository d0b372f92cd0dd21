#include "core/checkpoint/usual_frame.hpp"

#include "core/format/torch_records.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {
namespace {

bool could_hold(ByteRange range, const Dims& extent, DType dtype) {
  const auto elements = checked_volume(extent);
  return elements && *elements > 0 &&
         static_cast<std::uint64_t>(*elements) < range.size / size_of(dtype);
}

}  // namespace

bool may_have_frame(const StoredTensor& tensor, const StoredChunk& chunk) {
  return chunk.file != kNoFile && chunk.form == ItemForm::kArchive &&
         tensor.original_shape.empty() && could_hold(chunk.range, chunk.box.extent, tensor.dtype);
}

std::shared_ptr<const TensorFrame> usual_frame(TensorFrames& frames, const StoredTensor& tensor,
                                               const StoredChunk& chunk) {
  if (!may_have_frame(tensor, chunk)) return nullptr;
  auto frame = frames.of(tensor.dtype, chunk.box.extent, tensor.folded);
  return frame->length() == chunk.range.size ? frame : nullptr;
}

void count_frame(const TensorFrame& frame, ByteSpan tail, const std::string& file,
                 const std::function<ErrorPlace()>& tail_place, ChecksumTally& checksums) {
  checksums.add_matching(file, TensorFrame::kRecords - 2);
  checksums.add(
      file,
      {.name = ".data/serialization_id", .size = kSerializationIdBytes, .crc = frame.id_crc(tail)},
      frame.id_is_whole(tail), tail_place);
}

std::optional<TensorItem> framed_item(Checkpoint& checkpoint, const StoredTensor& tensor,
                                      const StoredChunk& chunk, ChecksumTally* checksums) {
  const auto frame = usual_frame(checkpoint.frames(), tensor, chunk);
  if (!frame) return std::nullopt;
  const auto slice = checkpoint.slice(tensor.key, chunk.file, chunk.range);
  Bytes ends(frame->head_bytes() + frame->tail_bytes());
  const auto head = MutableByteSpan(ends).first(frame->head_bytes());
  const auto tail = MutableByteSpan(ends).last(frame->tail_bytes());
  slice->read_at(0, head);
  slice->read_at(frame->length() - tail.size(), tail);
  auto item = frame->match(head, tail);
  if (!item || !frame->id_is_whole(tail)) return std::nullopt;
  if (checksums != nullptr) {
    count_frame(*frame, tail, checkpoint.display(chunk.file), {}, *checksums);
  }
  return item;
}

}  // namespace reprise
