// Measures how fast the state in a GPU's memory is saved, loaded and compared. The rates are
// relative to those of the GPU's bus and memory: see docs/gpu.md. Without a GPU, the program says
// so and measures nothing.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/adapters/cuda/cuda_compare.hpp"
#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/save/phases.hpp"
#include "sim/cuda/cuda_processor.hpp"
#include "tests/bench/beside.hpp"
#include "tests/bench/equal_tensors.hpp"
#include "tests/bench/gpu_limit.hpp"
#include "tests/bench/limit.hpp"
#include "tests/bench/run.hpp"
#include "tests/bench/solo_rank.hpp"

namespace reprise {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
/// Number of threads that write files: the rank's own thread and one more.
constexpr int kThreads = 2;
/// Numbers of threads that read, besides the rank's own.
constexpr int kReaders[] = {1, 4, 8, 16};
constexpr int kReadersOfMost = 4;  ///< in rows that name no number

struct Shape {
  std::size_t tensors;
  std::size_t bytes_each;
};
constexpr Shape kLarge = {8, 128 * kMiB};
constexpr Shape kSmall = {10'000, kMiB / 16};

void wait_for(CudaStreamRef stream) {
  CudaEvent event(stream.device);
  event.record(stream);
  event.wait();
}

/// A state of equally large tensors in a GPU's memory.
class GpuTensors {
 public:
  GpuTensors(CudaDevice& device, Shape shape, std::uint64_t seed)
      : device_(device),
        host_(shape.tensors, shape.bytes_each, seed),
        memory_(device.identity().index, host_.bytes().size()),
        state(host_.state) {
    copy_bytes(device.compute_stream(), host_.bytes().data(), memory_.data(), memory_.size());
    wait_for(device.compute_stream());
    for (auto& leaf : state.tensors)
      leaf.data = memory_.data() + (leaf.data - host_.bytes().data());
  }
  ByteSpan bytes() const { return {memory_.data(), memory_.size()}; }
  /// Ends the program if `other` has different content.
  void require_same(const GpuTensors& other) {
    const auto found =
        compare_on_device(device_, DType::kUInt8, memory_.data(), other.memory_.data(),
                          static_cast<std::int64_t>(memory_.size()));
    if (!found.same()) bench::give_up("what was loaded is not what was saved");
  }

 private:
  CudaDevice& device_;
  bench::EqualTensors host_;
  DeviceMemory memory_;

 public:
  StateDict state;
};

/// Measures only the bus: copies the same number of bytes to or from pinned memory.
class Bus {
 public:
  Bus(CudaDevice& device, std::size_t bytes)
      : stream_(device.compute_stream()),
        device_(stream_.device, bytes),
        host_(stream_.device, bytes) {}
  void to_host() { copy(device_.data(), host_.data()); }
  void to_device() { copy(host_.data(), device_.data()); }
  MutableByteSpan host() { return host_.bytes(); }

 private:
  void copy(const std::byte* source, std::byte* target) {
    copy_bytes(stream_, source, target, host_.size());
    wait_for(stream_);
  }
  CudaStreamRef stream_;
  DeviceMemory device_;
  PinnedMemory host_;
};

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Returns options that limit staging to twice the size of the state. One size is not enough,
/// because the bytes around the elements are staged, too.
SaveOptions options_for(std::size_t bytes) {
  return {.directory = "ckpt", .staging_bytes = 2 * bytes};
}

/// Adds how long each of the phases took in the mean.
void count_phases(benchmark::State& state, bench::SoloRank& rank,
                  std::initializer_list<std::string_view> phases) {
  for (const std::string_view phase : phases) {
    state.counters[std::string(phase) + "_ms"] = rank.phases().mean_ms(std::string(phase));
  }
}

struct Snapshot {
  const char* name;
  Shape shape;
  BeginReturns returns = BeginReturns::kWhenCopied;
  bool plan_kept = false;  ///< from the save before, as a job's second save has it
  double aim = 0;          ///< of the ratio; 0 if none is required
  double aim_seconds = 0;  ///< until begin() returns; 0 if none is required
};
constexpr Snapshot kSnapshots[] = {
    {.name = "large", .shape = kLarge, .aim = 0.9},
    {.name = "small", .shape = kSmall, .aim = 0.35},
    {.name = "small/plan_kept", .shape = kSmall, .plan_kept = true, .aim = 0.9},
    {.name = "large/queued",
     .shape = kLarge,
     .returns = BeginReturns::kWhenQueued,
     .aim_seconds = 0.002},
    {.name = "small/queued",
     .shape = kSmall,
     .returns = BeginReturns::kWhenQueued,
     .aim_seconds = 0.022},
    {.name = "small/queued_plan_kept",
     .shape = kSmall,
     .returns = BeginReturns::kWhenQueued,
     .plan_kept = true,
     .aim_seconds = 0.006},
};

/// Measures how long a save blocks the job, which is the time until begin() returns. The files are
/// written in the background and not included in this time. The job has reserved staging before, so
/// no memory is pinned meanwhile.
void snapshot(benchmark::State& state, const Snapshot& row) {
  CudaDevice device("bench", 0);
  SaveOptions options = options_for(row.shape.tensors * row.shape.bytes_each);
  options.returns = row.returns;
  device.reserve(*options.staging_bytes);
  GpuTensors tensors(device, row.shape, 4);
  Bus bus(device, tensors.bytes().size());
  const bench::Place place = bench::Place::tmpfs();
  bench::SoloRank rank(place.path(), device);
  if (row.plan_kept) rank.keep_plans();
  std::optional<Save> save;
  const auto end_save = [&] {
    if (save) save->finish();
    save.reset();
    std::filesystem::remove_all(place.file("ckpt"));
  };
  std::vector<double> taken;
  const auto begin = [&] {
    taken.push_back(seconds_of([&] { save = rank.begin(tensors.state, options); }));
  };
  bench::measure(state,
                 {.limit = "one copy from the device to pinned memory",
                  .bytes = tensors.bytes().size(),
                  .aim = row.aim},
                 {end_save, begin}, {end_save, [&] { bus.to_host(); }});
  end_save();
  if (row.aim_seconds != 0) {
    std::nth_element(taken.begin(), taken.begin() + taken.size() / 2, taken.end());
    state.counters["seconds"] = taken[taken.size() / 2];
    state.counters["aim_seconds"] = row.aim_seconds;
    state.counters["items"] = static_cast<double>(row.shape.tensors);
  }
  count_phases(state, rank, {phase::kPlan, phase::kStage});
}

/// Measures the device port alone: gathers of a batch each into staging, two on their way at a
/// time. A batch has a copy for each tensor or part of one that is in it.
void gather(benchmark::State& state, Shape shape) {
  CudaDevice device("bench", 0);
  GpuTensors tensors(device, shape, 4);
  const ByteSpan bytes = tensors.bytes();
  Bus bus(device, bytes.size());
  const StagingMemory staging = device.staging(bytes.size());
  const auto batch = static_cast<std::size_t>(device.batch_bytes());
  std::vector<GatherCopy> copies;
  const auto queue = [&](std::size_t at) {
    copies.clear();
    const std::size_t end = std::min(at + batch, bytes.size());
    while (at < end) {
      const std::size_t next = std::min(end, (at / shape.bytes_each + 1) * shape.bytes_each);
      copies.push_back({{bytes.data() + at, {1}},
                        {staging.get() + at, {1}},
                        {static_cast<std::int64_t>(next - at)}});
      at = next;
    }
    return device.gather(copies);
  };
  const auto all = [&] {
    std::optional<DeviceEvent> before;
    for (std::size_t at = 0; at < bytes.size(); at += batch) {
      const DeviceEvent queued = queue(at);
      if (before) device.wait(*before);
      before = queued;
    }
    device.wait(*before);
  };
  bench::measure(state,
                 {.limit = "one copy from the device to pinned memory", .bytes = bytes.size()},
                 {{}, all}, {{}, [&] { bus.to_host(); }});
}

/// Runs both pieces of work and returns the one that took longer. A save must do both, so the
/// slower one limits its speed.
bench::Work slower(const bench::Work& one, const bench::Work& other) {
  const auto time = [](const bench::Work& work) {
    if (work.prepare) work.prepare();
    return seconds_of(work.run);
  };
  for (const auto* work : {&one, &other}) time(*work);
  return time(one) > time(other) ? one : other;
}

void save_to_memory(benchmark::State& state, Shape shape) {
  CudaDevice device("bench", 0);
  GpuTensors tensors(device, shape, 4);
  GpuTensors loaded(device, shape, 5);
  Bus bus(device, tensors.bytes().size());
  const bench::Place place = bench::Place::tmpfs();
  bench::SoloRank rank(place.path(), device);
  const auto clear = [&place] {
    for (const char* name : {"ckpt", "limit"}) std::filesystem::remove_all(place.file(name));
  };
  const bench::Work write{clear, [&] {
                            bench::write_new_file(place.file("limit"), bus.host(), kThreads,
                                                  bench::Durable::kNo);
                          }};
  bench::measure(
      state,
      {.limit = "the slower of pwrite to a new file in /dev/shm and a copy to pinned memory",
       .bytes = tensors.bytes().size(),
       .threads = kThreads},
      {clear, [&] { rank.save(tensors.state, options_for(tensors.bytes().size())); }},
      slower(write, {{}, [&] { bus.to_host(); }}));
  clear();
  rank.save(tensors.state, options_for(tensors.bytes().size()));
  rank.load(loaded.state, {.directory = "ckpt"});
  loaded.require_same(tensors);
}

enum class LoadLimit : std::uint8_t { kBus, kPageCache };

void warm_load(benchmark::State& state, Shape shape, LoadLimit limit, int readers) {
  CudaDevice device("bench", 0);
  GpuTensors saved(device, shape, 4);
  GpuTensors loaded(device, shape, 5);
  Bus bus(device, saved.bytes().size());
  const bench::Place place = bench::Place::tmpfs();
  bench::SoloRank rank(place.path(), device, readers);
  rank.save(saved.state, {.directory = "ckpt"});
  const std::string file = place.file("ckpt/__0_0.distcp");
  const bool over_bus = limit == LoadLimit::kBus;
  bench::measure(state,
                 {.limit = over_bus ? "one copy from pinned memory to the device"
                                    : "pread of the payload file into pinned memory",
                  .bytes = saved.bytes().size(),
                  .threads = readers},
                 {{}, [&] { rank.load(loaded.state, {.directory = "ckpt"}); }},
                 {{}, [&] {
                    if (over_bus) {
                      bus.to_device();
                    } else {
                      bench::read_file(file, bus.host(), readers);
                    }
                  }});
  loaded.require_same(saved);
  count_phases(state, rank, {phase::kMetadata, phase::kLoadPlan, phase::kRead});
}

void compare(benchmark::State& state, DType dtype) {
  CudaDevice device("bench", 0);
  GpuTensors left(device, {4, 512 * kMiB}, 4);
  GpuTensors right(device, {4, 512 * kMiB}, 4);
  const auto elements = static_cast<std::int64_t>(left.bytes().size() / size_of(dtype));
  std::uint64_t sum = 0;
  bench::measure(
      state, {.limit = "reading both sides", .bytes = 2 * left.bytes().size(), .aim = 0.9},
      {{},
       [&] {
         const auto found =
             compare_on_device(device, dtype, left.bytes().data(), right.bytes().data(), elements);
         if (!found.same()) bench::give_up("the comparison is wrong");
       }},
      {{}, [&] { sum += bench::sum_of_two_on_device(device, left.bytes(), right.bytes()); }});
  benchmark::DoNotOptimize(sum);
}

/// Returns the part of the memory's speed that the digest is to reach. An H100 has 29.6e12
/// instructions of lanes a second, and an element takes 27 (tests/kernels/kernels.tsv), so one-byte
/// elements can reach 0.37 of 2.9 TB/s: three quarters of that is the aim, and 0.9 where memory is
/// the limit.
double digest_aim(DType dtype) {
  return std::min(0.275 * static_cast<double>(size_of(dtype)), 0.9);
}

/// Measures the computation of the job's content digest, which reads every element once.
void digest(benchmark::State& state, DType dtype) {
  CudaDevice device("bench", 0);
  GpuTensors tensors(device, {1, 1024 * kMiB}, 4);
  TensorLeaf leaf = tensors.state.tensors.front();
  leaf.dtype = dtype;
  leaf.shape = {static_cast<std::int64_t>(tensors.bytes().size() / size_of(dtype))};
  leaf.pieces = {contiguous_piece({{0}, leaf.shape})};
  const auto processor = sim::make_cuda_processor(device);
  const std::size_t half = tensors.bytes().size() / 2;
  std::uint64_t sum = 0;
  bench::measure(state,
                 {.limit = "reading it", .bytes = tensors.bytes().size(), .aim = digest_aim(dtype)},
                 {{}, [&] { sum += sim::leaf_digest(*processor, leaf, 1); }},
                 {{}, [&] {
                    sum += bench::sum_of_two_on_device(device, tensors.bytes().first(half),
                                                       tensors.bytes().subspan(half));
                  }});
  benchmark::DoNotOptimize(sum);
}

void register_row(const std::string& name, std::function<void(benchmark::State&)> row) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(row))->Apply(bench::in_turns);
}

