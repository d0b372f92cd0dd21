#include "reports/document.hpp"

#include <cmath>
#include <limits>

#include "core/base/json_flaw.hpp"
#include "core/base/print.hpp"

namespace reprise::reports {
namespace {

using Json = nlohmann::json;

std::string cut_off(const std::string& text) {
  return "is cut off after " + with_commas(text.size()) + " bytes";
}

std::string explain(const Json::parse_error& error, const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return "is empty";
  if (error.byte > text.size()) return cut_off(text);
  return "is not valid JSON at byte " + std::to_string(error.byte);
}

std::string kind_of(const Json& value) {
  if (value.is_number_float()) return "a number that is not an integer";
  if (value.is_number()) return "the number " + value.dump();
  if (value.is_string())
    return "the text " + value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (value.is_array()) return "a list";
  return value.is_object() ? "an object" : value.dump();
}

}  // namespace

Json parse_document(const std::string& text, const std::string& file) {
  // The parser treats a zero byte as the end of the document, so it would accept a torn file that
  // ends with zero bytes.
  if (const auto zero = text.find('\0'); zero != std::string::npos) {
    throw ReadError(file + ": is not valid JSON at byte " + std::to_string(zero + 1));
  }
  try {
    if (const auto flaw = json_flaw(text, std::numeric_limits<std::size_t>::max())) {
      throw ReadError(file + ": " + flaw->key + ": occurs twice in one object");
    }
    Json document = Json::parse(text);
    if (!document.is_object()) throw ReadError(file + ": is not a JSON object");
    return document;
  } catch (const Json::parse_error& error) {
    throw ReadError(file + ": " + explain(error, text));
  } catch (const Json::exception&) {
    throw ReadError(file + ": holds a number that is too large");
  }
}

Json number_or_word(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::string text_of(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

JsonField JsonField::at(const std::string& key) const {
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (!value_.is_object()) expected("an object");
  const auto found = value_.find(key);
  if (found == value_.end()) JsonField(value_, file_, path).refuse("is missing");
  return {*found, file_, path};
}

bool JsonField::has(const std::string& key) const {
  return value_.is_object() && value_.contains(key);
}

std::vector<JsonField> JsonField::items() const {
  if (!value_.is_array()) expected("a list");
  std::vector<JsonField> nodes;
  for (std::size_t i = 0; i < value_.size(); ++i) {
    nodes.emplace_back(value_[i], file_, path_ + "[" + std::to_string(i) + "]");
  }
  return nodes;
}

std::vector<std::pair<std::string, JsonField>> JsonField::entries() const {
  if (!value_.is_object()) expected("an object");
  std::vector<std::pair<std::string, JsonField>> nodes;
  for (const auto& [key, value] : value_.items()) {
    nodes.emplace_back(key, JsonField(value, file_, path_ + "[" + key + "]"));
  }
  return nodes;
}

std::string JsonField::text() const {
  if (!value_.is_string()) expected("a text");
  return value_.get<std::string>();
}

std::vector<std::string> JsonField::texts() const {
  std::vector<std::string> all;
  for (const auto& node : items()) all.push_back(node.text());
  return all;
}

bool JsonField::flag() const {
  if (!value_.is_boolean()) expected("true or false");
  return value_.get<bool>();
}

std::uint64_t JsonField::count() const {
  if (!value_.is_number_unsigned()) expected("a count");
  return value_.get<std::uint64_t>();
}

std::int64_t JsonField::integer() const {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value_.is_number_integer()) expected("an integer");
  if (value_.is_number_unsigned() && value_.get<std::uint64_t>() > kLargest) {
    expected("an integer below 2^63");
  }
  return value_.get<std::int64_t>();
}

std::int32_t JsonField::small_integer() const {
  const std::int64_t value = integer();
  if (value != static_cast<std::int32_t>(value)) expected("an integer of 32 bits");
  return static_cast<std::int32_t>(value);
}

double JsonField::number() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value_ == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value_ == "inf") return kInfinity;
  if (value_ == "-inf") return -kInfinity;
  if (!value_.is_number()) expected("a number, \"nan\" or \"inf\"");
  return value_.get<double>();
}

void JsonField::refuse(const std::string& what) const {
  throw ReadError(std::string(file_) + ": " + (path_.empty() ? "" : path_ + ": ") + what);
}

void JsonField::expected(std::string_view what) const {
  refuse("expected " + std::string(what) + ", found " + kind_of(value_));
}

}  // namespace reprise::reports
