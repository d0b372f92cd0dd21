#pragma once
// Shows what each rank of a layout holds and reads of a stored checkpoint.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/layout_argument.hpp"
#include "cli/output/console.hpp"
#include "cli/plan/plan_outcome.hpp"
#include "core/plan/layout_reads.hpp"

namespace reprise::cli {

/// Says what the user asks to see.
struct LayoutView {
  bool memory = false;
  bool files = false;
  std::optional<std::int64_t> rank;  ///< this rank alone
  std::uint64_t host_memory = 0;     ///< bytes, in which readers are to fit; 0 if not asked
};

class LayoutLoad {
 public:
  /// Throws USAGE if the layout has no rank of that number, and the errors of
  /// layout_of_checkpoint() and layout_reads(). `checkpoint` must outlive the object.
  LayoutLoad(Checkpoint& checkpoint, const std::string& layout, const LayoutView& view);

  /// Returns the bytes that each rank holds, and the number of reads of all ranks.
  PlanOutcome outcome() const;
  double amplification() const;
  std::vector<std::string> notes() const;
  /// True if tensors were left out, since no rank of this layout can load them.
  bool left_out() const { return layout_.has_unfit(); }

  void print(const Console& console) const;
  void add_to(nlohmann::json& document) const;

 private:
  bool wants(const RanksAtPlace& at) const;
  std::uint64_t most_peak() const;
  void print_memory(const Console& console) const;
  void print_files(const Console& console) const;

  const Catalog& catalog_;
  LayoutView view_;
  LayoutOfCheckpoint layout_;
  std::vector<PlaceReads> reads_;  ///< by place
  double seconds_ = 0;             ///< time that planning took
};

}  // namespace reprise::cli
