#pragma once
// Describes `expect:` and `recorded:` of a scenario file.

#include "driver/language/scenario.hpp"
#include "driver/yaml/rows.hpp"

namespace reprise::driver {

const Rows<Expectation>& expect_rows();
const Rows<Recorded>& recorded_rows();
const Rows<RecordedDifference>& difference_rows();

/// Fills the expectation from the map. Throws the USAGE errors of YamlMap, as does the next.
void read_expect(YamlMap expect, Expectation& expected);
Recorded read_recorded(YamlMap map);

}  // namespace reprise::driver
