// Measures byte-exact round trips and plans per second, relative to the work that can't be avoided:
// see docs/speed.md. The times with two threads are valid only if two cores are idle.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "core/base/hash.hpp"
#include "core/base/sha256.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/geometry/compare.hpp"
#include "core/load/load_seamed.hpp"
#include "core/plan/load_plan.hpp"
#include "core/plan/save_plan.hpp"
#include "core/save/save.hpp"
#include "sim/fibers/fiber.hpp"
#include "sim/world/world.hpp"
#include "tests/bench/random_case.hpp"

namespace reprise {
namespace {

using bench::CaseBounds;
using bench::random_case;
using bench::RandomCase;
using bench::state_of;

constexpr CaseBounds kRoundTrip = {};
/// Limits for checkpoints with the same total size but few tensors. Measuring these shows which
/// costs do not depend on the number of tensors.
constexpr CaseBounds kFewTensors = {.tensors_min = 4, .tensors_max = 4};
constexpr CaseBounds kPlanOnly = {
    .ranks_min = 4, .ranks_max = 4, .tensors_min = 1, .tensors_max = 8, .bytes = 512};

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "round_trip_bench: %s\n", what.c_str());
  std::abort();
}

/// Generates cases that differ between threads and between iterations, but not between runs.
class Cases {
 public:
  explicit Cases(const benchmark::State& state)
      : draw_(Stream(2026).split(static_cast<std::uint64_t>(state.thread_index()))) {}
  Stream next() { return draw_.split(count_++); }

 private:
  Stream draw_;
  std::uint64_t count_ = 0;
};

void per_iteration(benchmark::State& state, const char* what, std::uint64_t count) {
  state.counters[what] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kAvgIterations);
}

/// Sets the rate that two threads are to reach together; 0 if none is required.
void aim_on_two_threads(benchmark::State& state, double per_second) {
  if (state.threads() != 2) return;
  state.counters["aim_per_second"] =
      benchmark::Counter(per_second, benchmark::Counter::kAvgThreads);
}

// ---------------------------------------------------------------- round trips of bytes

/// Calls visit(index in the tensor, index in the box, length) for each row of the box.
template <class Visit>
void each_row(const Dims& shape, const Box& box, const Visit& visit) {
  if (box.empty()) return;
  const std::size_t last = shape.size() - 1;
  const std::int64_t count = box.extent[last];
  Dims index = box.offset;
  for (std::int64_t done = 0; done < box.elements(); done += count) {
    visit(linear_index(index, shape), done, count);
    for (std::size_t d = last; d-- > 0;) {
      if (++index[d] < box.interval(d).end) break;
      index[d] = box.offset[d];
    }
  }
}

/// Returns the content of all tensors, one whole tensor after another. The bytes come from a
/// counter-based stream.
Bytes content_of(Stream stream, std::size_t bytes) {
  std::vector<std::uint64_t> words(bytes / 8 + 1);
  for (std::size_t n = 0; n < words.size(); ++n) words[n] = stream.at(n);
  const auto all = std::as_bytes(std::span(words)).first(bytes);
  return {all.begin(), all.end()};
}

/// One rank's leaves and their memory.
class RankMemory {
 public:
  RankMemory(const RandomCase& made, std::size_t side, GlobalRank rank)
      : state(state_of(made, side, {rank.value})) {
    std::size_t bytes = 0;
    for (const auto& leaf : state.tensors) bytes += bytes_of(leaf);
    memory_.assign(bytes, kPoison);
    std::size_t at = 0;
    for (auto& leaf : state.tensors) {
      leaf.data = memory_.data() + at;
      at += bytes_of(leaf);
    }
  }

  void fill(const Bytes& content) {
    each_run(content, [](DType, const std::byte* right, std::byte* mine, std::size_t bytes) {
      std::memcpy(mine, right, bytes);
    });
  }
  void poison() { std::fill(memory_.begin(), memory_.end(), kPoison); }

  Comparison compare(const Bytes& content) {
    Comparison all;
    each_run(content, [&](DType dtype, const std::byte* right, std::byte* mine, std::size_t bytes) {
      const auto count = static_cast<std::int64_t>(bytes / size_of(dtype));
      all.append(compare_elements(dtype, right, mine, count));
    });
    return all;
  }

  std::uint64_t elements() const {
    std::int64_t sum = 0;
    for (const auto& leaf : state.tensors) sum += leaf.pieces[0].box.elements();
    return static_cast<std::uint64_t>(sum);
  }

  StateDict state;

 private:
  static constexpr std::byte kPoison{0xA5};

  static std::size_t bytes_of(const TensorLeaf& leaf) {
    return static_cast<std::size_t>(leaf.pieces[0].box.elements()) * size_of(leaf.dtype);
  }

  template <class Visit>
  void each_run(const Bytes& content, const Visit& visit) {
    const std::byte* tensor = content.data();
    for (const auto& leaf : state.tensors) {
      const std::size_t width = size_of(leaf.dtype);
      each_row(leaf.shape, leaf.pieces[0].box,
               [&](std::int64_t global, std::int64_t local, std::int64_t count) {
                 visit(leaf.dtype, tensor + static_cast<std::size_t>(global) * width,
                       leaf.data + static_cast<std::size_t>(local) * width,
                       static_cast<std::size_t>(count) * width);
               });
      tensor += static_cast<std::size_t>(volume(leaf.shape)) * width;
    }
  }

