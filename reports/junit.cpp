#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <pugixml.hpp>
#include <sstream>

#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "properties/finding_code.hpp"
#include "reports/report.hpp"

namespace reprise::reports {
namespace {

/// Sets an attribute. XML forbids control characters, even if escaped, so they are made printable.
void set(pugi::xml_node node, const char* name, const std::string& text) {
  node.append_attribute(name) = printable(text, LineBreaks::kKept).c_str();
}

/// Sets the attribute `time`. Jenkins accepts at most three digits after the point.
void set_time(pugi::xml_node node, double seconds) {
  std::array<char, 400> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size() - 1,
                                 std::isfinite(seconds) ? seconds : 0, std::chars_format::fixed, 3);
  *end.ptr = '\0';
  node.append_attribute("time") = text.data();
}

/// Number of bytes that stand in XML for the character.
std::size_t bytes_in_xml(char c) {
  switch (c) {
    case '"':
      return 6;
    case '&':
    case '\n':
      return 5;
    case '<':
    case '>':
      return 4;
    default:
      return 1;
  }
}

/// Returns the text, cut so that it has at most `most` bytes in XML. Where it is cut, a note stands
/// after it, which is not counted.
std::string cut_for_xml(const std::string& text, std::size_t most) {
  std::string whole = printable(text, LineBreaks::kKept);
  std::size_t bytes = 0;
  std::size_t kept = 0;
  while (kept < whole.size() && bytes <= most) bytes += bytes_in_xml(whole[kept++]);
  if (bytes <= most) return whole;
  // The last byte did not fit. A character of several bytes goes as a whole.
  do {
    --kept;
  } while (kept > 0 && (static_cast<unsigned char>(whole[kept]) & 0xc0U) == 0x80);
  return whole.substr(0, kept) + "... (cut; the whole text is in report.json)";
}

/// Writes results and counts them. Every result except a pass is written as a failure, as an error
/// or as skipped.
class Suite {
 public:
  /// `text_max` is the largest number of bytes of a message or text.
  Suite(pugi::xml_node node, std::size_t text_max) : node_(node), text_max_(text_max) {}

  pugi::xml_node add(const std::string& group, const std::string& name, double seconds = 0) {
    ++tests_;
    auto test = node_.append_child("testcase");
    set(test, "classname", group);
    set(test, "name", name);
    set_time(test, seconds);
    return test;
  }
  void fail(pugi::xml_node test, const std::string& code, const std::string& reason,
            const std::string& text) {
    ++failures_;
    explain(test.append_child("failure"), code.empty() ? name_of(Verdict::kFail) : code, reason,
            text);
  }
  /// Says that something kept the test from coming to a verdict.
  void error(pugi::xml_node test, const std::string& type, const std::string& reason,
             const std::string& text = {}) {
    ++errors_;
    explain(test.append_child("error"), type, reason, text);
  }
  /// An inconclusive test is an error: servers count what is skipped as if it had passed.
  void inconclusive(pugi::xml_node test, const std::string& code, const std::string& reason,
                    const std::string& text = {}) {
    const std::string verdict = name_of(Verdict::kInconclusive);
    error(test, code.empty() ? verdict : code, verdict + ": " + reason, text);
  }
  void skip(pugi::xml_node test, const std::string& reason) {
    ++skipped_;
    ++texts_;
    const std::string text = name_of(Verdict::kNotRun) + ": " + reason;
    set(test.append_child("skipped"), "message", cut_for_xml(text, text_max_));
  }
  /// Adds a text to a test that passed.
  void note(pugi::xml_node test, const std::string& text) {
    ++texts_;
    write(test.append_child("system-out"), text);
  }
  void write_counts() {
    node_.append_attribute("tests") = tests_;
    node_.append_attribute("failures") = failures_;
    node_.append_attribute("errors") = errors_;
    node_.append_attribute("skipped") = skipped_;
  }

  /// Number of messages and texts that may be cut.
  std::size_t texts() const { return texts_; }

 private:
  void explain(pugi::xml_node node, const std::string& type, const std::string& reason,
               const std::string& text) {
    texts_ += 2;
    set(node, "type", type);
    set(node, "message", cut_for_xml(reason, text_max_));
    write(node, text);
  }
  void write(pugi::xml_node node, const std::string& text) const {
    node.append_child(pugi::node_pcdata).set_value(cut_for_xml(text, text_max_).c_str());
  }

