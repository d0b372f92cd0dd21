#pragma once
// A bytes item: torch.save of a value other than a tensor (tensors may occur inside it). common.pt
// has the same format.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/format/zip/item_source.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Largest record that is interpreted; an item with a larger one is opaque.
inline constexpr std::uint64_t kBytesItemMax = std::uint64_t{1} << 31U;

struct BytesItem {
  /// Empty: the item is opaque and must be copied byte for byte.
  std::optional<Value> value;
  std::string opaque_because;  ///< reason for people; empty if there is a value
  /// Names ("module.name") outside the closed list; never interpreted.
  std::vector<std::string> unlisted_names;
  std::string prefix;  ///< prefix of the archive; empty if it is not an archive
  /// Records that do not match their stored checksum or have none (torch can be told not to compute
  /// them); the caller judges.
  std::vector<std::string> checksum_mismatches;
};

/// Returns an opaque item for torch's stream before 1.6, compressed records, and pickles with
/// unlisted names. Throws like Archive if an archive is damaged, TORN_FILE for bytes that
/// torch.save cannot have written, REFUSED_NAME for names that are never accepted, LIMIT if sizes
/// or counts exceed the data present.
BytesItem read_bytes_item(ItemSource& source);
BytesItem read_bytes_item(ByteSpan bytes, const ErrorPlace& place = {});

/// Returns the whole item as torch writes it: data.pkl, tensor storages, version.
Bytes write_bytes_item(const Value& value, std::string_view prefix = "archive");

}  // namespace reprise
