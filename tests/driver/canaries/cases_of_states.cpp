#include <algorithm>
#include <memory>
#include <utility>

#include "properties/destination.hpp"
#include "properties/inventory.hpp"
#include "properties/slot_keys.hpp"
#include "properties/state_judge.hpp"
#include "properties/unsettled.hpp"
#include "tests/driver/canaries/ruling_case.hpp"
#include "tests/properties/small_job.hpp"

namespace reprise::driver::test {
namespace {

using reprise::test::fill;
using reprise::test::OneRank;
using reprise::test::put;

constexpr std::size_t kRow = 6 * sizeof(float);
const Dims kShape{4, 6};
const Box kWhole = Box::whole(kShape);
const Box kTop{{0, 0}, {2, 6}};
const Box kBottom{{2, 0}, {2, 6}};

/// Adds two tensors, an object and common state.
void add_job(OneRank& rank, const Box& box) {
  fill(rank.add("fc1", DType::kFloat32, kShape, {box}));
  fill(rank.add("fc2", DType::kFloat32, kShape, {box}));
  rank.state.objects.push_back({"o", {1}, {0}, 0, Value(7)});
  rank.state.common = Dict{{"step", 5}};
}

GlobalState whole_of(const std::vector<const OneRank*>& ranks) {
  std::vector<RankState> states;
  for (const OneRank* rank : ranks) states.push_back(rank->view());
  Rulings rulings;
  return assemble(states, rulings);
}

/// Two ranks that each saved a half, and a rank that loaded the upper one.
struct Loaded {
  OneRank top{0};
  OneRank bottom{1};
  OneRank loaded{0};
  JudgeOptions options = {};

