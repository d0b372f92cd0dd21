#pragma once
// Where a scenario runs. A lane runs one incarnation after the other; between them only the store
// lives on.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/store.hpp"
#include "scenarios/driver/phase_log.hpp"
#include "scenarios/driver/record.hpp"
#include "scenarios/driver/scenario.hpp"
#include "scenarios/driver/twin.hpp"

namespace reprise::driver {

/// Of one collective, on every lane.
inline constexpr std::uint64_t kCollectiveDeadlineS = 60;

struct LaneOptions {
  std::uint64_t seed = 1;  ///< of the simulated scheduler
  std::string mutant;      ///< name; empty: none
  std::string keep;        ///< directory that keeps the checkpoints; empty: they go away
  std::string launcher = "mpirun";
  std::string executable;          ///< of this program, for lanes that start processes
  std::uint64_t deadline_s = 120;  ///< of one incarnation in real time
  std::int32_t ranks_per_gpu = 1;  ///< on the lane gpu; as many as share a device at most
  LogOptions log;
  /// Shared by all scenarios that are run with copies of these options.
  std::shared_ptr<TwinBook> twins = std::make_shared<TwinBook>();
};

/// One scenario's life on a lane.
class Lane {
 public:
  virtual ~Lane() = default;
  /// `past`: what the incarnations before have come to.
  virtual IncarnationRecord run(std::size_t incarnation, const Past& past) = 0;
  /// Where the checkpoints are, for those who look between incarnations.
  virtual Store& store() = 0;
  /// Where that is on disk; empty: nowhere.
  virtual std::string directory() const { return {}; }
  /// Called once after the last incarnation: puts the checkpoints where they are kept.
  virtual void finish() = 0;
};

/// Ranks as fibers on one thread, over a store that forgets what was not synced.
std::unique_ptr<Lane> make_sim_lane(const Scenario& scenario, const LaneOptions& options);
/// Ranks as processes that a launcher starts, over a real directory: kMpi or kGpu.
std::unique_ptr<Lane> make_process_lane(LaneKind lane, const Scenario& scenario,
                                        const LaneOptions& options);

/// Leaves out the ranks that are no members of the job; they must have ended well, else they stay.
void keep_members(const IncarnationPlan& plan, IncarnationRecord& record);

/// Why the lane can't run the scenario here; nothing if it can.
std::optional<std::string> why_not(LaneKind lane, const Scenario& scenario,
                                   const LaneOptions& options);

}  // namespace reprise::driver
