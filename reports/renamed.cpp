#include "reports/renamed.hpp"

#include <array>
#include <cctype>
#include <string>
#include <string_view>

namespace reprise::reports {
namespace {

using Json = nlohmann::json;

struct Renamed {
  std::string_view was;
  std::string_view is;
};

constexpr std::array kCodes = {Renamed{"MISSING_KEY_ON_LOAD", "NOT_STORED"},
                               Renamed{"UNREQUESTED_KEYS", "NOT_REQUESTED"}};
constexpr std::array kFieldsOfRanks = {Renamed{"missing", "not_requested"},
                                       Renamed{"unexpected", "not_stored"}};

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_word(const std::string& text, std::size_t begin, std::size_t end) {
  return (begin == 0 || !in_word(text[begin - 1])) && (end == text.size() || !in_word(text[end]));
}

void rename_codes_in(std::string& text) {
  for (const auto& [was, is] : kCodes) {
    for (auto at = text.find(was); at != std::string::npos; at = text.find(was, at + is.size())) {
      if (is_word(text, at, at + was.size())) text.replace(at, was.size(), is);
    }
  }
}

/// Renames the codes in the given fields of an object. Skips fields that the object lacks.
void rename_codes(Json& object, std::initializer_list<const char*> fields) {
  for (const char* field : fields) {
    if (!object.is_object() || !object.contains(field)) continue;
    if (auto* text = object[field].get_ptr<std::string*>()) rename_codes_in(*text);
  }
}

void rename_fields(Json& rank) {
  for (const auto& [was, is] : kFieldsOfRanks) {
    if (!rank.is_object() || !rank.contains(was)) continue;
    rank[is] = std::move(rank[was]);
    rank.erase(std::string(was));
  }
}

/// Calls `visit` with each value in the list or object `name`, if there is one.
template <class Visit>
void each_in(Json& object, const char* name, Visit visit) {
  if (!object.is_object() || !object.contains(name)) return;
  for (auto& value : object[name]) visit(value);
}

bool is_of_version_1(const Json& document, const char* field) {
  return document.contains(field) && document[field] == 1;
}

void bring_report_up_to_date(Json& report) {
  each_in(report, "scenarios", [](Json& scenario) {
    rename_codes(scenario, {"code", "reason"});
    each_in(scenario, "ranks", rename_fields);
    each_in(scenario, "incarnations", [](Json& life) { rename_codes(life, {"code"}); });
  });
  each_in(report, "mutants", [](Json& mutant) {
    each_in(mutant, "caught_by", [](Json& by) { rename_codes(by, {"verdict", "reason"}); });
  });
}

void bring_baseline_up_to_date(Json& baseline) {
  each_in(baseline, "lanes", [](Json& lane) {
    each_in(lane, "scenarios", [](Json& scenario) { rename_codes(scenario, {"course"}); });
  });
}

}  // namespace

void bring_up_to_date(Json& document) {
  if (is_of_version_1(document, "schema_version")) {
    document["schema_version"] = 2;
    bring_report_up_to_date(document);
  } else if (is_of_version_1(document, "baseline_version")) {
    document["baseline_version"] = 2;
    bring_baseline_up_to_date(document);
  }
}

}  // namespace reprise::reports
