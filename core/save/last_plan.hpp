#pragma once
// Makes a global plan once that several ranks in one thread need, such as those of a simulated job.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/plan/save_plan.hpp"

namespace reprise {

/// Keeps one small plan, the latest, with the offers of all ranks that it was made of, byte by
/// byte. It only saves work: what it returns depends on the arguments alone.
class LastPlan {
 public:
  using Plan = std::shared_ptr<const GlobalPlan>;

  /// Returns the plan of these offers. Calls `make`, which must depend on nothing else, unless it
  /// is the kept one. Throws what `make` throws, each time.
  Plan of(const std::vector<Bytes>& offers, const Group& savers,
          const std::function<GlobalPlan()>& make);

  /// No plan is kept that has more bytes of offers or more boxes of tensors: less than 1 MiB.
  static constexpr std::uint64_t kOffersMax = std::uint64_t{64} << 10U;
  static constexpr std::size_t kBoxesMax = 4096;

 private:
  bool is_of(const std::vector<Bytes>& offers, const Group& savers) const;

  std::vector<Bytes> offers_;
  std::vector<GlobalRank> savers_;
  Plan plan_;  ///< null if none is kept
};

}  // namespace reprise
