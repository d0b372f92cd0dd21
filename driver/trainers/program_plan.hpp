#pragma once
// Defines the part of a scenario that describes a trainer: its lives and the expected results.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/trainers/command_life.hpp"
#include "driver/trainers/trainer_file.hpp"
#include "properties/finding_code.hpp"

namespace reprise::driver {

enum class ProgramDoes : std::uint8_t { kTrain, kSave, kLoad, kFinalize };
std::string_view name_of(ProgramDoes does);

struct ProgramStep {
  ProgramDoes does = ProgramDoes::kTrain;
  std::int64_t steps = 0;          ///< number of steps, for kTrain
  std::optional<bool> async = {};  ///< for kSave; if empty, the program's options decide

  friend bool operator==(const ProgramStep&, const ProgramStep&) = default;
};

/// Kills a rank's process by a signal at the beginning of a phase.
struct ProgramKill {
  std::int64_t rank = 0;
  std::string phase;            ///< empty if unknown, as in the witness of a run without a driver
  std::int64_t occurrence = 1;  ///< 1 for the first such phase in the life

  friend bool operator==(const ProgramKill&, const ProgramKill&) = default;
};

/// Kinds of wrong results; trainers/megatron/job.py defines the same kinds.
enum class ProgramFault : std::uint8_t {
  kTransient,
  kPersistent,
  kCorrect,   ///< the result is the same on another device, too
  kRejected,  ///< a rule of the trainer rejects the result; nothing is injected
};
/// Returns "transient", "persistent", "correct" or "rejected".
std::string_view name_of(ProgramFault fault);

/// A wrong result that the trainer's rerun machine must detect.
struct ProgramRerun {
  std::int64_t iteration = 1;
  ProgramFault kind = ProgramFault::kTransient;
  std::optional<std::int64_t> rank;  ///< if empty, the trainer chooses the rank

  friend bool operator==(const ProgramRerun&, const ProgramRerun&) = default;
};

struct ProgramLife {
  std::map<std::string, std::int64_t> layout;  ///< size by axis
  std::map<std::string, std::string> options;  ///< values that the scenario sets
  std::vector<ProgramStep> steps;
  std::optional<ProgramKill> kill;
  std::optional<ProgramRerun> rerun;
  std::int64_t exit = 0;                    ///< code that each rank must end with
  std::optional<CommandLife> command = {};  ///< runs once, in place of the trainer

  friend bool operator==(const ProgramLife&, const ProgramLife&) = default;
};

inline constexpr double kLossWithin = 1e-3;

struct ProgramExpectation {
  std::optional<std::int64_t> loaded_step;  ///< step that the last life must load
  GoesOn goes_on = GoesOn::kBitwise;
  /// Under like_control: upper limit on the relative difference between the first loss after a load
  /// and the loss of the uninterrupted run.
  double loss_within = kLossWithin;
  std::optional<FindingCode> fails;  ///< code of the failure that must be found
  std::string says;                  ///< text that the reason of that failure must contain
  /// Prefixes of stored keys that no witness needs to describe.
  std::vector<std::string> unwitnessed;

  friend bool operator==(const ProgramExpectation&, const ProgramExpectation&) = default;
};

/// The lives of a trainer. Every life except the first begins with a load.
struct ProgramPlan {
  /// Its `needs` have those of the scenario, too: specifiers of one package are joined by commas.
  TrainerFile trainer;
  std::map<std::string, std::string> needs = {};  ///< what the scenario alone needs, by package
  std::int64_t seed = 1;
  std::vector<ProgramLife> lives;
  ProgramExpectation expect;

  friend bool operator==(const ProgramPlan&, const ProgramPlan&) = default;
};

/// Returns text such as "dp2 tp4", in the order of the trainer's axes. Axes of size 1 are left out.
std::string layout_text(const TrainerFile& trainer,
                        const std::map<std::string, std::int64_t>& layout);

}  // namespace reprise::driver
