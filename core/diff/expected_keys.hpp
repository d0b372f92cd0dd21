#pragma once
// Compares the names, shapes and types of a checkpoint with those that a program will ask for. No
// elements are read. The program writes its list beforehand, from a model on torch's meta device:
//
//   {"layers.0.weight": {"shape": [4, 6], "dtype": "float32"},
//    "layers.0._extra_state": {}}                                an object: no shape, no dtype

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/diff/diff.hpp"

namespace reprise {

/// Most bytes of a list.
inline constexpr std::uint64_t kExpectedBytesMax = std::uint64_t{256} << 20U;

struct ExpectedKey {
  std::string key;
  std::optional<TensorDiff::Side> tensor;  ///< empty for an object
};

/// Reads a list. Throws TORN_FILE if it is no JSON object, USAGE for an entry of another form, and
/// LIMIT for more than kExpectedBytesMax. The result is sorted by key.
std::vector<ExpectedKey> read_expected_keys(ByteSpan json, const ErrorPlace& place);

enum class Types : std::uint8_t { kMustBeEqual, kMayDiffer };

/// Returns a report whose left side is the checkpoint and whose right side is the list: kOnlyLeft
/// is unexpected, kOnlyRight is missing, kShape and kDtype differ, and kSame matches. `wanted` is
/// asked for each key. What is an object on one side and a tensor on the other has a row of each.
/// The shards of an object are one.
DiffReport match_keys(const Catalog& catalog, const std::vector<ExpectedKey>& expected, Types types,
                      const std::function<bool(std::string_view)>& wanted);

}  // namespace reprise
