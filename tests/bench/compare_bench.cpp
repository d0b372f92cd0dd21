// Measures how fast two states in memory are compared, relative to merely reading both: see
// docs/speed.md.

#include <cstring>

#include "core/geometry/compare.hpp"
#include "tests/bench/beside.hpp"
#include "tests/bench/limit.hpp"

namespace reprise {
namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20U;  // size of each side
constexpr std::size_t kTensorBytes = std::size_t{32} << 20U;

/// Selects which elements are made to differ between the two sides.
enum class Differences { kNone, kOneInAMillion, kAll };

void spoil(MutableByteSpan right, DType dtype, Differences differences) {
  const std::size_t elements = right.size() / size_of(dtype);
  const std::size_t step = differences == Differences::kAll ? 1 : 1'000'000;
  for (std::size_t i = 0; differences != Differences::kNone && i < elements; i += step) {
    right[i * size_of(dtype)] ^= std::byte{1};
  }
}

std::uint64_t mismatches(DType dtype, ByteSpan left, ByteSpan right) {
  Comparison all;
  for (std::size_t at = 0; at < left.size(); at += kTensorBytes) {
    all.append(compare_elements(dtype, left.data() + at, right.data() + at,
                                static_cast<std::int64_t>(kTensorBytes / size_of(dtype))));
  }
  return all.bit_mismatches;
}

void compare(benchmark::State& state, DType dtype, Differences differences, double aim) {
  const bench::WarmMemory left(kBytes, 1);
  bench::WarmMemory right(kBytes, 1);
  spoil(right.bytes(), dtype, differences);
  std::uint64_t found = 0;
  std::uint64_t sum = 0;
  bench::measure(state, {.limit = "reading both sides", .bytes = 2 * kBytes, .aim = aim},
                 {{}, [&] { found = mismatches(dtype, left.bytes(), right.bytes()); }},
                 {{}, [&] { sum += bench::sum_of_two(left.bytes(), right.bytes(), 1); }});
  benchmark::DoNotOptimize(sum);
  const std::size_t elements = kBytes / size_of(dtype);
  const std::size_t expected = differences == Differences::kNone  ? 0
                               : differences == Differences::kAll ? elements
                                                                  : (elements - 1) / 1'000'000 + 1;
  if (found != expected) bench::give_up("the comparison is wrong");
}

/// True for the few types for which comparisons of equal blocks are measured, too. The speed of
/// these comparisons is the same for all types.
bool stands_for_others(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kBFloat16 || dtype == DType::kUInt8;
}

void register_rows() {
  struct Kind {
    const char* name;
    Differences differences;
    double aim;
  };
  for (const Kind& kind : {Kind{"equal", Differences::kNone, 0.9},
                           Kind{"one_in_a_million", Differences::kOneInAMillion, 0.9},
                           Kind{"all_different", Differences::kAll, 0}}) {
    for (const DType dtype : all_dtypes()) {
      if (kind.differences != Differences::kAll && !stands_for_others(dtype)) continue;
      const std::string name =
          std::string("compare/") + kind.name + "/" + std::string(name_of(dtype));
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        compare(state, dtype, kind.differences, kind.aim);
      })->Apply(bench::in_turns);
    }
  }
}

const bool kRegistered = (register_rows(), true);

}  // namespace
}  // namespace reprise
