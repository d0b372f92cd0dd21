#include "core/format/backend_info.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/format/json_document.hpp"

namespace reprise {

namespace {

constexpr std::uint64_t kInfoSizeMax = std::uint64_t{1} << 20U;
// Content of a metadata.json that Reprise writes, formatted as Python's json.dump formats it.
constexpr std::string_view kWritten =
    R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, )"
    R"("common_backend": "torch", "common_backend_version": 1})";

[[noreturn]] void wrong_type(const std::string& key, const ErrorPlace& place) {
  throw Error(Code::kTornFile, "'" + key + "' has another type than it should", place);
}

void take(const std::string& key, const nlohmann::json& value, std::string& into,
          const ErrorPlace& place) {
  if (!value.is_string()) wrong_type(key, place);
  into = value.get<std::string>();
}

void take(const std::string& key, const nlohmann::json& value, std::int64_t& into,
          const ErrorPlace& place) {
  if (!value.is_number_integer()) wrong_type(key, place);
  into = value.get<std::int64_t>();
}

void refuse_others(const BackendInfo& info, const ErrorPlace& place) {
  const auto require = [&](std::string_view what, const std::string& name, std::int64_t version,
                           std::string_view known) {
    if (name == known && version == 1) return;
    throw Error(Code::kUnsupported,
                std::string(what) + " backend '" + name + "' version " + std::to_string(version) +
                    "; only '" + std::string(known) +
                    "' version 1 is read: convert the checkpoint with Megatron-Core",
                place);
  };
  require("sharded", info.sharded_backend, info.sharded_backend_version, "torch_dist");
  require("common", info.common_backend, info.common_backend_version, "torch");
}

constexpr std::array<std::string_view, 4> kKeys = {"sharded_backend", "sharded_backend_version",
                                                   "common_backend", "common_backend_version"};

}  // namespace

BackendFile backend_file_of(ByteSpan bytes) {
  try {
    const nlohmann::json document = parse_json_object(bytes, {}, kInfoSizeMax);
    const bool known =
        std::ranges::any_of(kKeys, [&](std::string_view key) { return document.contains(key); });
    return known ? BackendFile::kMegatron : BackendFile::kOwn;
  } catch (const Error&) {
    const bool trace = as_text(bytes).find("_backend") != std::string_view::npos;
    return trace ? BackendFile::kMegatron : BackendFile::kGarbled;
  }
}

BackendInfo read_backend_info(ByteSpan bytes, const ErrorPlace& place) {
  const nlohmann::json document = parse_json_object(bytes, place, kInfoSizeMax);
  BackendInfo info;
  if (!document.contains("sharded_backend")) {
    throw Error(Code::kTornFile, "'sharded_backend' is missing", place);
  }
  for (const auto& [key, value] : document.items()) {
    if (key == "sharded_backend") {
      take(key, value, info.sharded_backend, place);
    } else if (key == "sharded_backend_version") {
      take(key, value, info.sharded_backend_version, place);
    } else if (key == "common_backend") {
      take(key, value, info.common_backend, place);
    } else if (key == "common_backend_version") {
      take(key, value, info.common_backend_version, place);
    } else {
      info.unknown_keys.push_back(key);
    }
    if (key.starts_with("common_backend")) info.names_common = true;
  }
  refuse_others(info, place);
  return info;
}

Value read_backend_value(ByteSpan bytes, const ErrorPlace& place) {
  const BackendInfo meant;
  nlohmann::json document = parse_json_object(bytes, place, kInfoSizeMax);
  document.emplace("sharded_backend_version", meant.sharded_backend_version);
  document.emplace("common_backend", meant.common_backend);
  document.emplace("common_backend_version", meant.common_backend_version);
  Dict value;
  for (const auto& [key, content] : document.items()) value.emplace_back(key, content.dump());
  return value;
}

Bytes write_backend_info() { return to_bytes(kWritten); }

}  // namespace reprise
