#include "core/format/json_document.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace reprise {

namespace {

constexpr int kDepthMax = 16;

using Json = nlohmann::json;

// Called by the parser at each key, begin and end.
class Watch {
 public:
  explicit Watch(const ErrorPlace& place) : place_(place) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kDepthMax) {
      throw Error(Code::kLimit, "JSON nested deeper than " + std::to_string(kDepthMax), place_);
    }
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto name = parsed.get<std::string>();
      if (!keys_.back().insert(name).second) {
        throw Error(Code::kTornFile, "the JSON key '" + name + "' occurs twice", place_);
      }
    }
    return true;
  }

 private:
  const ErrorPlace& place_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

Json parse_json_object(ByteSpan bytes, const ErrorPlace& place, std::uint64_t size_max) {
  if (bytes.size() > size_max) {
    throw Error(Code::kLimit, "more than " + std::to_string(size_max) + " bytes of JSON", place);
  }
  Json document;
  try {
    Watch watch(place);
    document = Json::parse(as_text(bytes), std::ref(watch));
  } catch (const Json::parse_error& error) {
    ErrorPlace at = place;
    at.offset = place.offset.value_or(0) + (error.byte > 0 ? error.byte - 1 : 0);
    throw Error(Code::kTornFile, "this is no JSON document", at);
  } catch (const Json::out_of_range& error) {  // a number that no double holds
    throw Error(Code::kTornFile, "this is no JSON document: " + std::string(error.what()), place);
  }
  if (!document.is_object()) {
    throw Error(Code::kTornFile, "a JSON object is expected here", place);
  }
  return document;
}

}  // namespace reprise
