#include "core/checkpoint/usual_frame.hpp"

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

std::optional<TensorItem> matched(const TensorFrame& frame, ByteSpan item) {
  return frame.match(item.first(frame.head_bytes()), item.last(frame.tail_bytes()));
}

}  // namespace reprise
