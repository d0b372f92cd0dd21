#include "core/format/json_document.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/json_flaw.hpp"

namespace reprise {

namespace {

constexpr std::size_t kDepthMax = 16;

using Json = nlohmann::json;

void refuse(const JsonFlaw& flaw, const ErrorPlace& place) {
  if (flaw.kind == JsonFlaw::Kind::kRepeatedKey) {
    throw Error(Code::kTornFile, "the JSON key '" + flaw.key + "' occurs twice", place);
  }
  throw Error(Code::kLimit, "JSON nested deeper than " + std::to_string(kDepthMax), place);
}

}  // namespace

Json parse_json_object(ByteSpan bytes, const ErrorPlace& place, std::uint64_t size_max) {
  if (bytes.size() > size_max) {
    throw Error(Code::kLimit, "more than " + std::to_string(size_max) + " bytes of JSON", place);
  }
  // The parser takes a NUL for the end.
  if (const auto nul = as_text(bytes).find('\0'); nul != std::string_view::npos) {
    ErrorPlace at = place;
    at.offset = place.offset.value_or(0) + nul;
    throw Error(Code::kTornFile, "this is not a JSON document: it has a NUL", at);
  }
  if (const auto flaw = json_flaw(as_text(bytes), kDepthMax)) refuse(*flaw, place);
  Json document;
  try {
    document = Json::parse(as_text(bytes));
  } catch (const Json::parse_error& error) {
    ErrorPlace at = place;
    at.offset = place.offset.value_or(0) + (error.byte > 0 ? error.byte - 1 : 0);
    throw Error(Code::kTornFile, "this is not a JSON document", at);
  } catch (const Json::out_of_range& error) {  // a number is too large for a double
    throw Error(Code::kTornFile, "this is not a JSON document: " + std::string(error.what()),
                place);
  }
  if (!document.is_object()) {
    throw Error(Code::kTornFile, "a JSON object is expected here", place);
  }
  return document;
}

}  // namespace reprise
