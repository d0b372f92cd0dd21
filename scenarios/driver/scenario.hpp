#pragma once
// A scenario: what is run, in incarnations, and what is expected. docs/scenarios.md is the
// language; this is what it is read into. The same on every lane. A plain value: two scenarios that
// are equal run alike.

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
  std::int64_t steps = 1;  ///< 0: compare, and go on

  friend bool operator==(const TrainAction&, const TrainAction&) = default;
};
struct SaveAction {
  friend bool operator==(const SaveAction&, const SaveAction&) = default;
};
/// The running job loads what the tracker names, over what it holds.
struct LoadAction {
  friend bool operator==(const LoadAction&, const LoadAction&) = default;
};
using Action = std::variant<TrainAction, SaveAction, LoadAction>;

/// One life of the job. All but the first begin by loading what the tracker names.
struct IncarnationPlan {
  sim::Layout layout;
  std::string optimizer_sharding;
  std::vector<Action> actions;

  friend bool operator==(const IncarnationPlan&, const IncarnationPlan&) = default;
};

struct Expectation {
  std::optional<std::string> refusal;  ///< a code: the run must end so, on all ranks
  std::string refusal_says;            ///< part of the message that every rank must give
  std::uint64_t elements_least = 0;    ///< that the last incarnation must have compared, all ranks
  bool every_rank_owns = true;         ///< false: a rank may hold nothing

  friend bool operator==(const Expectation&, const Expectation&) = default;
};

/// The element by which a recorded failure is known again.
struct RecordedDifference {
  std::int32_t rank = 0;
  std::string key;
  std::vector<std::int64_t> index;
  std::string saved;
  std::string loaded;

  friend bool operator==(const RecordedDifference&, const RecordedDifference&) = default;
};

/// What came of a run, kept in the file so that a replay can be compared with it.
struct Recorded {
  std::string verdict;
  std::string code;
  std::optional<RecordedDifference> first_difference;
  std::string event_hash;
  std::string commit;  ///< with a '+' if the tree had further changes
  std::string build;
  std::string mutant;  ///< that was switched on; empty: none
  std::uint64_t seed = 1;

  friend bool operator==(const Recorded&, const Recorded&) = default;
};

struct Scenario {
  std::string name;  ///< path below the catalogue without its ending, then the row of a table
  std::string file;  ///< as it was given
  std::string row;   ///< "[k=1,save=tp2-dp2]" of a table; else empty
  std::string proves;
  std::vector<std::string> tags;
  std::string model;
  std::string optimizer_sharding;  ///< of the first incarnation
  std::int64_t shard_dim = 0;      ///< the dimension that fsdp splits
  std::uint64_t seed = 1;
  std::int32_t ranks_per_node = 0;  ///< 0: all on one node
  Strictness strictness = Strictness::kRaiseAll;
  std::vector<IncarnationPlan> incarnations;
  Expectation expect;
  std::vector<std::string> caught;  ///< mutants that must fail here
  std::vector<LaneKind> lanes;
  std::string lanes_reason;  ///< why not all lanes
  std::optional<Recorded> recorded;

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

/// The scenarios of one file: one, or the rows of its table. USAGE naming file and line.
std::vector<Scenario> parse_scenarios(const std::string& text, const std::string& file);
/// The same of a file that holds one; USAGE for a table.
Scenario parse_scenario(const std::string& text, const std::string& file);
Scenario read_scenario(const std::string& file);

/// The text of a file that is read into this scenario again.
std::string to_yaml(const Scenario& scenario);

}  // namespace reprise::driver
