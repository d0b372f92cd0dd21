#pragma once
// Reads the table `each:` of a scenario file. The file then describes one scenario for each row:
//
//   each: {save: [tp2 dp2, ep2 dp4], k: [0, 1]}      every combination: 4 rows
//   each: [{save: tp2, load: dp3}, {save: tp4, load: tp2}]     these 2 rows
//   each: {rank: all, moment: all, order: all_orders}     words that stand for lists
//   each: {from: all_orders, to: all_orders, sample: 40, seed: 7}     40 rows of the 14400
//
// In a table of combinations, $axis.next is the value that follows the row's value in the axis's
// list. After the last value comes the first.

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "driver/yaml/yaml_map.hpp"

namespace reprise::driver {

struct TableRow {
  std::string name;  ///< name of the row, such as "[save=tp2-dp2,k=0]"; different for each row
  Bindings bindings;
};

/// Returns the number of ranks of the first life. `before` holds the row's values on the
/// earlier axes of the table. Throws if these values do not determine the number.
using WorldOf = std::function<std::int32_t(Bindings& before)>;

/// Returns the rows. Throws USAGE with file and line if there are no rows or too many, if the axes
/// of a row differ from those of the first row, or if two rows are equal.
std::vector<TableRow> table_rows(const YAML::Node& each, const std::string& file,
                                 const WorldOf& world);

}  // namespace reprise::driver
