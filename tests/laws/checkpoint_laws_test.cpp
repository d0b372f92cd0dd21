// Laws of whole checkpoints, in the simulated world: round trips, resharding, differences, and
// scenarios.

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/diff/diff.hpp"
#include "core/load/load.hpp"
#include "core/ports/no_progress.hpp"
#include "core/reshard/reshard.hpp"
#include "core/save/save_seamed.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/runs/property.hpp"
#include "sim/world/world.hpp"
#include "tests/laws/generators/scenarios.hpp"
#include "tests/laws/generators/states.hpp"
#include "tests/laws/law.hpp"

namespace reprise::laws {
namespace {

/// Throws the error of the first rank that did not return.
void require_returned(const sim::RunResult& run) {
  for (const auto& rank : run.ranks) {
    if (rank.error) throw Error(*rank.error);
    RC_ASSERT(rank.end == sim::RankEnd::kReturned);
  }
}

/// Changes a rank's filled state before it is saved.
using Touch = std::function<void(const StateDict&, GlobalRank)>;

void save(const PlacedState& state, Store& store, const std::string& path,
          const SaveSeams& seams = {}, const Touch& touch = {}) {
  sim::World world({.world_size = state.ranks()}, store);
  require_returned(world.run([&](Ports& ports, GlobalRank rank) {
    const auto part = state.of(rank);
    testing_job::fill(part->state);
    part->state.common = Dict{{"step", 7}};
    if (touch) touch(part->state, rank);
    SaveOptions settings;
    settings.directory = path;
    begin_save(ports, ports.fabric.communicator(Group::world(state.ranks())), part->state, settings,
               {}, seams)
        .finish();
  }));
}

struct Loaded {
  std::size_t elements = 0;
  std::size_t wrong = 0;
};

Loaded load_all(const PlacedState& state, Store& store, const std::string& path) {
  Loaded loaded;
  sim::World world({.world_size = state.ranks()}, store);
  require_returned(world.run([&](Ports& ports, GlobalRank rank) {
    const auto part = state.of(rank);
    LoadOptions settings;
    settings.directory = path;
    load(ports, *ports.fabric.communicator(Group::world(state.ranks())), part->state, settings);
    loaded.elements += testing_job::element_count(part->state);
    loaded.wrong += testing_job::wrong_elements(part->state);
  }));
  return loaded;
}

std::string ranks_text(const PlacedState& state) {
  return std::to_string(state.ranks()) + (state.ranks() == 1 ? " rank" : " ranks");
}

// --- round trips --------------------------------------------------------------------------------

const Law kRoundTrip{"a round trip under any two layouts is the identity", 150};

std::function<void()> round_trip(const SaveSeams& seams) {
  return [seams] {
    const PlacedState saving = *placed_states();
    const PlacedState loading = *elsewhere(saving);
    sim::SimStore store;
    save(saving, store, "checkpoint", seams);
    const Loaded loaded = load_all(loading, store, "checkpoint");
    RC_CLASSIFY(loaded.elements == 0, "no element");
    RC_TAG(ranks_text(saving) + " to " + ranks_text(loading));
    RC_ASSERT(loaded.wrong == 0U);
  };
}

TEST(Laws, a_round_trip_under_any_two_layouts_is_the_identity) {
  expect_law(kRoundTrip, round_trip({}));
}

TEST(LawsCanFail, a_save_that_describes_by_another_rule_than_the_job_cuts) {
  SaveSeams seams;
  seams.plan.describe = [](std::int64_t length, std::int64_t parts, std::int64_t index) {
    const std::int64_t size = length / parts;
    return Interval{index * size, index + 1 == parts ? length : (index + 1) * size};
  };
  expect_broken(kRoundTrip, round_trip(seams));
}

// --- resharding ---------------------------------------------------------------------------------

const Law kReshard{"resharding twice is resharding once, and changes no element", 100};

/// How a reshard cuts each tensor that has that dimension.
struct NewCut {
  std::size_t dim = 0;
  std::int64_t parts = 1;
  std::int32_t writers = 1;

