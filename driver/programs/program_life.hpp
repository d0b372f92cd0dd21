#pragma once
// Runs one life of a trainer: one process per rank, with the environment of docs/witness.md.

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
};

/// Returns the folder of the checkpoints of a run.
std::string checkpoints_in(const std::string& work);
/// Returns the witness file of a rank; `suffix` is ".jsonl" or "-values.jsonl".
std::string witness_file(const std::string& work, std::size_t life, std::size_t rank,
                         const std::string& suffix);

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
