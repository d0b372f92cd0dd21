#include "tests/reports/gate/tampers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/gate/gate.hpp"
#include "reports/read_error.hpp"

namespace reprise::reports::test {
namespace {

using Json = nlohmann::json;

struct Change {
  std::string name;
  Json value;
};

std::vector<Change> changes_of_list(const Json& list) {
  if (list.empty()) return {};
  Json less = list;
  less.erase(less.size() - 1);
  Json more = list;
  more.push_back(list.back());
  Json tail = list;
  tail.erase(0);
  return {{"none", Json::array()},
          {"without the last", less},
          {"without the first", tail},
          {"the last twice", more}};
}

/// The words of closed sets in a report; the reader refuses those of another set.
constexpr std::array kWords = {"pass",      "fail",    "inconclusive", "not_run",   "ran",
                               "continued", "refused", "fell_back",    "cut_short", "failed",
                               "kept",      "pruned",  "replaced",     "damaged",   "unfinished",
                               "mpi",       "program", "ongoing",      "resolved"};

std::vector<Change> changes_of_text(const std::string& text) {
  std::vector<Change> changes = {{"no text", ""}, {"another text", text + "x"}};
  for (const char* word : kWords) {
    if (std::ranges::find(kWords, text) != kWords.end()) changes.push_back({word, word});
  }
  return changes;
}

/// Takes away each member. Of objects whose keys are names, that is an item less.
std::vector<Change> changes_of_object(const Json& object) {
  std::vector<Change> changes;
  for (const auto& [key, value] : object.items()) {
    Json less = object;
    less.erase(key);
    changes.push_back({"without " + key, std::move(less)});
    if (!value.is_object() || key == "uninterrupted" || key == "failure") {
      Json empty = object;
      empty[key] = nullptr;
      changes.push_back({"null as " + key, std::move(empty)});
    }
  }
  return changes;
}

std::vector<Change> changes_of(const Json& value) {
  if (value.is_boolean()) return {{"the other flag", !value.get<bool>()}};
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return {{"more", number + 1}, {"less", number - 1}, {"vast", 1e300}, {"nan", "nan"}};
  }
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return {{"more", number + 1},
            {"less", number == 0 ? Json(-1) : Json(number - 1)},
            {"-1", -1},
            {"zero", 0},
            {"vast", std::numeric_limits<std::int32_t>::max()}};
  }
  if (value.is_number()) return {{"more", value.get<std::int64_t>() + 1}, {"-1", -1}, {"vast", 77}};
  if (value.is_string()) return changes_of_text(value.get<std::string>());
  if (value.is_array()) return changes_of_list(value);
  if (value.is_object()) return changes_of_object(value);
  return {};
}

class Tampering {
 public:
  Tampering(const std::string& text, const Floors& baseline, const std::string& commit)
      : document_(Json::parse(text)),
        text_(text),
        baseline_(baseline),
        options_{.commit = commit} {}

  AcceptedTampers all() {
    EXPECT_EQ(refusal_of(document_), "") << "nothing was changed";
    change(document_, "");
    return std::move(accepted_);
  }

 private:
  // NOLINTNEXTLINE(misc-no-recursion): a document is a tree
  void change(Json& value, const std::string& path) {
    const Json before = value;
    for (const auto& tried : changes_of(before)) {
      value = tried.value;
      if (refusal_of(document_).empty() && changes_anything()) accepted_[path].insert(tried.name);
    }
    value = before;
    if (value.is_array()) {
      for (auto& item : value) change(item, path + "[]");
    } else if (value.is_object()) {
      for (auto& [key, member] : value.items())
        change(member, path.empty() ? key : path + "." + key);
    }
  }

  bool changes_anything() const { return to_json(parse_report(document_.dump(), "r")) != text_; }

  /// Returns the first reason to refuse the report; empty if it is accepted.
  std::string refusal_of(const Json& document) const {
    try {
      const std::vector<Submission> one = {
          {.file = "r.json", .report = parse_report(document.dump(), "r.json")}};
      const Demand demand{.generated = true, .lanes = baseline_};
      const auto ruling = judge_gate(one, {&demand, 1}, options_);
      return ruling.accepted() ? "" : ruling.refusals[0].subject + ": " + ruling.refusals[0].reason;
    } catch (const ReadError& error) {
      return error.what();
    }
  }

  Json document_;
  std::string text_;
  const Floors& baseline_;
  GateOptions options_;
  AcceptedTampers accepted_ = {};
};

}  // namespace

AcceptedTampers accepted_tampers(const std::string& report, const Floors& baseline,
                                 const std::string& commit) {
  return Tampering(report, baseline, commit).all();
}

}  // namespace reprise::reports::test
