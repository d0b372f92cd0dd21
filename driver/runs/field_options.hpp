#pragma once
// Applies options of a training job, named as in Megatron, to every scenario of a run. Each option
// overrides the scenario's own key.

#include <cstdint>
#include <string>
#include <vector>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

struct FieldOptions {
  std::int64_t save_interval = 0;  ///< 0 to keep the scenario's own interval
  bool no_save_optim = false;
  bool no_save_rng = false;
  bool no_load_optim = false;
  bool no_load_scheduler = false;
  bool no_load_rng = false;
  bool finetune = false;
  bool fully_reshardable = false;  ///< option --dist-ckpt-optim-fully-reshardable
  std::string load = {};           ///< directory for stored_start(); empty if there is none

  bool any() const { return !(*this == FieldOptions{}); }

  friend bool operator==(const FieldOptions&, const FieldOptions&) = default;
};

/// Returns the options as on a command line, such as "--finetune --load 'runs/llm'".
std::string to_string(const FieldOptions& options);

/// Overrides the keys of each scenario. Also appends the options, without directories, to the
/// scenario's name ("mimo/layouts[...]{--finetune}"), so that its result is not mistaken for that
/// of the scenario in the catalogue. Without options, the scenarios do not change. Reads the
/// checkpoint at `load`; throws the errors of stored_start().
void override_by(const FieldOptions& options, std::vector<Scenario>& scenarios);

}  // namespace reprise::driver