  pugi::xml_node node_;
  std::size_t text_max_;
  std::size_t texts_ = 0;
  unsigned tests_ = 0;
  unsigned failures_ = 0;
  unsigned errors_ = 0;
  unsigned skipped_ = 0;
};

/// Returns the type of the failure. A difference between stored checkpoints may have no code.
std::string type_of(const ScenarioResult& result, ReportLane lane) {
  return result.code.empty() && lane == ReportLane::kFiles ? "different" : result.code;
}

/// Returns the group of a test as servers show it, with dots, such as "reprise.placements" for the
/// scenario "placements/tp2[k=a/b]".
std::string group_of(std::string_view scenario) {
  const std::string_view path = scenario.substr(0, scenario.find('['));
  const auto end = path.rfind('/');
  std::string group = "reprise";
  if (end == std::string_view::npos) return group;
  group += "." + std::string(path.substr(0, end));
  std::replace(group.begin(), group.end(), '/', '.');
  return group;
}

void add_scenario(const ScenarioResult& result, ReportLane lane, Suite& suite) {
  const std::string group = lane == ReportLane::kFiles ? "reprise.files" : group_of(result.name);
  const auto test = suite.add(group, result.name, result.seconds);
  if (is_unreadable(result)) {
    suite.error(test, result.code, result.reason);
  } else if (result.verdict == Verdict::kFail) {
    suite.fail(test, type_of(result, lane), result.reason, to_block(result));
  } else if (result.verdict == Verdict::kInconclusive) {
    suite.inconclusive(test, result.code, result.reason, to_block(result));
  } else if (result.verdict != Verdict::kPass) {
    suite.skip(test, result.reason);
  } else if (!result.earlier_tries.empty()) {
    suite.note(test, to_block(result));
  }
}

void add_property(const PropertyResult& property, Suite& suite) {
  const auto test = suite.add("reprise.properties", property.name);
  const std::string reason =
      std::to_string(property.cases) + " cases, seed " + std::to_string(property.seed);
  if (property.verdict == Verdict::kFail) {
    suite.fail(test, "", reason, property.counterexample.value_or(""));
  } else if (property.verdict == Verdict::kInconclusive) {
    suite.inconclusive(test, "", reason);
  } else if (property.verdict != Verdict::kPass) {
    suite.skip(test, reason);
  }
}

void add_exhaustive(const Exhaustive& exhaustive, Suite& suite) {
  double seconds = 0;
  for (const auto& part : exhaustive.parts) seconds += part.seconds;
  const auto test = suite.add("reprise.exhaustive", exhaustive.space(), seconds);
  const auto flaws = flaws_of(exhaustive);
  if (flaws.empty()) return;
  if (is_wrong(exhaustive)) {
    suite.fail(test, "", flaws.front(), join(flaws, "\n"));
  } else {
    suite.inconclusive(test, "", flaws.front());
  }
}

void add_matrix(const Matrix& matrix, Suite& suite) {
  for (const auto& row : matrix.rows) {
    const auto test = suite.add("reprise.matrix", row.mutant);
    if (row.is_caught()) continue;
    if (row.is_unreached()) {
      suite.inconclusive(test, "", "not reached: no scenario called it");
    } else {
      suite.fail(test, std::string(reprise::name_of(judged::kMutantSurvived)),
                 "survived every scenario that called it", "");
    }
  }
}

void add_coverage(const Coverage& coverage, Suite& suite) {
  const auto test = suite.add("reprise.explore", "timelines");
  const auto flaws = flaws_of(coverage);
  if (flaws.empty()) return;
  if (has_findings(coverage)) {
    suite.fail(test, "", flaws.front(), join(flaws, "\n"));
  } else {
    suite.inconclusive(test, "", flaws.front());
  }
}

void add_mutants(const std::vector<MutantResult>& mutants, Suite& suite) {
  const MutantsFinding finding = judge_mutants(mutants);
  for (const auto& mutant : mutants) {
    const auto test = suite.add("reprise.mutants", mutant.name);
    if (!mutant.caught) suite.fail(test, finding.code, finding.reason, mutant.defect);
  }
}

/// Adds what turns a report red although each of its entries may be green.
void add_course(const Report& report, Suite& suite) {
  const std::uint64_t doubled = runs_doubled(report);
  if (doubled > 0) {
    const auto test = suite.add("reprise.determinism", "doubled runs");
    const std::uint64_t mismatches = determinism_mismatches(report);
    if (mismatches > 0) {
      suite.fail(test, std::string(reprise::name_of(judged::kNotDeterministic)),
                 std::to_string(mismatches) + " of " + std::to_string(doubled) +
                     " doubled runs differed the second time",
                 "");
    }
  }
  if (report.interrupted) {
    suite.error(suite.add("reprise.run", "to its end"), "interrupted", "the run was interrupted");
  }
}

/// A whole document, and the number of messages and texts in it.
struct Written {
  std::string xml;
  std::size_t texts = 0;
};

Written written(const Report& report, const std::string& report_sha256, std::size_t text_max) {
  pugi::xml_document document;
  auto node = document.append_child("testsuites").append_child("testsuite");
  set(node, "name", "reprise." + name_of(report.lane));
  set(node, "timestamp", report.started);
  set_time(node, report.seconds);
  auto digest = node.append_child("properties").append_child("property");
  digest.append_attribute("name") = "report_sha256";
  digest.append_attribute("value") = report_sha256.c_str();
  Suite suite(node, text_max);
  for (const auto& result : report.scenarios) add_scenario(result, report.lane, suite);
  for (const auto& property : report.properties) add_property(property, suite);
  add_mutants(report.mutants, suite);
  if (report.matrix) add_matrix(*report.matrix, suite);
  for (const auto& tried : report.exhaustive) add_exhaustive(tried, suite);
  if (report.coverage) add_coverage(*report.coverage, suite);
  add_course(report, suite);
  suite.write_counts();
  std::ostringstream out;
  document.save(out, "  ");
  return {out.str(), suite.texts()};
}

}  // namespace

std::string to_junit(const Report& report, const std::string& report_sha256,
                     std::size_t bytes_max) {
  Written whole = written(report, report_sha256, SIZE_MAX);
  if (whole.xml.size() <= bytes_max || whole.texts == 0) return std::move(whole.xml);
  const std::size_t bare = written(report, report_sha256, 0).xml.size();
  const std::size_t left = bytes_max - std::min(bytes_max, bare);
  return written(report, report_sha256, left / whole.texts).xml;
}

}  // namespace reprise::reports
