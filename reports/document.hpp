#pragma once
// Reads a JSON document strictly. Every error states the file and the field. Used by the readers in
// this folder.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/read_error.hpp"

namespace reprise::reports {

/// Version of report.json. It is incremented when a field is removed or its meaning changes.
inline constexpr std::int64_t kSchemaVersion = 2;

/// A value in a document, and the path to this value. The document must outlive this object.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string_view file, std::string path)
      : value_(value), file_(file), path_(std::move(path)) {}

  /// Returns the field of that name. Throws a ReadError if it is missing.
  JsonField at(const std::string& key) const;
  bool has(const std::string& key) const;
  std::vector<JsonField> items() const;
  /// Returns the members of an object with their names, in order.
  std::vector<std::pair<std::string, JsonField>> entries() const;

  std::string text() const;
  std::vector<std::string> texts() const;
  bool flag() const;
  std::uint64_t count() const;  ///< returns an integer from 0 to 2^64 - 1
  std::int64_t integer() const;
  std::int32_t small_integer() const;
  /// Returns a number, which may be written as "nan", "inf" or "-inf".
  double number() const;
  bool is_null() const { return value_.is_null(); }

  /// Throws a ReadError about this field.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  [[noreturn]] void expected(std::string_view what) const;

  const nlohmann::json& value_;
  std::string_view file_;
  std::string path_;  ///< such as "scenarios[3].name"; empty for the whole document
};

/// Parses the text. Throws ReadError if it is empty, truncated, not JSON or not an object, or if an
/// object in it has two fields with the same name.
nlohmann::json parse_document(const std::string& text, const std::string& file);

/// Returns a finite number unchanged, and any other as the word "nan", "inf" or "-inf".
nlohmann::json number_or_word(double value);

/// Returns a document as text, with sorted keys, indented by two spaces, with a newline at the end.
/// Invalid UTF-8 is replaced.
std::string text_of(const nlohmann::json& document);

}  // namespace reprise::reports
