#pragma once
// Reads what judges state from their source, so that a statement that no test makes is found, too.

#include <string>
#include <vector>

#include "properties/finding_code.hpp"

namespace reprise::silence {

/// A place in a judge's source that states a code.
struct Statement {
  std::string file;  ///< such as "driver/judges/life_judge.cpp"
  int first = 0;     ///< its first line
  int last = 0;
  std::vector<FindingCode> codes = {};  ///< the codes that it names; none if a value has the code
};

/// A code that a source names elsewhere, such as in the value that a statement states.
struct Named {
  std::string file;
  int line = 0;
  FindingCode code = judged::kBitMismatch;
};

struct JudgeSource {
  std::vector<Statement> statements;
  std::vector<Named> named;
};

/// Reads a source, and the header beside it for the names of its helpers. A statement is a call of
/// fail(), fail_at(), vacuous(), Finder's find() or doubt(), or of a helper that takes a
/// SourceLine, or an object made with a code. What only passes on the line of another statement is
/// none.
JudgeSource read_judge(const std::string& root, const std::string& file);

/// Returns the sources, below `root`, in which judges may state codes.
std::vector<std::string> sources_of_judges(const std::string& root);

}  // namespace reprise::silence
