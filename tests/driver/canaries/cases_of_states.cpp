#include <algorithm>
#include <utility>

#include "properties/destination.hpp"
#include "properties/state_judge.hpp"
#include "properties/unsettled.hpp"
#include "tests/driver/canaries/finding_case.hpp"
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
  judged::Findings findings;
  return assemble(states, findings);
}

/// Two ranks that each saved a half, and a rank that loaded the upper one.
struct Loaded {
  OneRank top{0};
  OneRank bottom{1};
  OneRank loaded{0};

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
    return codes_of(judge_state(saved, job.loaded.view()).findings);
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
  return codes_of(judge_state(whole_of({&saver}), swapped.view()).findings);
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
    judged::Findings findings;
    assemble(ranks, findings);
    return codes_of(findings);
  };
}

}  // namespace

std::vector<FindingCase> cases_of_states() {
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
      {"global_state", judged::kReplicaMismatch, assembled([](OneRank& second) {
         put(second.state.tensors[2], {0, 0}, 1.0F);
       })},
  };
}

}  // namespace reprise::driver::test
