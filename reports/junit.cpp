#include <pugixml.hpp>
#include <sstream>

#include "reports/report.hpp"

namespace reprise::reports {

std::string to_junit(const Report& report, const std::string& report_sha256) {
  pugi::xml_document document;
  auto suite = document.append_child("testsuites").append_child("testsuite");
  suite.append_attribute("name") = ("reprise." + report.lane).c_str();
  suite.append_attribute("timestamp") = report.started.c_str();
  suite.append_attribute("time") = report.seconds;
  auto digest = suite.append_child("properties").append_child("property");
  digest.append_attribute("name") = "report_sha256";
  digest.append_attribute("value") = report_sha256.c_str();
  int failures = 0;
  int skipped = 0;
  for (const auto& result : report.scenarios) {
    auto test = suite.append_child("testcase");
    test.append_attribute("classname") = result.file.c_str();
    test.append_attribute("name") = result.name.c_str();
    test.append_attribute("time") = result.seconds;
    if (result.verdict == Verdict::kFail) {
      ++failures;
      auto failure = test.append_child("failure");
      failure.append_attribute("type") = result.code.c_str();
      failure.append_attribute("message") = result.reason.c_str();
      failure.append_child(pugi::node_pcdata).set_value(result.replay.c_str());
    } else if (result.verdict != Verdict::kPass) {
      ++skipped;
      auto skip = test.append_child("skipped");
      skip.append_attribute("message") = (name_of(result.verdict) + ": " + result.reason).c_str();
    }
  }
  suite.append_attribute("tests") = static_cast<unsigned>(report.scenarios.size());
  suite.append_attribute("failures") = failures;
  suite.append_attribute("skipped") = skipped;
  std::ostringstream out;
  document.save(out, "  ");
  return out.str();
}

}  // namespace reprise::reports
