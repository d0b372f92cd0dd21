#pragma once
// Reads a JSON document strictly: every error names file and field. Used by the readers of this
// folder.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/read_error.hpp"

namespace reprise::reports {

/// Version of report.json: raised when a field changes its meaning or is removed.
inline constexpr std::int64_t kSchemaVersion = 2;

/// A value and its path in the document. The document must outlive it.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string_view file, std::string path)
      : value_(value), file_(file), path_(std::move(path)) {}

  /// Returns a required field.
  JsonField at(const std::string& key) const;
  bool has(const std::string& key) const;
  std::vector<JsonField> items() const;
  /// Returns the members of an object in order, with their names.
  std::vector<std::pair<std::string, JsonField>> entries() const;

  std::string text() const;
  std::vector<std::string> texts() const;
  bool flag() const;
  std::uint64_t count() const;  ///< an integer from 0 to 2^64 - 1
  std::int64_t integer() const;
  std::int32_t small_integer() const;
  /// Reads a number, "nan", "inf" or "-inf".
  double number() const;
  bool is_null() const { return value_.is_null(); }

  /// Throws a ReadError about this field.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  [[noreturn]] void expected(std::string_view what) const;

  const nlohmann::json& value_;
  std::string_view file_;
  std::string path_;  ///< "scenarios[3].name"; empty for the whole document
};

/// Parses the text. ReadError if it is empty, cut off, not JSON, not an object, or names a field
/// twice.
nlohmann::json parse_document(const std::string& text, const std::string& file);

/// Returns a finite number as it is, and others as the word "nan", "inf" or "-inf".
nlohmann::json number_or_word(double value);

/// Returns the text of a document: sorted keys, two spaces, a newline at the end. Replaces invalid
/// UTF-8.
std::string text_of(const nlohmann::json& document);

}  // namespace reprise::reports
