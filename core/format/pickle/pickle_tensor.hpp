#pragma once
// Tensors in a pickle's graph: calls of torch._utils that rebuild them from a storage.
//
//   _rebuild_tensor     (storage, offset, size, stride)
//   _rebuild_tensor_v2  (storage, offset, size, stride, requires_grad, hooks [, metadata])
//   _rebuild_tensor_v3  (storage, offset, size, stride, requires_grad, hooks, dtype [, metadata])
//   _rebuild_parameter  (tensor, requires_grad, hooks)
//   _rebuild_from_type_v2 (function, type, arguments, state)
//   storage             persistent id ('storage', class, key, location, count of elements; of bytes
//                       for UntypedStorage, which v3 uses)

#include <string_view>

#include "core/format/pickle/pickle_machine.hpp"

namespace reprise::pickle {

/// Returns the storage class that torch pickles for a dtype; empty for newer dtypes, which use
/// UntypedStorage and name their dtype.
std::string_view storage_class_of(DType dtype);

/// Returns the name of the call, one of those above, that makes the node; nothing if the node is
/// not a tensor.
std::string_view tensor_call(const Graph& graph, NodeId node);

/// Throws like decode_tensor.
TensorDescription describe_tensor(const Graph& graph, NodeId node, const PickleSource& where);

}  // namespace reprise::pickle
