#include "cli/output/value_json.hpp"

#include <bit>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/hash.hpp"
#include "core/base/sha256.hpp"

namespace reprise::cli {
namespace {

using Json = nlohmann::json;

std::string hex_of(const Bytes& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    const auto number = std::to_integer<unsigned>(byte);
    text += kDigits[number >> 4U];
    text += kDigits[number & 15U];
  }
  return text;
}

Json list_of(const List& items) {
  Json list = Json::array();
  for (const Value& item : items) list.push_back(value_json(item));
  return list;
}

Json pairs_of(const Dict& entries) {
  Json list = Json::array();
  for (const auto& [key, value] : entries) {
    list.push_back(Json::array({value_json(key), value_json(value)}));
  }
  return list;
}

struct Writer {
  Json operator()(NoneType /*none*/) const { return nullptr; }
  Json operator()(bool value) const { return value; }
  Json operator()(std::int64_t value) const { return value; }
  Json operator()(const BigInt& value) const { return {{"int", hex_of(value.digits)}}; }
  Json operator()(double value) const {
    return {{"float", hex(std::bit_cast<std::uint64_t>(value))}};
  }
  Json operator()(const std::string& value) const { return value; }
  Json operator()(const Bytes& value) const { return {{"bytes", hex_of(value)}}; }
  Json operator()(const List& value) const { return list_of(value); }
  Json operator()(const Tuple& value) const { return {{"tuple", list_of(value.items)}}; }
  Json operator()(const Set& value) const {
    return {{value.frozen ? "frozenset" : "set", list_of(value.items)}};
  }
  Json operator()(const Dict& value) const { return {{"dict", pairs_of(value)}}; }
  Json operator()(const Name& value) const { return {{"name", value.module + "." + value.name}}; }
  Json operator()(const TensorValue& value) const {
    Json shape = Json::array();
    for (const auto extent : value.shape) shape.push_back(extent);
    Json tensor = {
        {"dtype", name_of(value.dtype)}, {"shape", shape}, {"sha256", hex(sha256_of(value.data))}};
    if (value.requires_grad) tensor["requires_grad"] = true;
    return {{"tensor", tensor}};
  }
  Json operator()(const Object& value) const {
    return {{"object",
             {{"type", value.type.module + "." + value.type.name},
              {"new", value.how == Object::How::kNew},
              {"args", list_of(value.args)},
              {"state", list_of(value.state)},
              {"items", list_of(value.list_items)},
              {"entries", pairs_of(value.dict_items)}}}};
  }
};

}  // namespace

Json value_json(const Value& value) { return std::visit(Writer{}, value.variant()); }

}  // namespace reprise::cli
