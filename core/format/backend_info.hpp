#pragma once
// Reads and writes metadata.json, which marks a directory as a checkpoint of Megatron-Core and
// states its formats.
//
//   sharded_backend          "torch_dist"   required
//   sharded_backend_version  1
//   common_backend           "torch"        up to 0.18
//   common_backend_version   1              up to 0.18

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"
#include "reprise/value.hpp"

namespace reprise {

inline constexpr std::string_view kBackendFile = "metadata.json";

struct BackendInfo {
  std::string sharded_backend = "torch_dist";
  std::int64_t sharded_backend_version = 1;
  std::string common_backend = "torch";
  std::int64_t common_backend_version = 1;
  /// True if the file has a key that begins with "common_backend", as up to 0.18.
  bool names_common = false;
  /// Unknown keys. Megatron-Core up to 0.18 refuses a file with unknown keys.
  std::vector<std::string> unknown_keys = {};

  friend bool operator==(const BackendInfo&, const BackendInfo&) = default;
};

/// Says who wrote a metadata.json, judging by its content. Users often have files of their own with
/// that name.
enum class BackendFile : std::uint8_t {
  /// Megatron wrote the file: it is a JSON object with at least one of the four keys, or it is not
  /// a valid JSON object but contains "_backend", which is part of all four keys.
  kMegatron,
  /// The file is not a valid JSON object and does not contain "_backend". It may be Megatron's file
  /// overwritten with other bytes, or a user's file.
  kGarbled,
  /// A user wrote the file: it is a JSON object with none of the four keys.
  kOwn,
};
BackendFile backend_file_of(ByteSpan bytes);

/// Reads metadata.json. Throws TORN_FILE with the offset if it is not a JSON object or if a key has
/// the wrong type. Throws UNSUPPORTED if a backend or version is not one of those listed at the top
/// of this file; the message states that backend or version.
BackendInfo read_backend_info(ByteSpan bytes, const ErrorPlace& place = {});

/// Returns a dict that maps each key to its value as JSON text, so that two such files can be
/// compared. If the file lacks a key that some versions of Megatron-Core leave out, the key is
/// added with its default value. Throws TORN_FILE if the file is not a JSON object, and LIMIT if it
/// is larger than 1 MiB.
Value read_backend_value(ByteSpan bytes, const ErrorPlace& place = {});

/// Writes the four keys, which every version of Megatron-Core reads.
Bytes write_backend_info();

}  // namespace reprise
