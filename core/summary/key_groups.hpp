#pragma once
// Counts what a checkpoint has by the first words of its keys.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/state/catalog.hpp"

namespace reprise {

struct KeyGroupAmount {
  std::string group;  ///< the first words, with their dots, such as "model.layers"
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< of the elements
  std::uint64_t objects = 0;
  std::uint64_t object_bytes = 0;
  std::vector<DType> dtypes;  ///< of the tensors, each once, sorted
};

/// Returns the beginning of a key, up to its `depth`th word: words end at '.' and '/'.
std::string_view first_words(std::string_view key, std::size_t depth);

/// Returns the groups of the wanted keys, in natural order.
std::vector<KeyGroupAmount> key_groups(const Catalog& catalog, std::size_t depth,
                                       const std::function<bool(std::string_view)>& wanted);

}  // namespace reprise