  Bytes memory_;
};

/// Runs one life, in which every rank must return. Returns the number of port calls of all
/// ranks.
std::uint64_t run_world(const Mesh& mesh, Store& store,
                        const std::function<void(Ports&, GlobalRank)>& rank_main) {
  sim::World world({.seed = 1, .world_size = mesh.size()}, store);
  const sim::RunResult result = world.run(rank_main);
  for (const auto& rank : result.ranks) {
    if (rank.end == sim::RankEnd::kReturned) continue;
    give_up(rank.error ? rank.error->what() : "a rank did not return: " + rank.message);
  }
  return result.events;
}

/// Numbers of elements and of calls in one round trip.
struct Trip {
  std::uint64_t elements = 0;  ///< number of elements compared
  std::uint64_t calls = 0;     ///< number of calls to ports
};

/// Saves under one layout, loads under the other, and compares bit by bit.
Trip round_trip(Stream draw, const CaseBounds& bounds) {
  const RandomCase made = random_case(draw.split("case"), bounds);
  const Bytes content = content_of(draw.split("content"), bounds.bytes);
  sim::SimStore store;
  Trip trip;
  trip.calls += run_world(*made.mesh[0], store, [&](Ports& ports, GlobalRank rank) {
    RankMemory memory(made, 0, rank);
    memory.fill(content);
    memory.state.common = Dict{{"iteration", 1}, {"lr", 0.5}};
    auto group = ports.fabric.communicator(Group::world(ports.fabric.world_size()));
    auto save = Save::begin(ports, group, memory.state, {.directory = "run", .step = 1});
    memory.poison();  // the save has already copied the state
    save.finish();
  });
  ParsedMetadata parsed;  // the ranks of a simulated job share it
  trip.calls += run_world(*made.mesh[1], store, [&](Ports& ports, GlobalRank rank) {
    RankMemory memory(made, 1, rank);
    auto group = ports.fabric.communicator(Group::world(ports.fabric.world_size()));
    load(ports, *group, memory.state, {.directory = "run"}, {}, &parsed);
    const Comparison found = memory.compare(content);
    if (!found.same() || found.elements != memory.elements()) give_up("the state differs");
    trip.elements += found.elements;
  });
  return trip;
}

void round_trips(benchmark::State& state, CaseBounds bounds) {
  Cases cases(state);
  Trip all;
  for (auto _ : state) {
    const Trip trip = round_trip(cases.next(), bounds);
    all.elements += trip.elements;
    all.calls += trip.calls;
  }
  if (all.elements == 0) give_up("nothing was compared");
  state.SetItemsProcessed(state.iterations());
  per_iteration(state, "elements", all.elements);
  per_iteration(state, "calls", all.calls);
  aim_on_two_threads(state, bounds.tensors_max == kRoundTrip.tensors_max ? 1500 : 0);
}
BENCHMARK_CAPTURE(round_trips, twenty_tensors, kRoundTrip)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(round_trips, four_tensors, kFewTensors)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// ---------------------------------------------------------------- plans

/// Puts the plan's chunks into one file per owner, as a save does.
Catalog catalog_of(GlobalPlan plan) {
  Catalog catalog;
  std::vector<std::uint64_t> end(plan.bytes.size(), 0);
  for (std::size_t r = 0; r < plan.bytes.size(); ++r) catalog.files.push_back(std::to_string(r));
  for (auto& tensor : plan.tensors) {
    StoredTensor& stored = catalog.tensors.emplace_back();
    stored.key = std::move(tensor.key);
    stored.dtype = tensor.dtype;
    stored.shape = tensor.shape;
    for (std::size_t c = 0; c < tensor.owners.size(); ++c) {
      const Box& box = (*tensor.boxes)[c];
      const auto file = static_cast<FileIndex>(tensor.owners[c].value);
      const auto bytes = static_cast<std::uint64_t>(box.elements()) * size_of(tensor.dtype);
      stored.chunks.push_back({box, file, {end[file], bytes}});
      end[file] += bytes;
    }
  }
  return catalog;
}

/// Counts how many regions supply each wanted element. This is done element by element, without box
/// algebra. Each element must be supplied exactly once. Returns the number of elements.
std::uint64_t count_once(const StateDict& wanted, const LoadPlan& plan) {
  std::vector<std::size_t> first = {0};
  for (const auto& leaf : wanted.tensors) {
    first.push_back(first.back() + static_cast<std::size_t>(volume(leaf.shape)));
  }
  std::vector<std::uint8_t> given(first.back(), 0);
  const auto add = [&](std::size_t leaf, const Box& box, std::uint8_t count) {
    each_row(wanted.tensors[leaf].shape, box,
             [&](std::int64_t global, std::int64_t, std::int64_t length) {
               auto* at = given.data() + first[leaf] + global;
               for (std::int64_t i = 0; i < length; ++i) at[i] += count;
             });
  };
  std::uint64_t elements = 0;
  for (const auto& read : plan.reads) {
    for (const auto& target : read.targets) add(target.leaf, target.region, 1);
  }
  for (std::size_t l = 0; l < wanted.tensors.size(); ++l) {
    const Box& box = wanted.tensors[l].pieces[0].box;
    elements += static_cast<std::uint64_t>(box.elements());
    add(l, box, 255);  // a count of 1 plus 255 wraps to 0
  }
  for (const auto left : given) {
    if (left != 0) give_up("a wanted element is not given exactly once");
  }
  return elements;
}

