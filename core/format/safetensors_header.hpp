#pragma once
// Reads the header of a safetensors file.
//
//   length of the header (8, little-endian) | JSON object, may end in spaces | elements
//
//   {"__metadata__": {"format": "pt"},                     texts, may be missing
//    "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//
// Offsets count from the end of the header. The elements of all tensors, row-major and
// little-endian, fill the rest of the file: without holes, in any order. There are no checksums.
// See docs of the safetensors package, and its tensor.rs.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/state/catalog.hpp"
#include "reprise/inspect.hpp"
#include "reprise/tensor.hpp"

namespace reprise {

/// Largest header that readers of safetensors take.
inline constexpr std::uint64_t kSafetensorsHeaderMax = 100'000'000;
/// The key that is no tensor's: its texts are about the whole file.
inline constexpr std::string_view kSafetensorsMetadataKey = "__metadata__";
/// Number of bytes before the JSON object.
inline constexpr std::uint64_t kSafetensorsLengthBytes = 8;

struct SafetensorsEntry {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;
  FoldedExtents folded = {};  ///< of a tensor of more than kMaxNdim dimensions
  ByteRange range;            ///< its elements, counted from the first byte of the length
  /// How the elements lie in the range; null if they are row-major, as in every safetensors file.
  std::shared_ptr<const StoredView> view = {};
};

struct SafetensorsHeader {
  std::uint64_t data_begin = 0;           ///< where the elements begin
  std::vector<SafetensorsEntry> entries;  ///< in the order of their bytes; keys are unique
  std::map<std::string, std::string> metadata;
};

/// Returns the number of bytes of the JSON object, from the first 8 bytes of a file of `size`
/// bytes. `place` is where these begin. Throws TORN_FILE if the file is too short, and LIMIT if the
/// header would be larger than readers take.
std::uint64_t safetensors_header_bytes(ByteSpan first, std::uint64_t size, const ErrorPlace& place);

/// Parses the JSON object. `place` is where it begins. Needs memory in proportion to its length.
/// Throws TORN_FILE (not such a JSON object, a key twice, a range that ends before it begins),
/// EXTENT_MISMATCH (a range whose length does not fit dtype and shape), LIMIT (an overflow) or
/// UNSUPPORTED (dtype, key of more than kKeyBytesMax bytes). Errors about a tensor have its key,
/// and the offset behind it. Does not check that ranges lie apart and within the file.
SafetensorsHeader read_safetensors_header(ByteSpan json, const ErrorPlace& place);

/// Returns the format's name for the type; nothing if it has none.
std::optional<std::string_view> safetensors_name_of(DType dtype);

/// Lays out the elements of the entries one after the other: sets data_begin and the ranges.
/// Returns the bytes before the elements. Throws UNSUPPORTED for a type that the format does not
/// have, and LIMIT if readers would not take the header.
std::string write_safetensors_header(SafetensorsHeader& header);

/// Checks the ranges: they lie within the `size` bytes from `place` on (TORN_FILE), share no byte
/// (CHUNK_OVERLAP) and leave none out (COVERAGE_GAP). Returns one error of each kind at most, which
/// says how many more there are.
Findings check_safetensors_layout(const SafetensorsHeader& header, std::uint64_t size,
                                  const ErrorPlace& place);

}  // namespace reprise
