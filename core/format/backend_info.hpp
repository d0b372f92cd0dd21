#pragma once
// metadata.json: its presence marks a directory as a checkpoint of Megatron-Core; it names the
// formats.
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

namespace reprise {

inline constexpr std::string_view kBackendFile = "metadata.json";

struct BackendInfo {
  std::string sharded_backend = "torch_dist";
  std::int64_t sharded_backend_version = 1;
  std::string common_backend = "torch";
  std::int64_t common_backend_version = 1;
  /// Keys of no known meaning; Megatron-Core up to 0.18 refuses a file that has any.
  std::vector<std::string> unknown_keys = {};

  friend bool operator==(const BackendInfo&, const BackendInfo&) = default;
};

/// Whose metadata.json it is: the name is also that of many a user's own notes.
enum class BackendFile : std::uint8_t {
  kMegatron,  ///< has one of the four keys, or is no JSON but has a trace of them
  kGarbled,   ///< is no JSON object and has no trace of them: overwritten, or somebody's own
  kOwn,       ///< is a JSON object without any of the four keys
};
BackendFile backend_file_of(ByteSpan bytes);

/// TORN_FILE with the offset if it is no JSON object or a key has the wrong type; UNSUPPORTED for
/// other backends and versions, which it names.
BackendInfo read_backend_info(ByteSpan bytes, const ErrorPlace& place = {});

/// The four keys that every version of Megatron-Core reads.
Bytes write_backend_info();

}  // namespace reprise
