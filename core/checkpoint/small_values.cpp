#include "core/checkpoint/small_values.hpp"

#include "core/format/bytes_item.hpp"
#include "core/format/tensor_item.hpp"
#include "core/geometry/compare.hpp"

namespace reprise {

std::optional<Value> small_object(Checkpoint& checkpoint, const StoredObject& object) {
  if (object.file == kNoFile || object.range.size > kSmallObjectBytes) return std::nullopt;
  try {
    return read_bytes_item(checkpoint.object_bytes(object)).value;
  } catch (const Error&) {
    return std::nullopt;  // verify_payload reports the error
  }
}

std::optional<std::string> only_element(Checkpoint& checkpoint, const StoredTensor& tensor) {
  if (volume(logical_shape(tensor)) != 1 || tensor.chunks.empty()) return std::nullopt;
  const StoredChunk& chunk = tensor.chunks.front();
  if (chunk.file == kNoFile) return std::nullopt;
  try {
    const TensorItem item = checkpoint.tensor_item(tensor, chunk);
    if (item.byteswap || !item.contiguous()) return std::nullopt;
    const auto slice = checkpoint.slice(tensor.key, chunk.file, chunk.range);
    const Bytes element = read_range(*slice, {item.data_offset, size_of(item.dtype)});
    const std::string text = print_element(item.dtype, element.data());
    return text.substr(0, text.find(" ("));
  } catch (const Error&) {
    return std::nullopt;  // verify_payload reports the error
  }
}

}  // namespace reprise
