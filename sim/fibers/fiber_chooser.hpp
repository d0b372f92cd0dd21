#pragma once
// Chooses which fiber runs next. Each choice is a decision with a number, so a run can be repeated
// up to some decision and take another course from there:
//
//   decision   0 1 2 3 4 5 6 | 7 8 9 ...
//   stream     the first one | that of the split at 7
//
// There are two ways to choose:
//
//   uniform    every fiber that can run is equally likely
//   priority   the fiber with the highest priority runs. Fibers get random priorities when they
//              are first seen. At depth - 1 random decisions the fiber that would run gets a
//              priority below all others (PCT: Burckhardt et al., ASPLOS 2010). With n fibers and
//              k decisions, a defect that shows when d certain events come in a certain order is
//              found by one run with a probability of at least 1 / (n * k^(d-1)).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/random.hpp"

namespace reprise::sim {

enum class Choosing : std::uint8_t { kUniform, kPriority };
/// Returns "uniform" or "priority".
std::string_view name_of(Choosing choosing);

/// From decision `at` on, choices come from the stream of another seed.
struct ScheduleSplit {
  std::uint64_t at = 0;
  std::uint64_t seed = 0;
  Choosing choosing = Choosing::kUniform;

  friend bool operator==(const ScheduleSplit&, const ScheduleSplit&) = default;
};

struct SchedulePlan {
  Choosing choosing = Choosing::kUniform;  ///< before the first split
  std::vector<ScheduleSplit> splits = {};  ///< by ascending `at`; of equal ones the last counts
  std::uint32_t depth = 3;                 ///< d of the bound above
  std::uint64_t horizon = kHorizon;        ///< k of the bound above

  static constexpr std::uint64_t kHorizon = 4096;

  friend bool operator==(const SchedulePlan&, const SchedulePlan&) = default;
};

class FiberChooser {
 public:
  FiberChooser(Stream choices, SchedulePlan plan);

  /// Returns the place in `runnable` of the fiber to run. `runnable` holds numbers of fibers and is
  /// not empty.
  std::size_t choose(std::span<const std::size_t> runnable);
  /// Returns the number of decisions so far.
  std::uint64_t decisions() const { return decisions_; }

 private:
  void begin(Stream choices, Choosing choosing);
  std::size_t highest(std::span<const std::size_t> runnable);
  std::int64_t& priority_of(std::size_t fiber);

  SchedulePlan plan_;
  Stream choices_;
  Choosing choosing_ = Choosing::kUniform;
  std::uint64_t decisions_ = 0;
  std::size_t next_split_ = 0;
  std::vector<std::uint64_t> changes_;    ///< decisions at which a priority falls
  std::vector<std::int64_t> priorities_;  ///< by fiber; kUnseen if it was not seen yet
  std::int64_t lowest_ = 0;               ///< the lowest priority given so far
  std::size_t last_ = 0;                  ///< the fiber that was chosen last
  std::uint64_t in_a_row_ = 0;            ///< how often it was chosen while others could run
};

}  // namespace reprise::sim
