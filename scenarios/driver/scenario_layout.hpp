#pragma once
// Layouts, ranks and shardings in a scenario file, of a job or of one of its modules.

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/driver/yaml_map.hpp"
#include "sim/job/layout.hpp"
#include "sim/job/sharding.hpp"

namespace reprise::driver {

inline constexpr std::int32_t kWorldMax = 1024;

/// "tp2 dp2", or {tp: 2, dp: 2}: what is not named is 1, and the order stays. USAGE as YamlMap
/// gives it, and for what the model can't be cut into; likewise below.
sim::Layout read_layout(YamlMap& map, const std::string& order, const std::string& model);
/// The `model` of the map.
std::string read_model(YamlMap& map);
sim::Sharding read_sharding(YamlMap& map);
/// Those under `ranks`; none where there is no such key.
std::vector<std::int32_t> read_ranks(YamlMap& map);
/// USAGE unless so many ranks are none at all or one for each place of the layout.
void require_place_for_each(std::size_t ranks, const sim::Layout& layout, YamlMap& map);

}  // namespace reprise::driver
