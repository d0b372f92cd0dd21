// Measures how long it takes to plan whole jobs on one core. For a save, `seconds` is the time from
// the ranks' encoded plans to the proved global plan with its owners. For a load, it is the time to
// plan every rank's reads. What each rank does before that is not included.

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/adapters/local/solo_fabric.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/plan/job_load_plan.hpp"
#include "core/plan/save_plan.hpp"
#include "core/save/plan_fit.hpp"
#include "core/save/planning.hpp"
#include "core/seams/save_seams.hpp"
#include "tests/bench/perf_record.hpp"

namespace reprise {
namespace {

using MeshPtr = std::shared_ptr<const Mesh>;

/// Returns the tensor's shape. There are only a few different shapes, and many tensors have the
/// same one, as in a transformer.
Dims shape_of(std::int64_t tensor) {
  return {65536 + 4096 * (tensor % 7), 128 + 64 * (tensor % 3)};
}

/// Returns the rank's box of a tensor and sets `shape` to the tensor's shape.
using BoxOf = Box (*)(std::int64_t tensor, std::int32_t rank, std::int32_t ranks, Dims& shape);

Box row_of(std::int32_t rank, std::int32_t ranks, const Dims& shape) {
  const Interval rows = ceil_chunk(shape[0], ranks, rank);
  return {{rows.begin, 0}, {rows.length(), shape[1]}};
}

/// Splits a tensor into rows. Tensors of the same shape have the same boxes.
Box rows(std::int64_t tensor, std::int32_t rank, std::int32_t ranks, Dims& shape) {
  shape = shape_of(tensor);
  return row_of(rank, ranks, shape);
}

/// Splits each tensor into rows. All tensors have different shapes.
Box rows_of_many_shapes(std::int64_t tensor, std::int32_t rank, std::int32_t ranks, Dims& shape) {
  shape = {65536 + 2048 * tensor, 128};
  return row_of(rank, ranks, shape);
}

/// Splits a tensor into bands of rows, one for every 8 ranks, and each band into 8 columns with
/// different bounds in each band. The boxes form no grid, and no two tensors have the same boxes.
Box bricks(std::int64_t tensor, std::int32_t rank, std::int32_t ranks, Dims& shape) {
  shape = {16 * std::int64_t{ranks}, 1024 + tensor};
  const std::int64_t band = rank / 8;
  const auto cut = [&](std::int64_t i) {
    if (i == 0 || i == 8) return i / 8 * shape[1];
    return i * (shape[1] / 8) + (band * 7 + i) % 31;
  };
  const std::int64_t begin = cut(rank % 8);
  return {{128 * band, begin}, {128, cut(rank % 8 + 1) - begin}};
}

StateDict state_of(const MeshPtr& mesh, const Placement& placement, GroupRank rank,
                   std::int64_t tensors) {
  StateDict state;
  state.tensors.reserve(static_cast<std::size_t>(tensors));
  for (std::int64_t t = 0; t < tensors; ++t) {
    TensorLeaf leaf{.key = "decoder.layers." + std::to_string(100000 + t) + ".mlp.fc1.weight",
                    .shape = shape_of(t)};
    leaf.pieces = {contiguous_piece(placement.box(leaf.shape, *mesh, rank))};
    leaf.replica = placement.replica(*mesh, rank);
    leaf.placed = Placed{mesh, placement};
    state.tensors.push_back(std::move(leaf));
  }
  return state;
}

/// Returns the encoded plan of each rank.
std::vector<Bytes> wires_of(const MeshPtr& mesh, const Placement& placement, std::int64_t tensors) {
  std::vector<Bytes> wires;
  for (std::int32_t r = 0; r < mesh->size(); ++r) {
    wires.push_back(encode(local_plan(state_of(mesh, placement, {r}, tensors), {r})));
  }
  return wires;
}

/// Returns the same encoded plan for every rank. Under one placement, the plans of real ranks
/// differ only in their objects.
std::vector<Bytes> alike(const MeshPtr& mesh, const Placement& placement, std::int64_t tensors) {
  return std::vector<Bytes>(static_cast<std::size_t>(mesh->size()),
                            encode(local_plan(state_of(mesh, placement, {0}, tensors), {0})));
}

double mebibytes_now() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / (1 << 20);
}

/// Measures the processor time of this thread. Planning uses one thread, and other load on the
/// machine must not affect the result.
class Timer {
 public:
  double seconds() const { return now() - start_; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  double start_ = now();
};

void report(benchmark::State& state, double seconds, double aim, std::uint64_t items, double mib) {
  state.counters["seconds"] = seconds;
  state.counters["aim_seconds"] = aim;
  state.counters["items"] = static_cast<double>(items);
  state.counters["peak_MiB"] = mib;
}

std::uint64_t items_of(const GlobalPlan& plan) {
  std::uint64_t items = 0;
  for (const auto& tensor : plan.tensors) items += tensor.owners.size();
  return items;
}

/// Adds the time of the passes over memory alone: reads the bytes of the ranks' plans once, and
/// fills fresh memory with as many boxes as the global plan holds, equal ones counted once. Orders
/// and proves nothing.
void add_bare(benchmark::State& state, const std::vector<Bytes>& wires, const GlobalPlan& plan) {
  std::set<const void*> held;
  std::size_t boxes = 0;
  for (const auto& tensor : plan.tensors) {
    if (held.insert(tensor.boxes.get()).second) boxes += tensor.boxes->size();
  }
  const std::vector<Box>& source = *plan.tensors.front().boxes;  // stays in the cache
  double best = 1e9;
  for (int turn = 0; turn < 3; ++turn) {
    const Timer timer;
    for (const Bytes& wire : wires) benchmark::DoNotOptimize(crc32_of(wire));
    std::vector<Box> filled;
    filled.reserve(boxes);
    while (filled.size() < boxes) {
      const std::size_t count = std::min(source.size(), boxes - filled.size());
      filled.insert(filled.end(), source.begin(),
                    source.begin() + static_cast<std::ptrdiff_t>(count));
    }
    benchmark::DoNotOptimize(filled.data());
    best = std::min(best, timer.seconds());
  }
  state.counters["bare_seconds"] = best;
  state.SetLabel(
      "bare: the ranks' plans are read once, and fresh memory is filled with as many boxes as the "
      "global plan holds");
}

/// Reports the fastest iteration, since other work on the machine can only add time. Returns the
/// plan.
GlobalPlan plan_saves(benchmark::State& state, const std::vector<Bytes>& wires, double aim) {
  double best = 1e9;
  double mib = 0;
  std::uint64_t items = 0;
  GlobalPlan made;
  for (auto _ : state) {
    made = {};
    const double before = mebibytes_now();
    std::optional<bench::PerfRecord> perf(std::in_place);
    const Timer timer;
    const auto plans = decode_local_plans(wires);
    GlobalPlan plan = global_plan(plans);
    best = std::min(best, timer.seconds());
    state.SetIterationTime(timer.seconds());
    perf.reset();
    mib = mebibytes_now() - before;
    items = items_of(plan);
    made = std::move(plan);
  }
  report(state, best, aim, items, mib);
  return made;
}

MeshPtr mesh_of(std::vector<Axis> axes) {
  return std::make_shared<const Mesh>(std::vector<Axis>(std::move(axes)));
}

/// Plans a save of 512 tensors on 2,048 ranks. Each rank holds a different chunk of each tensor.
void save_2048_ranks_512_tensors_placed(benchmark::State& state) {
  const auto mesh = mesh_of({{"tp", 8}, {"dp", 256}});
  plan_saves(state, wires_of(mesh, Placement({{"tp", 0}, {"dp", 0}}), 512), 0.05);
}
void save_2048_ranks_512_tensors(benchmark::State& state, BoxOf box_of) {
  constexpr std::int32_t kRanks = 2048;
  std::vector<Bytes> wires;
  for (std::int32_t r = 0; r < kRanks; ++r) {
    std::vector<TensorOffer> offers(512);
    for (std::size_t t = 0; t < offers.size(); ++t) {
      offers[t].form.key = "decoder.layers." + std::to_string(100000 + t) + ".mlp.fc1.weight";
      offers[t].boxes = {box_of(static_cast<std::int64_t>(t), r, kRanks, offers[t].form.shape)};
    }
    LocalPlan plan;
    plan.given = GivenOffers(offers);
    wires.push_back(encode(plan));
  }
  add_bare(state, wires, plan_saves(state, wires, 0.25));
}
void save_10240_ranks_3402_tensors(benchmark::State& state) {
  const auto mesh = mesh_of({{"tp", 8}, {"dp", 1280}});
  plan_saves(state, alike(mesh, Placement({{"tp", 0}, {"dp", 0}}), 3402), 2);
}

/// Plans a save of a rank's 1,000 tensors again, by the plan that was kept from the save before:
/// what planning costs a job whose structure does not change, apart from the way between ranks of
/// 16 bytes each.
void save_again_1000_tensors(benchmark::State& state) {
  constexpr std::int32_t kRanks = 1024;
  const auto mesh = mesh_of({{"tp", 8}, {"dp", kRanks / 8}});
  const auto plan = std::make_shared<const GlobalPlan>(
      global_plan(decode_local_plans(alike(mesh, Placement({{"tp", 0}, {"dp", 0}}), 1000))));
  StateDict own;
  for (const PlannedTensor& tensor : plan->tensors) {
    TensorLeaf leaf{.key = tensor.key, .dtype = tensor.dtype, .shape = tensor.shape};
    leaf.pieces = {contiguous_piece(tensor.boxes->front())};
    own.tensors.push_back(std::move(leaf));
  }
  PosixStore store(".");
  SoloFabric fabric;
  HostDevice device("node", 0);
  ThreadTasks tasks(1);
  NoTrace trace;
  const Ports ports{store, fabric, device, tasks, trace};
  const auto group = fabric.communicator(Group::world(1));
  PlanSlot slot;
  const Structure structure = structure_of(own, {0});
  const SaveScope scope{combined(std::vector{structure.signature}), 1, Group::world(1).members()};
  slot.kept = {scope, structure, plan, scope};
  const SaveSeams seams;
  double best = 1e9;
  for (auto _ : state) {
    const Timer timer;
    const SavePlan saved =
        plan_save(ports, *group, own, {.plan = seams.plan, .cache = seams.cache}, &slot);
    const bool whole = unplanned_keys(*saved.plan, own).empty();
    best = std::min(best, timer.seconds());
    state.SetIterationTime(timer.seconds());
    if (saved.planned != Planned::kReused || !whole) state.SkipWithError("the plan was not used");
  }
  report(state, best, 0.001, own.tensors.size(), 0);
}

void load_10240_to_7680_ranks(benchmark::State& state) {
  const auto saving = mesh_of({{"tp", 8}, {"dp", 1280}});
  const auto loading = mesh_of({{"tp", 4}, {"dp", 1920}});
  const auto stored =
      global_plan(decode_local_plans(alike(saving, Placement({{"tp", 0}, {"dp", 0}}), 3402)));
  const auto wires = alike(loading, Placement({{"tp", 0}, {"dp", 0}}), 3402);
  double best = 1e9;
  double mib = 0;
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    const double before = mebibytes_now();
    const Timer timer;
    const auto wanted = decode_local_plans(wires);
    const JobLoadPlan plan(stored, wanted, loading->members());
    items = 0;
    bytes = 0;
    for (std::int32_t r = 0; r < loading->size(); ++r) {
      plan.for_each_read({r}, [&](std::uint32_t, std::uint32_t, std::uint64_t part) {
        ++items;
        bytes += part;
      });
    }
    best = std::min(best, timer.seconds());
    state.SetIterationTime(timer.seconds());
    mib = mebibytes_now() - before;
  }
  std::uint64_t all = 0;
  for (std::int64_t t = 0; t < 3402; ++t)
    all += 4 * static_cast<std::uint64_t>(volume(shape_of(t)));
  if (bytes != all) state.SkipWithError("the reads do not add up to the tensors");
  report(state, best, 2, items, mib);
}

BENCHMARK(save_again_1000_tensors)->UseManualTime()->Iterations(50);
BENCHMARK(save_2048_ranks_512_tensors_placed)->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(save_2048_ranks_512_tensors, given_rows, rows)->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(save_2048_ranks_512_tensors, given_rows_of_512_shapes, rows_of_many_shapes)
    ->UseManualTime()
    ->Iterations(5);
BENCHMARK_CAPTURE(save_2048_ranks_512_tensors, given_bricks, bricks)
    ->UseManualTime()
    ->Iterations(3);
BENCHMARK(save_10240_ranks_3402_tensors)->UseManualTime()->Iterations(3);
BENCHMARK(load_10240_to_7680_ranks)->UseManualTime()->Iterations(3);

}  // namespace
}  // namespace reprise
