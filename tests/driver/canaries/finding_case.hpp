#pragma once
// Small cases, each with the code that a judge states in it.

#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "properties/finding.hpp"

namespace reprise::driver::test {

using Codes = std::set<std::string>;
inline Codes codes_of(const judged::Findings& findings) {
  Codes codes;
  for (const judged::Finding& finding : findings) codes.emplace(name_of(finding.code));
  return codes;
}

struct FindingCase {
  std::string_view judge;  ///< source file of the judge, without its ending
  FindingCode code;
  std::function<Codes()> codes;  ///< runs the case, and returns the codes of all that was found

  friend std::ostream& operator<<(std::ostream& out, const FindingCase& one) {
    return out << one.judge << ' ' << name_of(one.code);
  }
};

/// Cases that call the judges of `properties` with states that are wrong in one way.
std::vector<FindingCase> cases_of_states();
/// Cases that change the record of a life, or the store after it.
std::vector<FindingCase> cases_of_lives();
/// Cases of the catalogue, each with a historical defect.
std::vector<FindingCase> cases_of_mutants();

}  // namespace reprise::driver::test
