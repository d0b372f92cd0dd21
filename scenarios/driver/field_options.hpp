#pragma once
// The options of a training job that Megatron calls so, laid over the scenarios of a run: each
// overrides what a scenario says under its own key.

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

struct FieldOptions {
  std::int64_t save_interval = 0;  ///< 0: as the scenario's
  bool no_save_optim = false;
  bool no_save_rng = false;
  bool no_load_optim = false;
  bool no_load_scheduler = false;
  bool no_load_rng = false;
  bool finetune = false;
  bool fully_reshardable = false;  ///< dist-ckpt-optim-fully-reshardable
  std::string load = {};           ///< directory, as for stored_start(); empty: none

  bool any() const { return !(*this == FieldOptions{}); }

  friend bool operator==(const FieldOptions&, const FieldOptions&) = default;
};

/// As on a command line: "--finetune --load 'runs/llm'".
std::string to_string(const FieldOptions& options);

/// Overrides each scenario's own keys, and adds the options, without directories, to its name, so
/// that its result is not taken for that of the scenario in the catalogue:
/// "mimo/layouts[...]{--finetune}". Without options they stay as they are. Reads the checkpoint
/// that `load` names, and throws what stored_start() does.
void override_by(const FieldOptions& options, std::vector<Scenario>& scenarios);

}  // namespace reprise::driver
