#pragma once
// What judges find: a code, a text, where the problem is, and how much it weighs.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "properties/finding_code.hpp"
#include "properties/finding_watch.hpp"
#include "reprise/types.hpp"

namespace reprise::judged {

enum class Severity : std::uint8_t {
  kFail,
  kInconclusive,  ///< the run does not show what it is to show
  kNote,          ///< told, but decides nothing
};

/// What is not known is empty.
struct Finding {
  FindingCode code = kBitMismatch;
  std::string key = {};  ///< of the wrong tensor, object or entry
  std::string text = {};
  std::optional<GlobalRank> rank = {};
  SourceLine line = SourceLine::here();  ///< where a judge made it
  Severity severity = Severity::kFail;
  std::optional<std::size_t> life = {};
  std::optional<std::int64_t> step = {};  ///< iteration of the job when it was found
  std::string phase = {};                 ///< start, load, train, save, end, store or command
  std::string expected = {};              ///< the right value
  std::string found = {};                 ///< the wrong one
  /// What is compared with another run of the same steps: a metric, "samples" or "end". Empty if
  /// the finding is about one run alone.
  std::string stream = {};
  /// True if both runs had neither saved nor loaded before the two began to differ. Then the cause
  /// is neither a save nor a load.
  bool untouched = false;
  /// True if elements of a tensor are not those of the save of this step.
  bool other_elements = false;
  /// True if a process was ended at its deadline. On a slow machine another try may show more.
  bool at_deadline = false;

  bool fails() const { return severity == Severity::kFail; }
  /// Sets both values.
  Finding& with(std::string right, std::string wrong);

  /// Prints "WRONG_OWNER: <text> [rank 0, key ...]".
  friend std::ostream& operator<<(std::ostream& out, const Finding& finding);
};

/// Returns the text with the place at its end: "<text> [rank 0, key ...]".
std::string text_with_place(const Finding& finding);

/// Returns the finding, or nothing if it is not to be stated. `line` is where the judge states it.
std::optional<Finding> fail(FindingCode code, std::string text,
                            SourceLine line = SourceLine::here());
/// The same, for a run that shows nothing.
std::optional<Finding> vacuous(FindingCode code, std::string text,
                               SourceLine line = SourceLine::here());

/// Removes the code from the start of a message, because the finding already contains it.
std::string without_code(const std::string& text, FindingCode code);

/// Holds what judges found. A finding comes into it only past may_state().
class Findings {
 public:
  Findings() = default;
  Findings(std::initializer_list<Finding> found);

  /// Returns the finding, for what is known only afterwards.
  Finding& push_back(Finding finding);
  /// Add what another judge found.
  void append(const Finding& other) { found_.push_back(other); }
  void append(const Findings& others);

  auto begin() { return found_.begin(); }
  auto end() { return found_.end(); }
  auto begin() const { return found_.begin(); }
  auto end() const { return found_.end(); }
  bool empty() const { return found_.empty(); }
  std::size_t size() const { return found_.size(); }
  void clear() { found_.clear(); }
  const Finding& front() const { return found_.front(); }
  const Finding& back() const { return found_.back(); }
  Finding& operator[](std::size_t i) { return found_[i]; }
  const Finding& operator[](std::size_t i) const { return found_[i]; }
  const Finding& at(std::size_t i) const { return found_.at(i); }

 private:
  std::vector<Finding> found_;
  Finding silenced_;  ///< the last one that was not to be stated
};

/// Makes findings that have a place in common. Judges derive from it.
class Finder {
 protected:
  /// Each finding is a copy of `place`, whose text begins that of the finding.
  Finder(Findings& findings, Finding place) : findings_(findings), place_(std::move(place)) {}

  Finding& find(FindingCode code, const std::string& text, SourceLine line = SourceLine::here()) {
    return find(code, place_.key, text, line);
  }
  Finding& find(FindingCode code, const std::string& key, const std::string& text,
                SourceLine line = SourceLine::here());
  /// Finds that the run does not show what it is to show.
  Finding& doubt(const std::string& text, SourceLine line = SourceLine::here());

  Findings& findings_;
  Finding place_;
};

}  // namespace reprise::judged
