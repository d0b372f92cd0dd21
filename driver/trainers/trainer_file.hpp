#pragma once
// Reads the description of a trainer, the file trainer.yaml (docs/trainers.md). A trainer is a
// program from outside this project that runs as the job of a scenario.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::driver {

/// Decides which run a trainer is compared with after a load under another layout.
enum class GoesOn : std::uint8_t {
  /// The training must equal the uninterrupted run, bit for bit.
  kBitwise,
  /// The training must equal a second run from the same checkpoint, bit for bit.
  kLikeControl,
};
std::string_view name_of(GoesOn goes_on);

struct TrainerOption {
  std::string name;
  std::vector<std::string> values;  ///< allowed values; the first is the default

  friend bool operator==(const TrainerOption&, const TrainerOption&) = default;
};

struct TrainerFile {
  std::string folder;  ///< absolute path of the folder with trainer.yaml
  std::string name;
  std::string about;
  std::vector<std::string> command;          ///< program and arguments; runs in `folder`
  std::map<std::string, std::string> needs;  ///< required Python packages: a version, or
                                             ///< a specifier such as >=2.4
  std::vector<std::string> axes;
  std::vector<std::string> inside;  ///< axes that need no ranks of their own, such as ep within dp
  std::int64_t ranks = 1;           ///< upper limit on the number of processes
  GoesOn goes_on = GoesOn::kBitwise;
  std::vector<std::string> actions;
  std::vector<TrainerOption> options;
  std::vector<std::string> phases;
  std::vector<std::int64_t> exits = {0};
  std::vector<std::string> faults;  ///< kinds of faults that the trainer supports, such as "rerun"
  /// Number of checkpoints that the trainer keeps; all if empty.
  std::optional<std::int64_t> keeps;
  std::int64_t seconds = 120;  ///< deadline of one life

  /// Returns the number of processes under a layout.
  std::int64_t world_of(const std::map<std::string, std::int64_t>& layout) const;

  friend bool operator==(const TrainerFile&, const TrainerFile&) = default;
};

/// Reads the trainer of that name. Searches in the folder `trainers`. If `trainers` is empty,
/// searches in each folder above `file` and in the working directory for a subfolder called
/// trainers. Throws USAGE.
TrainerFile read_trainer(const std::string& name, const std::string& file,
                         const std::string& trainers);
/// Parses the text of a trainer.yaml. Throws USAGE with file and line.
TrainerFile parse_trainer(const std::string& text, const std::string& file);

}  // namespace reprise::driver
