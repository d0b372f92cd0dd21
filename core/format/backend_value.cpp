#include "core/format/backend_value.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/format/backend_info.hpp"
#include "core/format/json_document.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kBackendSizeMax = std::uint64_t{1} << 20U;

}  // namespace

Value read_backend_value(ByteSpan bytes, const ErrorPlace& place) {
  const BackendInfo meant;
  nlohmann::json document = parse_json_object(bytes, place, kBackendSizeMax);
  document.emplace("sharded_backend_version", meant.sharded_backend_version);
  document.emplace("common_backend", meant.common_backend);
  document.emplace("common_backend_version", meant.common_backend_version);
  Dict value;
  for (const auto& [key, content] : document.items()) value.emplace_back(key, content.dump());
  return value;
}

}  // namespace reprise
