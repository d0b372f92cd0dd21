#pragma once
// A bytes item: torch.save of a value that is no tensor (tensors may occur inside it). Also the
// format of common.pt.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/format/item_source.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Most bytes of a record that are interpreted; an item with a larger one is opaque.
inline constexpr std::uint64_t kBytesItemMax = std::uint64_t{1} << 31U;

struct BytesItem {
  /// Empty: the item is opaque, to be copied byte for byte.
  std::optional<Value> value;
  std::string opaque_because;  ///< for people; empty if there is a value
  /// "module.name" of names outside the closed list, never interpreted.
  std::vector<std::string> unlisted_names;
  std::string prefix;  ///< of the archive; empty if it is none
  /// Records whose content differs from its stored checksum, or that have none stored (torch may be
  /// told not to compute them): for the caller to judge.
  std::vector<std::string> checksum_mismatches;
};

/// Opaque: torch's stream before 1.6, compressed records, and pickles with unlisted names. Throws
/// as Archive does if an archive is damaged, TORN_FILE for bytes that torch.save can't have
/// written, REFUSED_NAME for names that are never accepted, LIMIT if sizes or counts are beyond
/// what is there.
BytesItem read_bytes_item(ItemSource& source);
BytesItem read_bytes_item(ByteSpan bytes, const ErrorPlace& place = {});

/// The whole item: data.pkl, the storages of tensors, version, as torch writes them.
Bytes write_bytes_item(const Value& value, std::string_view prefix = "archive");

}  // namespace reprise
