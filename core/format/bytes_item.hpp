#pragma once
// Reads and writes bytes items. A bytes item is the output of torch.save for a value that is not a
// tensor, although tensors may occur inside the value. common.pt has the same format.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/format/zip/item_source.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Size of the largest record that is interpreted. An item with a larger record is opaque.
inline constexpr std::uint64_t kBytesItemMax = std::uint64_t{1} << 31U;

struct BytesItem {
  /// The item's value. If empty, the item is opaque and must be copied byte for byte.
  std::optional<Value> value;
  std::string opaque_because;  ///< why the item is opaque, for messages; empty if there is a value
  /// Names ("module.name") in the item's pickle that are not on the closed list. They are never
  /// interpreted.
  std::vector<std::string> unlisted_names;
  std::string prefix;  ///< prefix of the archive's records; empty if the item is not an archive
  /// Records that do not match their stored checksum or have none. A writer may have configured
  /// torch not to compute checksums, so the caller decides whether this is damage.
  std::vector<std::string> checksum_mismatches;
};

/// Reads a bytes item. Returns an opaque item for the stream that torch wrote before 1.6, for
/// compressed records, and for pickles with unlisted names. Throws the same errors as Archive if an
/// archive is damaged, TORN_FILE if torch.save cannot have written the bytes, REFUSED_NAME for
/// names that are never accepted, and LIMIT if sizes or counts exceed the data present.
BytesItem read_bytes_item(ItemSource& source);
BytesItem read_bytes_item(ByteSpan bytes, const ErrorPlace& place = {});

/// Returns the whole item as torch writes it: data.pkl, the tensors' storages, version.
Bytes write_bytes_item(const Value& value, std::string_view prefix = "archive");
/// Returns the item of a value without tensors, of which `pickle` is the data.pkl.
Bytes write_bytes_item_of(ByteSpan pickle);

}  // namespace reprise
