#include "properties/finding.hpp"

#include <sstream>

namespace reprise::judged {

Findings::Findings(std::initializer_list<Finding> found) {
  for (const Finding& finding : found) push_back(finding);
}

Finding& Findings::push_back(Finding finding) {
  if (may_state(finding.line, finding.code)) return found_.emplace_back(std::move(finding));
  return silenced_ = std::move(finding);
}

void Findings::append(const Findings& others) {
  found_.insert(found_.end(), others.begin(), others.end());
}

Finding& Finding::with(std::string right, std::string wrong) {
  expected = std::move(right);
  found = std::move(wrong);
  return *this;
}

std::string text_with_place(const Finding& finding) {
  if (!finding.rank && finding.key.empty()) return finding.text;
  std::ostringstream text;
  text << finding.text << " [";
  if (finding.rank) text << "rank " << *finding.rank << (finding.key.empty() ? "" : ", ");
  if (!finding.key.empty()) text << "key " << finding.key;
  text << ']';
  return text.str();
}

std::ostream& operator<<(std::ostream& out, const Finding& finding) {
  return out << name_of(finding.code) << ": " << text_with_place(finding);
}

std::optional<Finding> fail(FindingCode code, std::string text, SourceLine line) {
  if (!may_state(line, code)) return std::nullopt;
  return Finding{.code = code, .text = std::move(text), .line = line};
}

std::optional<Finding> vacuous(FindingCode code, std::string text, SourceLine line) {
  auto found = fail(code, std::move(text), line);
  if (found) found->severity = Severity::kInconclusive;
  return found;
}

Finding& Finder::find(FindingCode code, const std::string& key, const std::string& text,
                      SourceLine line) {
  Finding finding = place_;
  finding.code = code;
  finding.key = key;
  finding.text += text;
  finding.line = line;
  return findings_.push_back(std::move(finding));
}

Finding& Finder::doubt(const std::string& text, SourceLine line) {
  Finding& finding = find(kOracleVacuous, text, line);
  finding.severity = Severity::kInconclusive;
  return finding;
}

std::string without_code(const std::string& text, FindingCode code) {
  const std::string lead = std::string(name_of(code)) + ": ";
  return text.starts_with(lead) ? text.substr(lead.size()) : text;
}

}  // namespace reprise::judged
