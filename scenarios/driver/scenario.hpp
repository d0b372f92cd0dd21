#pragma once
// A scenario file: what is run, in incarnations, and what is expected. docs/scenarios.md is the
// language; this is what it is read into. The same on every lane.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/plan/strictness.hpp"
#include "sim/job/layout.hpp"

namespace reprise::driver {

enum class LaneKind : std::uint8_t { kSim, kMpi, kGpu };
std::string_view name_of(LaneKind lane);
/// USAGE with the names that there are.
LaneKind lane_named(std::string_view name);

struct TrainAction {
  std::int64_t steps = 1;
};
struct SaveAction {};
using Action = std::variant<TrainAction, SaveAction>;

/// One life of the job. All but the first begin by loading what the tracker names.
struct IncarnationPlan {
  sim::Layout layout;
  std::vector<Action> actions;
};

struct Expectation {
  std::optional<std::string> refusal;  ///< a code: the run must end so, on all ranks
};

struct Scenario {
  std::string name;  ///< the file's name without its ending
  std::string file;  ///< as it was given
  std::string proves;
  std::string model;
  std::string optimizer_sharding;
  std::uint64_t seed = 1;
  Strictness strictness = Strictness::kRaiseAll;
  std::vector<IncarnationPlan> incarnations;
  Expectation expect;
  std::vector<std::string> caught;  ///< mutants that must fail here
  std::vector<LaneKind> lanes;
  std::string lanes_reason;  ///< why not all lanes
};

/// Throws USAGE naming file and line. `name` is used in messages and reports.
Scenario parse_scenario(const std::string& text, const std::string& file);
Scenario read_scenario(const std::string& file);
/// The scenario files under the given files and folders, sorted; USAGE if there are none.
std::vector<std::string> find_scenarios(const std::vector<std::string>& paths);

}  // namespace reprise::driver
