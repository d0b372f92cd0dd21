#pragma once
// Values and tensors as torch.save pickles them: protocol 2, with only the opcodes that torch's
// weights_only unpickler takes.

#include <vector>

#include "core/base/bytes.hpp"
#include "core/geometry/dtype.hpp"
#include "reprise/tensor.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// The `data.pkl` of a bytes item or common.pt. The payload of the i-th TensorValue met (depth
/// first, in written order) is appended to `storages` and belongs into the record `data/<i>`; the
/// spans point into `value`. `storages` may be null if the value holds no tensor.
Bytes encode_value(const Value& value, std::vector<ByteSpan>* storages);

/// The `data.pkl` of a tensor item, exactly as torch writes it for a contiguous CPU tensor whose
/// storage, `data/0`, holds just its elements. Its length depends on dtype and shape alone.
Bytes encode_tensor_pickle(DType dtype, const Dims& shape);

}  // namespace reprise
