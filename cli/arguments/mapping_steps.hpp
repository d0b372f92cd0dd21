#pragma once
// The steps of a rule: each makes other tensors of some that belong together.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/export/mapped_tensor.hpp"
#include "driver/yaml/yaml_map.hpp"

namespace reprise::cli {

/// Tensors that belong together, as far as a rule has changed them.
struct Row {
  std::vector<std::string> groups;    ///< what the expression's groups matched
  std::vector<std::int64_t> numbers;  ///< of unstack, in the order of the steps
  std::vector<MappedTensor> tensors;
  std::vector<bool> there;  ///< of each expression of the rule, true once it matched
};

using Step = std::function<std::vector<Row>(std::vector<Row>)>;

/// Reads a step. Throws USAGE for a mistake in the file. The step itself throws USAGE if it does
/// not fit a tensor, with the tensor's key.
Step read_step(driver::YamlMap step);

}  // namespace reprise::cli