  friend std::ostream& operator<<(std::ostream& out, const NewCut& cut) {
    return out << "dimension " << cut.dim << " in " << cut.parts << " parts by " << cut.writers;
  }
};

rc::Gen<NewCut> cuts() {
  return rc::gen::exec([] {
    return NewCut{any_below(3), any_from(1, 5), static_cast<std::int32_t>(any_from(1, 3))};
  });
}

void reshard_to(Store& store, const std::string& from, const std::string& to, const NewCut& cut) {
  Checkpoint source = Checkpoint::open(store, from);
  HostDevice device("law", 0);
  ThreadTasks tasks(1);
  NoTrace trace;
  NoProgress progress;
  ReshardOptions options;
  options.writers = cut.writers;
  options.rule = [&cut](const std::string&, const Dims& shape) -> std::optional<Cut> {
    if (cut.dim >= shape.size()) return std::nullopt;
    return Cut{cut.dim, cut.parts};
  };
  reshard(source, {to}, options, {store, device, tasks, trace, progress});
}

DiffReport diff_of(Store& store, const std::string& left, const std::string& right) {
  Checkpoint a = Checkpoint::open(store, left);
  Checkpoint b = Checkpoint::open(store, right);
  HostDevice device("law", 0);
  NoProgress progress;
  return diff(a, b, device, {}, progress);
}

/// Returns the boxes of a stored tensor without the empty ones, in ascending order.
std::vector<Box> boxes_of(const StoredTensor& tensor) {
  std::vector<Box> boxes;
  for (const auto& chunk : tensor.chunks) {
    if (!chunk.box.empty()) boxes.push_back(chunk.box);
  }
  std::sort(boxes.begin(), boxes.end());
  return boxes;
}

/// Cuts that replace all cuts before them: a tensor that the second cut leaves alone keeps the
/// boxes of the first, so both must have the same dimension.
std::function<void()> resharding_composes(std::int64_t parts_off) {
  return [parts_off] {
    const PlacedState state = *placed_states();
    const NewCut first = *cuts();
    NewCut second = *cuts();
    second.dim = first.dim;
    sim::SimStore store;
    save(state, store, "a");
    reshard_to(store, "a", "b", first);
    NewCut last = second;
    last.parts += parts_off;
    reshard_to(store, "b", "c", last);
    reshard_to(store, "a", "direct", second);
    RC_TAG(std::to_string(first.parts) + " then " + std::to_string(second.parts) + " parts");
    RC_ASSERT(diff_of(store, "a", "c").different() == 0U);
    RC_ASSERT(diff_of(store, "c", "direct").different() == 0U);
    const Checkpoint twice = Checkpoint::open(store, "c");
    const Checkpoint once = Checkpoint::open(store, "direct");
    for (const auto& tensor : once.catalog().tensors) {
      RC_ASSERT(boxes_of(*twice.catalog().tensor(tensor.key)) == boxes_of(tensor));
    }
    const Loaded loaded = load_all(state, store, "c");
    RC_ASSERT(loaded.wrong == 0U);
  };
}

TEST(Laws, resharding_composes) { expect_law(kReshard, resharding_composes(0)); }

TEST(LawsCanFail, a_second_reshard_with_another_cut) {
  expect_broken(kReshard, resharding_composes(1));
}

// --- differences --------------------------------------------------------------------------------

const Law kDiff{"a difference is symmetric, and finds exactly the tensors that differ", 120};

DiffVerdict mirrored(DiffVerdict verdict) {
  if (verdict == DiffVerdict::kOnlyLeft) return DiffVerdict::kOnlyRight;
  return verdict == DiffVerdict::kOnlyRight ? DiffVerdict::kOnlyLeft : verdict;
}

using DiffOf = DiffReport (*)(Store&, const std::string&, const std::string&);

/// Flips a bit of the first element of the tensor on the rank that has it.
Touch flips(const std::string& key) {
  return [key](const StateDict& state, GlobalRank) {
    for (const auto& leaf : state.tensors) {
      for (const auto& piece : leaf.pieces) {
        const bool first = piece.box.offset == Dims::filled(piece.box.ndim(), 0);
        if (leaf.key == key && first && !piece.box.empty()) leaf.data[piece.local] ^= std::byte{1};
      }
    }
  };
}

std::function<void()> diff_is_symmetric(DiffOf differ) {
  return [differ] {
    const PlacedState left = *placed_states();
    PlacedState right = *elsewhere(left);
    const std::string touched = right.tensors[any_below(right.tensors.size())].key;
    const bool lacks_one = right.tensors.size() > 1 && any_from(0, 2) == 0;
    if (lacks_one) right.tensors.pop_back();
    sim::SimStore store;
    save(left, store, "left");
    save(right, store, "right", {}, flips(touched));
    const DiffReport one = differ(store, "left", "right");
    const DiffReport other = differ(store, "right", "left");
    RC_CLASSIFY(one.different() > 0, "they differ");
    RC_CLASSIFY(lacks_one, "one side lacks a tensor");
    RC_ASSERT(one.tensors.size() == other.tensors.size());
    RC_ASSERT(one.elements == other.elements);
    for (std::size_t i = 0; i < one.tensors.size(); ++i) {
      const TensorDiff& a = one.tensors[i];
      const TensorDiff& b = other.tensors[i];
      RC_ASSERT(a.key == b.key);
      RC_ASSERT(a.verdict == mirrored(b.verdict));
      RC_ASSERT(a.comparison.bit_mismatches == b.comparison.bit_mismatches);
      RC_ASSERT(a.first == b.first);
      RC_ASSERT(a.first_left == b.first_right);
      const auto spec = std::ranges::find(left.tensors, a.key, &TensorSpec::key);
      const bool held = a.key == touched && volume(spec->shape) > 0;
      if (a.verdict != DiffVerdict::kOnlyLeft) {
        RC_ASSERT(a.verdict == (held ? DiffVerdict::kDifferent : DiffVerdict::kSame));
      }
    }
    RC_ASSERT(differ(store, "left", "left").different() == 0U);
  };
}

TEST(Laws, a_diff_is_symmetric) { expect_law(kDiff, diff_is_symmetric(diff_of)); }

TEST(LawsCanFail, a_diff_that_overlooks_what_only_the_right_has) {
  expect_broken(
      kDiff, diff_is_symmetric([](Store& store, const std::string& left, const std::string& right) {
        DiffReport report = diff_of(store, left, right);
        std::erase_if(report.tensors, [](const TensorDiff& tensor) {
          return tensor.verdict == DiffVerdict::kOnlyRight;
        });
        return report;
      }));
}

// --- scenarios ----------------------------------------------------------------------------------

const Law kScenarioText{"a scenario that was written is read as it was", 60};

TEST(Laws, a_scenario_is_read_as_it_was_written) {
  expect_law(kScenarioText, [] {
    const driver::Scenario scenario = (*scenarios()).scenario;
    driver::Scenario read = driver::parse_scenario(to_yaml(scenario), "law.yaml");
    RC_TAG(std::to_string(scenario.lives.size()) + " lives");
    RC_ASSERT(to_yaml(read) == to_yaml(scenario));
    read.name = scenario.name;
    read.file = scenario.file;
    RC_ASSERT(read == scenario);
  });
}

const Law kContinues{"a job goes on from its checkpoints as if it had never stopped", 12};

std::function<void()> continues(const std::string& mutant) {
  return [mutant] {
    const driver::Scenario scenario = (*scenarios()).scenario;
    driver::LaneOptions options;
    options.mutant = mutant;
    const auto failure =
        driver::failure_of(driver::property_named("continuity"), scenario, options);
    RC_TAG(std::to_string(scenario.lives.size()) + " lives");
    // A run of which the mutant was not asked is no failure of the job. RC_ASSERT itself would
    // evaluate both sides of the condition.
    const bool goes_on = !failure || failure->code == "ORACLE_VACUOUS";
    RC_ASSERT(goes_on);
  };
}

TEST(Laws, a_job_goes_on_as_if_it_had_never_stopped) { expect_law(kContinues, continues("")); }

TEST(LawsCanFail, a_job_that_does_not_load_its_optimizer) {
  const auto found = expect_broken(kContinues, continues("no-optimizer-in-dcp"));
  // RapidCheck shrinks a scenario by the same steps as our own shrinker.
  EXPECT_NE(found.find("gpt-tiny"), std::string::npos) << found;
}

}  // namespace
}  // namespace reprise::laws
