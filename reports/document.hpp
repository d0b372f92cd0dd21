#pragma once
// A JSON document that is read strictly: every complaint names file and field. For the readers of
// this folder.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/read_error.hpp"

namespace reprise::reports {

/// Of report.json: raised when a field changes its meaning or goes.
inline constexpr std::int64_t kSchemaVersion = 2;

/// A value together with where it stands. The document must outlive it.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string_view file, std::string path)
      : value_(value), file_(file), path_(std::move(path)) {}

  /// A field that must be there.
  JsonField at(const std::string& key) const;
  bool has(const std::string& key) const;
  std::vector<JsonField> items() const;
  /// Of an object: names in order, with their values.
  std::vector<std::pair<std::string, JsonField>> entries() const;

  std::string text() const;
  std::vector<std::string> texts() const;
  bool flag() const;
  std::uint64_t count() const;  ///< an integer from 0 to 2^64 - 1
  std::int64_t integer() const;
  std::int32_t small_integer() const;
  /// A number, "nan", "inf" or "-inf".
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

/// ReadError if the text is empty, cut off, no JSON, no object, or names a
/// field twice.
nlohmann::json parse_document(const std::string& text, const std::string& file);

/// A number as the documents hold it: what is none is a word, "nan", "inf" or "-inf".
nlohmann::json number_or_word(double value);

/// The text of a document: keys sorted, two spaces, a newline at the end; what is no UTF-8 is
/// replaced.
std::string text_of(const nlohmann::json& document);

}  // namespace reprise::reports