/// Plans a save on all ranks, and a load on all ranks under another layout. Returns the number of
/// elements counted.
std::uint64_t plan_only(Stream draw) {
  const RandomCase made = random_case(draw, kPlanOnly);
  std::vector<LocalPlan> offers;
  for (std::int32_t rank = 0; rank < made.mesh[0]->size(); ++rank) {
    offers.push_back(local_plan(state_of(made, 0, {rank}), {rank}));
  }
  const Catalog catalog = catalog_of(global_plan(offers));
  std::uint64_t elements = 0;
  for (std::int32_t rank = 0; rank < made.mesh[1]->size(); ++rank) {
    const StateDict wanted = state_of(made, 1, {rank});
    const LoadPlan plan = load_plan(wanted.tensors, wanted.objects, catalog);
    if (!plan.mismatches.empty()) give_up(plan.mismatches.front().message);
    elements += count_once(wanted, plan);
  }
  return elements;
}

void plans_only(benchmark::State& state) {
  Cases cases(state);
  std::uint64_t elements = 0;
  for (auto _ : state) elements += plan_only(cases.next());
  if (elements == 0) give_up("nothing was planned");
  state.SetItemsProcessed(state.iterations());
  per_iteration(state, "elements", elements);
  aim_on_two_threads(state, 100'000);
}
BENCHMARK(plans_only)->Threads(1)->Threads(2)->UseRealTime()->Unit(benchmark::kMicrosecond);

// ---------------------------------------------------------------- limits

void per_state(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kRoundTrip.bytes));
}

/// Measures a lower bound: copying the state twice, out of the saver's memory and into the
/// loader's.
void copies_of_the_state(benchmark::State& state) {
  const Bytes content = content_of(Stream(1), kRoundTrip.bytes);
  Bytes stored(content.size());
  Bytes loaded(content.size());
  for (auto _ : state) {
    std::memcpy(stored.data(), content.data(), content.size());
    benchmark::ClobberMemory();
    std::memcpy(loaded.data(), stored.data(), content.size());
    benchmark::ClobberMemory();
  }
  per_state(state);
}
BENCHMARK(copies_of_the_state)->UseRealTime()->Unit(benchmark::kMicrosecond);

void crc32_of_the_state(benchmark::State& state) {
  const Bytes content = content_of(Stream(1), kRoundTrip.bytes);
  for (auto _ : state) benchmark::DoNotOptimize(crc32_of(content));
  per_state(state);
}
BENCHMARK(crc32_of_the_state)->UseRealTime()->Unit(benchmark::kMicrosecond);

/// Measures the cost of an integrity manifest; the round trips write none.
void sha256_of_the_state(benchmark::State& state) {
  const Bytes content = content_of(Stream(1), kRoundTrip.bytes);
  for (auto _ : state) benchmark::DoNotOptimize(sha256_of(content));
  per_state(state);
}
BENCHMARK(sha256_of_the_state)->UseRealTime()->Unit(benchmark::kMicrosecond);

void content_of_the_state(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(content_of(Stream(1), kRoundTrip.bytes));
  per_state(state);
}
BENCHMARK(content_of_the_state)->UseRealTime()->Unit(benchmark::kMicrosecond);

/// Measures how long it takes to generate a case.
void drawing_a_case(benchmark::State& state, CaseBounds bounds) {
  Cases cases(state);
  for (auto _ : state) benchmark::DoNotOptimize(random_case(cases.next(), bounds));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(drawing_a_case, round_trip, kRoundTrip)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(drawing_a_case, plan_only, kPlanOnly)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

/// Measures the cost of the two worlds of a round trip when their ranks do nothing.
void empty_worlds(benchmark::State& state) {
  Cases cases(state);
  for (auto _ : state) {
    Stream draw = cases.next();
    sim::SimStore store;
    for (int side = 0; side < 2; ++side) {
      run_world(*bench::random_mesh(draw, kRoundTrip), store, [](Ports&, GlobalRank) {});
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(empty_worlds)->UseRealTime()->Unit(benchmark::kMicrosecond);

void switches_of_a_fiber(benchmark::State& state) {
  bool more = true;
  sim::Fiber* self = nullptr;
  sim::Fiber fiber([&] {
    while (more) self->suspend();
  });
  self = &fiber;
  for (auto _ : state) fiber.resume();
  more = false;
  fiber.resume();
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(switches_of_a_fiber)->UseRealTime();

}  // namespace
}  // namespace reprise
