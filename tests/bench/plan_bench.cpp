#include <benchmark/benchmark.h>

#include "core/plan/load_plan.hpp"
#include "core/plan/save_plan.hpp"
#include "core/plan/structure.hpp"
#include "core/save/plan_fit.hpp"

namespace reprise {
namespace {

std::shared_ptr<const Mesh> mesh_of(int ranks) {
  return std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 8}, {"dp", ranks / 8}});
}

/// Returns the state of one rank. Its tensors have only a few different shapes, as in a
/// transformer.
StateDict state_of(const std::shared_ptr<const Mesh>& mesh, int rank, int tensors, bool placed) {
  const Placement split({{"tp", 0}});
  StateDict state;
  for (int t = 0; t < tensors; ++t) {
    TensorLeaf leaf;
    leaf.key = "decoder.layers." + std::to_string(t) + ".mlp.linear_fc1.weight";
    leaf.shape = {64 * (1 + t % 20), 128};
    leaf.pieces = {contiguous_piece(split.box(leaf.shape, *mesh, {rank}))};
    leaf.replica = split.replica(*mesh, {rank});
    if (placed) leaf.placed = Placed{mesh, split};
    state.tensors.push_back(std::move(leaf));
  }
  return state;
}

std::vector<LocalPlan> plans_of(int ranks, int tensors, bool placed) {
  const auto mesh = mesh_of(ranks);
  std::vector<LocalPlan> plans;
  for (int r = 0; r < ranks; ++r) {
    plans.push_back(local_plan(state_of(mesh, r, tensors, placed), {r}));
  }
  return plans;
}

void global_plan_of_mesh_placements(benchmark::State& state) {
  const auto plans = plans_of(64, static_cast<int>(state.range(0)), true);
  for (auto _ : state) benchmark::DoNotOptimize(global_plan(plans));
}
BENCHMARK(global_plan_of_mesh_placements)->Arg(1600)->Arg(10000)->Unit(benchmark::kMillisecond);

void global_plan_by_sweep(benchmark::State& state) {
  const auto plans = plans_of(64, static_cast<int>(state.range(0)), false);
  for (auto _ : state) benchmark::DoNotOptimize(global_plan(plans));
}
BENCHMARK(global_plan_by_sweep)->Arg(1600)->Arg(10000)->Unit(benchmark::kMillisecond);

void plan_over_the_wire(benchmark::State& state) {
  const auto plan = plans_of(8, 10000, true)[0];
  for (auto _ : state) benchmark::DoNotOptimize(decode_local_plan(encode(plan)));
}
BENCHMARK(plan_over_the_wire)->Unit(benchmark::kMillisecond);

/// Measures one rank's work on a plan to which all ranks contribute. This includes reading the
/// other ranks' messages.
void plan_made_by_all(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const int tensors = static_cast<int>(state.range(1));
  const bool placed = state.range(2) != 0;
  const StateDict own = state_of(mesh_of(ranks), 0, tensors, placed);
  std::vector<Bytes> wires;
  std::size_t bytes = 0;
  for (const auto& plan : plans_of(ranks, tensors, placed)) {
    wires.push_back(encode(plan));
    bytes += wires.back().size();
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(encode(local_plan(own, {0})));
    benchmark::DoNotOptimize(global_plan(decode_local_plans(wires)));
  }
  state.counters["gathered_MiB"] = static_cast<double>(bytes) / (1 << 20);
}
BENCHMARK(plan_made_by_all)
    ->Args({1024, 1000, 1})
    ->Args({1024, 1000, 0})
    ->Args({64, 10000, 1})
    ->Args({64, 10000, 0})
    ->Unit(benchmark::kMillisecond);

/// Measures one rank's work when the plan is reused: computing the signature of the structure, and
/// looking for keys that the plan lacks.
void plan_reused(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const int tensors = static_cast<int>(state.range(1));
  const bool placed = state.range(2) != 0;
  const StateDict own = state_of(mesh_of(ranks), 0, tensors, placed);
  const GlobalPlan plan = global_plan(plans_of(ranks, tensors, placed));
  for (auto _ : state) {
    benchmark::DoNotOptimize(structure_of(own, {0}).signature);
    if (!unplanned_keys(plan, own).empty()) state.SkipWithError("the plan has no place for it");
  }
  state.counters["gathered_MiB"] = 16.0 * ranks / (1 << 20);
}
BENCHMARK(plan_reused)
    ->Args({1024, 1000, 1})
    ->Args({1024, 1000, 0})
    ->Args({64, 10000, 1})
    ->Args({64, 10000, 0})
    ->Unit(benchmark::kMillisecond);

/// Measures the proof, by a sweep, that 100,000 chunks in a square grid cover one tensor.
void cover_of_a_grid(benchmark::State& state) {
  std::vector<Box> boxes;
  for (std::int64_t i = 0; i < 316; ++i) {
    for (std::int64_t j = 0; j < 316; ++j) boxes.push_back({{4 * i, 4 * j}, {4, 4}});
  }
  for (auto _ : state) benchmark::DoNotOptimize(prove_cover({4 * 316, 4 * 316}, boxes));
}
BENCHMARK(cover_of_a_grid)->Unit(benchmark::kMillisecond);

/// Measures the planning of a load under another layout, for 1,600 tensors that are stored in 64
/// slabs each.
void load_plan_of_slabs(benchmark::State& state) {
  Catalog catalog;
  catalog.files = {"a"};
  std::vector<TensorLeaf> wanted;
  for (int t = 0; t < 1600; ++t) {
    StoredTensor tensor;
    tensor.key = "w" + std::to_string(10000 + t);
    tensor.shape = {640, 16};
    for (std::int64_t c = 0; c < 64; ++c) {
      tensor.chunks.push_back({{{10 * c, 0}, {10, 16}}, 0, {static_cast<std::uint64_t>(c), 1}});
    }
    TensorLeaf leaf;
    leaf.key = tensor.key;
    leaf.shape = tensor.shape;
    leaf.pieces = {contiguous_piece({{105, 0}, {300, 16}})};
    wanted.push_back(std::move(leaf));
    catalog.tensors.push_back(std::move(tensor));
  }
  for (auto _ : state) benchmark::DoNotOptimize(load_plan(wanted, {}, catalog));
}
BENCHMARK(load_plan_of_slabs)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace reprise