  TensorLeaf& leaf(std::size_t i) { return loaded.state.tensors[i]; }
};

using Spoil = void (*)(Loaded&);

/// Returns what the judge of states says of a loaded state that `spoil` made wrong.
std::function<Codes()> loaded(Spoil spoil) {
  return [spoil] {
    Loaded job;
    add_job(job.top, kTop);
    add_job(job.bottom, kBottom);
    add_job(job.loaded, kTop);
    spoil(job);
    const GlobalState saved = whole_of({&job.top, &job.bottom});
    return codes_of(judge_state(saved, job.loaded.view(), job.options).rulings);
  };
}

/// A rank that holds the upper half of each of two fused components, and has them swapped.
Codes swapped_components() {
  const Dims shape{8, 3};
  OneRank saver(0);
  OneRank swapped(0);
  fill(saver.add("fc1", DType::kFloat32, shape, {Box::whole(shape)}));
  TensorLeaf& held =
      swapped.add("fc1", DType::kFloat32, shape, {{{0, 0}, {2, 3}}, {{4, 0}, {2, 3}}});
  fill(held);
  std::swap_ranges(held.data, held.data + kRow, held.data + kRow);
  return codes_of(judge_state(whole_of({&saver}), swapped.view()).rulings);
}

/// The loaded row is that of another step.
void take_older_row(Loaded& job) {
  auto older = std::make_shared<OneRank>(0);
  add_job(*older, kWhole);
  for (std::int64_t i = 0; i < 6; ++i) {
    const float value = 0.5F + 0.1F * static_cast<float>(i);
    put(older->state.tensors[0], {1, i}, value);
    put(job.leaf(0), {1, i}, value);
  }
  const auto state = std::make_shared<const GlobalState>(whole_of({older.get()}));
  job.options.suspects.others = [state] { return std::vector<OtherState>{{"of step 2", state}}; };
}

/// Returns what is said of two ranks that hold the same job, if `spoil` makes the second wrong.
std::function<Codes()> assembled(void (*spoil)(OneRank& second)) {
  return [spoil] {
    OneRank first(0);
    OneRank second(1);
    add_job(first, kTop);
    add_job(second, kBottom);
    fill(first.add("copy", DType::kFloat32, kShape, {kWhole}));
    fill(second.add("copy", DType::kFloat32, kShape, {kWhole}));
    spoil(second);
    const RankState ranks[] = {first.view(), second.view()};
    Rulings rulings;
    assemble(ranks, rulings);
    return codes_of(rulings);
  };
}

Codes half_refused() {
  OneRank rank(0);
  add_job(rank, kWhole);
  const Destination before(rank.state);
  put(rank.state.tensors[0], {0, 0}, 1.0F);
  return codes_of(before.refused(GlobalRank{0}, rank.state).rulings);
}

std::function<Codes()> unsettled(std::byte pattern) {
  return [pattern] {
    OneRank rank(0);
    add_job(rank, kWhole);
    std::fill_n(rank.state.tensors[0].data, kRow, pattern);
    return codes_of(judge_settled(rank.view()));
  };
}

}  // namespace

std::vector<RulingCase> cases_of_states() {
  return {
      {"state_judge", judged::kWrongOwner, loaded([](Loaded& job) {
         std::copy_n(job.bottom.state.tensors[1].data, 2 * kRow, job.leaf(0).data);
       })},
      {"state_judge", judged::kPermutedShards, loaded([](Loaded& job) {
         std::copy_n(job.bottom.state.tensors[0].data, 2 * kRow, job.leaf(0).data);
       })},
      {"state_judge", judged::kPermutedComponents, swapped_components},
      {"state_judge", judged::kShiftedBytes, loaded([](Loaded& job) {
         std::copy_n(job.top.state.tensors[0].data + sizeof(float), kRow, job.leaf(0).data + kRow);
       })},
      {"state_judge", judged::kZeroFill,
       loaded([](Loaded& job) { std::fill_n(job.leaf(1).data, kRow, std::byte{0}); })},
      {"state_judge", judged::kNotFilled,
       loaded([](Loaded& job) { std::fill_n(job.leaf(1).data, kRow, kLoadPoison); })},
      {"state_judge", judged::kTornSnapshot,
       loaded([](Loaded& job) { std::fill_n(job.leaf(1).data, kRow, kUnsettled); })},
      {"state_judge", judged::kStaleBytes, loaded(take_older_row)},
      {"state_judge", judged::kBitMismatch, loaded([](Loaded& job) {
         put(job.leaf(0), {1, 3}, 1234.5F);
       })},
      {"state_judge", Code::kDtypeDrift,
       loaded([](Loaded& job) { job.leaf(0).dtype = DType::kInt32; })},
      {"state_judge", Code::kShapeDrift, loaded([](Loaded& job) {
         job.leaf(0).shape = {6, 4};
       })},
      {"state_judge", judged::kKeysetAsymmetry,
       loaded([](Loaded& job) { job.loaded.state.tensors.pop_back(); })},
      {"state_judge", judged::kLostObject,
       loaded([](Loaded& job) { job.loaded.state.objects[0].value = Value(8); })},
      {"global_state", judged::kReplicaMismatch, assembled([](OneRank& second) {
         put(second.state.tensors[2], {0, 0}, 1.0F);
       })},
      {"global_state", Code::kCoverageGap,
       assembled([](OneRank& second) { second.state.tensors[0].pieces.clear(); })},
      {"global_state", Code::kDtypeDrift,
       assembled([](OneRank& second) { second.state.tensors[2].dtype = DType::kInt32; })},
      {"global_state", Code::kShapeDrift, assembled([](OneRank& second) {
         second.state.tensors[2].shape = {6, 4};
       })},
      {"global_state", Code::kCommonStateDiverges, assembled([](OneRank& second) {
         second.state.common = Dict{{"step", 6}};
       })},
      {"destination", judged::kBitMismatch, half_refused},
      {"unsettled", judged::kTornSnapshot, unsettled(kUnsettled)},
      {"unsettled", judged::kNotFilled, unsettled(kUnsettledLoad)},
      {"inventory", judged::kKeysetAsymmetry,
       [] { return codes_of(judge_inventory({"w"}, {}, {"w"}, {})); }},
      {"inventory", judged::kLostObject,
       [] {
         return codes_of(judge_common_inventory(Dict{{"step", 5}}, Dict{}));
       }},
      {"slot_keys", judged::kKeysetAsymmetry,
       [] {
         const std::vector<std::string> keys = {"v", "w", "optimizer.state.exp_avg.w"};
         return codes_of(judge_slot_keys(keys));
       }},
  };
}

}  // namespace reprise::driver::test
