#pragma once
// Prints the result of `diff` for people: first how many things differ in which way, then the
// things themselves, as many as fit.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/console.hpp"
#include "core/diff/diff_summary.hpp"
#include "core/diff/word_hint.hpp"

namespace reprise::cli {

/// Says which parts of the result are shown.
struct DiffShown {
  std::uint64_t limit = 40;  ///< how many rows; 0 shows all
  bool groups = false;       ///< groups of keys instead of keys
  bool quiet = false;        ///< no notes, and no remarks about objects that are the same
  bool by_change = false;    ///< what changed most comes first, instead of the order of keys
  LayoutBound layout_bound = LayoutBound::kDecides;
};

/// Returns the dtype and the shape of a tensor on one side, such as "bfloat16 [4, 8]"; "-" if the
/// side lacks it.
std::string form_of(const std::optional<TensorDiff::Side>& side);

/// Returns the substitution, as for `--rename`, that gives the left side's keys the names of the
/// right side's.
std::string substitution_for(const PrefixHint& hint);
/// Returns the substitution, as for `--rename`, that does what the rule says.
std::string substitution_for(const KeyRule& rule);

/// Says how keys of one side become those of the other.
struct RenameHint {
  bool of_left = true;                     ///< true if the substitutions are for the keys of A
  std::vector<std::string> substitutions;  ///< as for `--rename`, in their order
  std::string sentence;                    ///< for people, with the options to give
};
/// Returns the hint if one side's keys are the other's with a prefix, or but for a word within
/// them; otherwise nothing.
std::optional<RenameHint> rename_hint(const DiffReport& report);

/// Prints the counts by kind of difference, the rows or groups, notes, a hint if one side's keys
/// are the other's with a prefix, and the verdict in the last line. Tensors that can't be read are
/// one line for each file and cause. Damage is not printed, only mentioned in the verdict.
void print_diff(const DiffReport& report, const DiffShown& shown, const Console& console);

}  // namespace reprise::cli
