// Measures how fast a state's tensors are digested, which 'reprise watch' and the witness do after
// each step of a job, relative to merely reading the memory: see docs/speed.md.

#include <algorithm>
#include <array>

#include "core/adapters/posix/host_device.hpp"
#include "core/api/calls.hpp"
#include "reprise/state.hpp"
#include "tests/bench/beside.hpp"
#include "tests/bench/limit.hpp"

namespace reprise {
namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20U;
constexpr std::size_t kTensors = 8;

void digest_rows(benchmark::State& state, DType dtype) {
  bench::WarmMemory memory(kBytes, 1);
  const auto columns = static_cast<std::int64_t>(kBytes / kTensors / size_of(dtype) / 1024);
  State held;
  for (std::size_t i = 0; i < kTensors; ++i) {
    const std::array<TensorPart, 1> part = {
        {{.offset = {0, 0},
          .extent = {1024, columns},
          .data = memory.bytes().data() + i * kBytes / kTensors}}};
    held.add("layer." + std::to_string(i), dtype, {1024, columns}, part);
  }
  HostDevice device("host", 0);
  std::array<std::uint64_t, kTensors> digests = {};
  std::uint64_t sum = 0;
  const ByteSpan half = memory.bytes().first(kBytes / 2);
  const ByteSpan rest = memory.bytes().last(kBytes / 2);
  bench::measure(state, {.limit = "reading the memory", .bytes = kBytes},
                 {{}, [&] { digest(held, device, digests); }},
                 {{}, [&] { sum += bench::sum_of_two(half, rest, 1); }});
  benchmark::DoNotOptimize(sum);
  const auto before = digests;
  memory.bytes()[kBytes - 1] ^= std::byte{1};
  digest(held, device, digests);
  if (!std::equal(before.begin(), before.end() - 1, digests.begin()) ||
      before.back() == digests.back()) {
    bench::give_up("one changed bit must change the digest of its tensor alone");
  }
}

void register_rows() {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kUInt8}) {
    const std::string name = "digest/" + std::string(name_of(dtype));
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      digest_rows(state, dtype);
    })->Apply(bench::in_turns);
  }
}

const bool kRegistered = (register_rows(), true);

}  // namespace
}  // namespace reprise
