#include "core/checkpoint/finding.hpp"

#include <algorithm>

#include "core/base/print.hpp"
#include "core/base/printable.hpp"

namespace reprise {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  return "error";
}

std::ostream& operator<<(std::ostream& out, const Finding& finding) {
  out << name_of(finding.severity) << ' ' << name_of(finding.code) << ": "
      << printable(finding.message);
  std::vector<std::string> place;
  if (!finding.key.empty()) place.push_back("key " + printable(finding.key));
  if (!finding.file.empty()) place.push_back("file " + printable(finding.file));
  if (finding.offset) place.push_back("offset " + std::to_string(*finding.offset));
  if (!place.empty()) out << " [" << join(place, ", ") << ']';
  return out;
}

Finding finding_from(const Error& error, Severity severity) {
  const ErrorPlace& place = error.place();
  return {severity, error.code(), error.message(), place.key, place.file, place.offset};
}

std::size_t count_of(const Findings& findings, Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [severity](const Finding& finding) { return finding.severity == severity; }));
}

}  // namespace reprise
