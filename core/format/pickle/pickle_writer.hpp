#pragma once
// Pickles values and tensors as torch.save does: with protocol 2, and with no opcodes except those
// that torch's weights_only unpickler accepts.

#include <span>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/geometry/dtype.hpp"
#include "reprise/tensor.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Returns the `data.pkl` of a bytes item or of common.pt. Appends the payload of the i-th
/// TensorValue (depth first, in written order) to `storages`; the caller stores it as record
/// `data/<i>`. The spans point into `value`. `storages` may be null if the value contains no
/// tensor. Throws UNSUPPORTED if a text in `value` is not UTF-8.
Bytes encode_value(const Value& value, std::vector<ByteSpan>* storages);

/// Returns the `data.pkl` of a tensor item, exactly as torch writes it for a contiguous CPU tensor
/// whose storage `data/0` holds only the tensor's elements. The length of the pickle depends only
/// on dtype and shape.
Bytes encode_tensor_pickle(DType dtype, const Dims& shape, const FoldedExtents& folded = {});

/// A tensor of a state dict.
struct NamedTensor {
  std::string_view key;
  DType dtype = DType::kFloat32;
  Dims shape;
};
/// Returns the `data.pkl` of a dict from keys to contiguous CPU tensors. Tensor i has a storage of
/// its own, in the record `data/<i>`. Throws UNSUPPORTED if a key is not UTF-8.
Bytes encode_state_dict(std::span<const NamedTensor> tensors);

}  // namespace reprise
