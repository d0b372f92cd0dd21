#include <array>
#include <charconv>
#include <cmath>
#include <pugixml.hpp>
#include <sstream>

#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "properties/ruling_code.hpp"
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

/// Writes results and counts them. Every result except a pass is written as a failure, as an error
/// or as skipped.
class Suite {
 public:
  explicit Suite(pugi::xml_node node) : node_(node) {}

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
  void error(pugi::xml_node test, const std::string& type, const std::string& reason) {
    ++errors_;
    explain(test.append_child("error"), type, reason, "");
  }
  void skip(pugi::xml_node test, Verdict verdict, const std::string& reason) {
    ++skipped_;
    set(test.append_child("skipped"), "message", name_of(verdict) + ": " + reason);
  }
  void write_counts() {
    node_.append_attribute("tests") = tests_;
    node_.append_attribute("failures") = failures_;
    node_.append_attribute("errors") = errors_;
    node_.append_attribute("skipped") = skipped_;
  }

 private:
  static void explain(pugi::xml_node node, const std::string& type, const std::string& reason,
                      const std::string& text) {
    set(node, "type", type);
    set(node, "message", reason);
    node.append_child(pugi::node_pcdata).set_value(printable(text, LineBreaks::kKept).c_str());
  }

  pugi::xml_node node_;
  unsigned tests_ = 0;
  unsigned failures_ = 0;
  unsigned errors_ = 0;
  unsigned skipped_ = 0;
};

void add_scenario(const ScenarioResult& result, Suite& suite) {
  const auto test = suite.add(result.file, result.name, result.seconds);
  if (is_unreadable(result)) {
    suite.error(test, result.code, result.reason);
  } else if (result.verdict == Verdict::kFail) {
    suite.fail(test, result.code, result.reason, result.replay);
  } else if (result.verdict != Verdict::kPass) {
    suite.skip(test, result.verdict, result.reason);
  }
}

void add_property(const PropertyResult& property, Suite& suite) {
  const auto test = suite.add("properties", property.name);
  const std::string reason =
      std::to_string(property.cases) + " cases, seed " + std::to_string(property.seed);
  if (property.verdict == Verdict::kFail) {
    suite.fail(test, "", reason, property.counterexample.value_or(""));
  } else if (property.verdict != Verdict::kPass) {
    suite.skip(test, property.verdict, reason);
  }
}

void add_exhaustive(const Exhaustive& exhaustive, Suite& suite) {
  double seconds = 0;
  for (const auto& part : exhaustive.parts) seconds += part.seconds;
  const auto test = suite.add("exhaustive", exhaustive.space(), seconds);
  const auto flaws = flaws_of(exhaustive);
  if (flaws.empty()) return;
  if (is_wrong(exhaustive)) {
    suite.fail(test, "", flaws.front(), join(flaws, "\n"));
  } else {
    suite.skip(test, Verdict::kInconclusive, flaws.front());
  }
}

void add_matrix(const Matrix& matrix, Suite& suite) {
  for (const auto& row : matrix.rows) {
    const auto test = suite.add("matrix", row.mutant);
    if (row.is_caught()) continue;
    if (row.is_unreached()) {
      suite.skip(test, Verdict::kInconclusive, "not reached: no scenario called it");
    } else {
      suite.fail(test, std::string(reprise::name_of(judged::kMutantSurvived)),
                 "survived every scenario that called it", "");
    }
  }
}

void add_coverage(const Coverage& coverage, Suite& suite) {
  const auto test = suite.add("explore", "timelines");
  const auto flaws = flaws_of(coverage);
  if (flaws.empty()) return;
  if (has_findings(coverage)) {
    suite.fail(test, "", flaws.front(), join(flaws, "\n"));
  } else {
    suite.skip(test, Verdict::kInconclusive, flaws.front());
  }
}

void add_mutants(const std::vector<MutantResult>& mutants, Suite& suite) {
  const MutantsFinding finding = judge_mutants(mutants);
  for (const auto& mutant : mutants) {
    const auto test = suite.add("mutants", mutant.name);
    if (!mutant.caught) suite.fail(test, finding.code, finding.reason, mutant.defect);
  }
}

/// Adds what turns a report red although each of its entries may be green.
void add_course(const Report& report, Suite& suite) {
  if (report.runs_doubled > 0 || report.determinism_mismatches > 0) {
    const auto test = suite.add("determinism", "doubled runs");
    const std::string reason = std::to_string(report.determinism_mismatches) + " of " +
                               std::to_string(report.runs_doubled) +
                               " doubled runs took another course";
    if (report.determinism_mismatches > 0) {
      suite.fail(test, std::string(reprise::name_of(judged::kNotDeterministic)), reason, "");
    }
  }
  if (report.interrupted) {
    suite.error(suite.add("run", "to its end"), "interrupted", "the run was interrupted");
  }
}

}  // namespace

std::string to_junit(const Report& report, const std::string& report_sha256) {
  pugi::xml_document document;
  auto node = document.append_child("testsuites").append_child("testsuite");
  set(node, "name", "reprise." + name_of(report.lane));
  set(node, "timestamp", report.started);
  set_time(node, report.seconds);
  auto digest = node.append_child("properties").append_child("property");
  digest.append_attribute("name") = "report_sha256";
  digest.append_attribute("value") = report_sha256.c_str();
  Suite suite(node);
  for (const auto& result : report.scenarios) add_scenario(result, suite);
  for (const auto& property : report.properties) add_property(property, suite);
  add_mutants(report.mutants, suite);
  if (report.matrix) add_matrix(*report.matrix, suite);
  for (const auto& tried : report.exhaustive) add_exhaustive(tried, suite);
  if (report.coverage) add_coverage(*report.coverage, suite);
  add_course(report, suite);
  suite.write_counts();
  std::ostringstream out;
  document.save(out, "  ");
  return out.str();
}

}  // namespace reprise::reports
