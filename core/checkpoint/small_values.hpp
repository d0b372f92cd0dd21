#pragma once
// Reads the small values of a checkpoint one by one, for those who look at them and not at
// elements.

#include <optional>
#include <string>

#include "core/checkpoint/checkpoint.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Objects of more bytes are not read here.
inline constexpr std::uint64_t kSmallObjectBytes = std::uint64_t{1} << 20U;

/// Returns the object's value; nothing if it is too large, can't be read, or is opaque.
std::optional<Value> small_object(Checkpoint& checkpoint, const StoredObject& object);

/// Returns the only element of a tensor, as print_element() writes its value; nothing if the tensor
/// has more or none, or can't be read.
std::optional<std::string> only_element(Checkpoint& checkpoint, const StoredTensor& tensor);

}  // namespace reprise
