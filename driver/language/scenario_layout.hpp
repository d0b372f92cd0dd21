#pragma once
// Describes layouts of a scenario file, and reads ranks and shardings, for a job or one of its
// modules.

#include <cstdint>
#include <string>
#include <vector>

#include "driver/yaml/rows.hpp"
#include "sim/job/groups/layout.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::driver {

inline constexpr std::int32_t kWorldMax = 1024;

/// Keys of a layout. The order is always written, because a layout without one keeps the order of
/// the life before.
const Rows<sim::Layout>& layout_rows();
/// Reads a layout such as "tp2 dp2" or {tp: 2, dp: 2}. Sizes that are not given are 1; the default
/// rank order is `order`. Throws USAGE for a layout by which the model can't be split; an empty
/// model can be split by any. Like the functions below, also throws the USAGE errors of YamlMap.
sim::Layout read_layout(YamlMap& map, const std::string& order, const std::string& model);
/// Reads the key `model` of the map.
std::string read_model(YamlMap& map);

/// Reads the name of an optimizer's sharding.
std::optional<sim::Sharding> read_sharding(YamlMap& map, std::string_view key);
/// Reads a list of distinct ranks. Returns an empty list if the key is absent.
std::vector<std::int32_t> read_ranks(YamlMap& map, std::string_view key);

/// Throws USAGE unless `ranks` is 0 or the number of ranks that the layout needs.
void require_place_for_each(std::size_t ranks, const sim::Layout& layout, YamlMap& map);

}  // namespace reprise::driver
