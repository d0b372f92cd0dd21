#pragma once
// Reads tensors in a pickle's graph. A tensor is pickled as a call of one of these functions of
// torch._utils, which rebuild it from a storage:
//
//   _rebuild_tensor     (storage, offset, size, stride)
//   _rebuild_tensor_v2  (storage, offset, size, stride, requires_grad, hooks [, metadata])
//   _rebuild_tensor_v3  (storage, offset, size, stride, requires_grad, hooks, dtype [, metadata])
//   _rebuild_parameter  (tensor, requires_grad, hooks)
//   _rebuild_from_type_v2 (function, type, arguments, state)
//   storage             persistent id ('storage', class, key, location, count). The count is in
//                       elements; for UntypedStorage, which v3 uses, it is in bytes.

#include <string_view>

#include "core/format/pickle/pickle_machine.hpp"

namespace reprise::pickle {

/// Returns the storage class that torch pickles for a dtype. Empty for newer dtypes, whose pickles
/// contain UntypedStorage and the dtype.
std::string_view storage_class_of(DType dtype);

/// Returns the name of the torch._utils function that makes the node, such as "_rebuild_tensor_v2";
/// empty if the node is not a tensor.
std::string_view tensor_call(const Graph& graph, NodeId node);

/// Describes the tensor of a node. Throws the same errors as decode_tensor.
TensorDescription describe_tensor(const Graph& graph, NodeId node, const PickleSource& where);

}  // namespace reprise::pickle
