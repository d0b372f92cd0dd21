#include "scenarios/driver/evidence_json.hpp"

#include <sstream>

#include "core/base/hash.hpp"

namespace reprise::driver {
namespace {

using Json = nlohmann::json;

constexpr int kHexadecimal = 16;

std::uint64_t number(const std::string& digits) {
  return std::stoull(digits, nullptr, kHexadecimal);
}

Json put(const Dims& dims) { return std::vector<std::int64_t>(dims.begin(), dims.end()); }

Dims take_dims(const Json& json) {
  const auto numbers = json.get<std::vector<std::int64_t>>();
  Dims dims = Dims::filled(numbers.size(), 0);
  for (std::size_t d = 0; d < numbers.size(); ++d) dims[d] = numbers[d];
  return dims;
}

/// [key, offset, extent, replica, hashes]
Json put(const HeldItem& item) {
  std::string hashes;
  for (const auto hash : item.hashes) hashes += (hashes.empty() ? "" : " ") + hex(hash);
  return {item.key, put(item.box.offset), put(item.box.extent), item.replica, hashes};
}

HeldItem take_item(const Json& json) {
  HeldItem item{json.at(0).get<std::string>(),
                {take_dims(json.at(1)), take_dims(json.at(2))},
                json.at(3).get<std::int32_t>(),
                {}};
  std::istringstream hashes(json.at(4).get<std::string>());
  for (std::string digits; hashes >> digits;) item.hashes.push_back(number(digits));
  return item;
}

Json put(const AuditPage& page) {
  Json items = Json::array();
  for (const auto& item : page.items) items.push_back(put(item));
  Json common = Json::array();
  for (const auto& entry : page.common) common.push_back({entry.path, hex(entry.hash)});
  return {{"rank", page.rank.value}, {"step", page.step}, {"items", items}, {"common", common}};
}

AuditPage take_page(const Json& json) {
  AuditPage page{
      {json.at("rank").get<std::int32_t>()}, json.at("step").get<std::int64_t>(), {}, {}};
  for (const auto& item : json.at("items")) page.items.push_back(take_item(item));
  for (const auto& entry : json.at("common")) {
    page.common.push_back({entry.at(0).get<std::string>(), number(entry.at(1).get<std::string>())});
  }
  return page;
}

}  // namespace

Json put_all(const std::vector<AuditPage>& pages) {
  Json json = Json::array();
  for (const auto& page : pages) json.push_back(put(page));
  return json;
}

Json put_all(const std::vector<LoadEvidence>& loads) {
  Json json = Json::array();
  for (const auto& load : loads) {
    json.push_back({{"step", load.step},
                    {"requested", load.requested},
                    {"stored", load.stored},
                    {"excused", load.excused}});
  }
  return json;
}

std::vector<AuditPage> take_audits(const Json& json) {
  std::vector<AuditPage> pages;
  for (const auto& page : json) pages.push_back(take_page(page));
  return pages;
}

std::vector<LoadEvidence> take_loads(const Json& json) {
  std::vector<LoadEvidence> loads;
  for (const auto& load : json) {
    loads.push_back({load.at("step").get<std::int64_t>(), load.at("requested").get<Inventory>(),
                     load.at("stored").get<Inventory>(),
                     load.at("excused").get<std::vector<std::string>>()});
  }
  return loads;
}

}  // namespace reprise::driver
