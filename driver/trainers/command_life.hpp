#pragma once
// Defines a life that runs a command once, in place of the job, and its step in a scenario file,
// `incarnation: {command: ...}`. The command may be any program.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace YAML {
class Emitter;
}  // namespace YAML

namespace reprise::driver {

class YamlMap;

/// The judges see only the checkpoints that the command leaves.
struct CommandLife {
  /// Program and arguments. In all of these words, {checkpoints} stands for the directory that
  /// contains the checkpoints and the tracker, and {reprise} for the path of this program.
  std::vector<std::string> command;
  int exits = 0;                       ///< exit code that the program must return
  std::optional<std::int64_t> leaves;  ///< step of the checkpoint that the program must commit
  std::int64_t seconds = 120;          ///< time limit of the program

  friend bool operator==(const CommandLife&, const CommandLife&) = default;
};

/// Reads the step's map. Throws the USAGE errors of YamlMap.
CommandLife read_command_life(YamlMap map);
/// Writes the step in the form that read_command_life reads.
void put_command_life(YAML::Emitter& out, const CommandLife& life);

}  // namespace reprise::driver
