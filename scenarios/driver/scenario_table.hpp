#pragma once
// A file that says `each:` stands for many scenarios: one for each row of a table of values.
//
//   each: {save: [tp2 dp2, ep2 dp4], k: [0, 1]}      every combination: 4 rows
//   each: [{save: tp2, load: dp3}, {save: tp4, load: tp2}]     these 2 rows

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "scenarios/driver/yaml_map.hpp"

namespace reprise::driver {

struct TableRow {
  std::string name;  ///< "[save=tp2-dp2,k=0]", different for each row
  Bindings bindings;
};

/// USAGE naming file and line for no rows, too many, rows with other names than the first, and rows
/// that are the same.
std::vector<TableRow> table_rows(const YAML::Node& each, const std::string& file);

}  // namespace reprise::driver
