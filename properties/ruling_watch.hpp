#pragma once
// The one place through which judges state what they find. A test can listen there, and silence a
// code of one judge, to see that its case is found by that judge alone.

#include <compare>
#include <optional>
#include <set>
#include <string>

#include "properties/ruling_code.hpp"

namespace reprise {

/// A code, and the judge that stated it: the name of its source file, such as "life_judge".
struct StatedCode {
  std::string judge;
  RulingCode code = judged::kBitMismatch;

  friend auto operator<=>(const StatedCode&, const StatedCode&) = default;
};

/// Listens to the judges of this thread for as long as it lives. Only tests make one, and only one
/// at a time.
class RulingWatch {
 public:
  /// `silenced` is not stated.
  explicit RulingWatch(std::optional<StatedCode> silenced = {});
  ~RulingWatch();
  RulingWatch(const RulingWatch&) = delete;
  RulingWatch& operator=(const RulingWatch&) = delete;

  /// Returns what was stated, or was to be.
  const std::set<StatedCode>& heard() const { return heard_; }

 private:
  friend bool may_state(const char* file, RulingCode code);

  std::optional<StatedCode> silenced_;
  std::set<StatedCode> heard_;
};

/// Called by each judge before it states a code; `file` is the judge's source file. True unless a
/// test has silenced that.
bool may_state(const char* file, RulingCode code);

}  // namespace reprise