void register_rows() {
  for (const Snapshot& row : kSnapshots) {
    register_row("gpu_snapshot/" + std::string(row.name),
                 [row](benchmark::State& state) { snapshot(state, row); });
  }
  struct Sized {
    const char* name;
    Shape shape;
  };
  for (const Sized sized : {Sized{"large", kLarge}, Sized{"small", kSmall}}) {
    const std::string name = sized.name;
    const Shape shape = sized.shape;
    register_row("gpu_gather/" + name, [shape](benchmark::State& state) { gather(state, shape); });
    register_row("gpu_save_to_memory/" + name,
                 [shape](benchmark::State& state) { save_to_memory(state, shape); });
    register_row("gpu_warm_load_beside_bus/" + name, [shape](benchmark::State& state) {
      warm_load(state, shape, LoadLimit::kBus, kReadersOfMost);
    });
    for (const int readers : kReaders) {
      const std::string by = readers == kReadersOfMost ? "" : "/by_" + std::to_string(readers);
      std::string row = "gpu_warm_load_beside_pread/";
      row += name + by;
      register_row(row, [shape, readers](benchmark::State& state) {
        warm_load(state, shape, LoadLimit::kPageCache, readers);
      });
    }
  }
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kUInt8}) {
    register_row("gpu_compare/equal/" + std::string(name_of(dtype)),
                 [dtype](benchmark::State& state) { compare(state, dtype); });
    register_row("gpu_digest/" + std::string(name_of(dtype)),
                 [dtype](benchmark::State& state) { digest(state, dtype); });
  }
}

}  // namespace
}  // namespace reprise

constexpr int kNotRun = 3;  // exit status of `reprise` that means "not run"

int main(int argc, char** argv) {
  if (reprise::cuda_devices().empty()) {
    const bool with_cuda = !reprise::cuda_version().empty();
    const std::string why = with_cuda ? reprise::cuda_why_none() : "built without CUDA";
    std::printf("not run: no GPU: %s\n", why.c_str());
    return kNotRun;
  }
  reprise::register_rows();
  return reprise::bench::run_benchmarks(argc, argv);
}
