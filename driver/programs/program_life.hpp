#pragma once
// Runs one life of a trainer: one process per rank, with the environment of docs/trainers.md.

#include <cstdint>
#include <optional>
#include <string>

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// The Python interpreter to use, and the folder of the programs that trainers may call.
struct ProgramPlace {
  std::string python;    ///< replaces the word python3 in commands; if empty, python3 is used
  std::string programs;  ///< folder that replaces the word {programs} in commands
  std::string reprise;   ///< path of this program, which replaces the word {reprise} in commands
};

enum class Loads : std::uint8_t {
  kNothing,
  kNewest,
  /// The negative control: loads nothing, but continues from `cold_step` as if it had loaded.
  kPretends,
};

struct LifeRequest {
  const TrainerFile& trainer;
  ProgramLife life;
  std::size_t number = 0;
  std::int64_t seed = 1;
  Loads loads = Loads::kNothing;
  std::int64_t cold_step = 0;
  std::string work;    ///< folder of the run, for checkpoints, witness files and plans
  std::string values;  ///< key of the tensor whose elements ranks must write out; empty for none
  ProgramPlace place;
  /// The ranks may report nothing for this many seconds; see silence_limit(). If 0, for as long as
  /// the trainer's file says.
  std::int64_t silence_s_max = 0;
};

/// A life may be silent for this many times the longest silence of the first life.
inline constexpr std::int64_t kSilenceFactor = 4;
/// Returns for how many seconds the ranks of a life may report nothing: at least `seconds`, which
/// is what the trainer's file says, and at least kSilenceFactor times `first_silence`, the longest
/// silence in seconds of a life that began from nothing and ended as planned (0 if there is none
/// yet). So the deadlines of a slow machine, or of a long step, are longer.
std::int64_t silence_limit(std::int64_t seconds, double first_silence);

/// Returns the folder of the checkpoints of a run.
std::string checkpoints_in(const std::string& work);
/// Returns the witness file of a rank; `suffix` is ".jsonl" or "-values.jsonl".
std::string witness_file(const std::string& work, std::size_t life, std::size_t rank,
                         const std::string& suffix);

/// Adds the witness of a rank whose process ended so, and a flaw if it can't be read.
void read_witness(const std::string& file, const ProgramEnd& end, LifeEvidence& life);

/// Runs the life and returns its evidence, with `before` and `after` still empty. Ends every
/// process that it started.
LifeEvidence run_program_life(const LifeRequest& request);

/// Runs a life that is a command, on the checkpoints of the run.
LifeEvidence run_command_life(const ProgramLife& life, const std::string& work,
                              const ProgramPlace& place);

/// Returns which interpreter, package or program is missing, so that the trainer can't run here;
/// nothing if none is.
std::optional<std::string> why_no_trainer(const TrainerFile& trainer, const ProgramPlace& place);

}  // namespace reprise::driver
