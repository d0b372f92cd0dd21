// Measures the reads of a load under another layout: see docs/speed.md. Compares the number of
// bytes read, counted at the store, with the number of bytes needed. Also compares the speed with
// that of reading the same number of bytes with pread.

#include "core/geometry/piece.hpp"
#include "tests/bench/bare.hpp"
#include "tests/bench/beside.hpp"
#include "tests/bench/limit.hpp"
#include "tests/bench/solo_rank.hpp"

namespace reprise {
namespace {

/// A tensor [rows, columns] of fp32 that is split into a grid of blocks, as evenly as possible.
struct Grid {
  std::int64_t rows = 1;
  std::int64_t columns = 1;

  std::int64_t size() const { return rows * columns; }
  Box block(const Dims& shape, std::int64_t n) const {
    const std::int64_t r = n / columns;
    const std::int64_t c = n % columns;
    const auto cut = [](std::int64_t extent, std::int64_t parts, std::int64_t part) {
      return extent * part / parts;
    };
    const Dims begin = {cut(shape[0], rows, r), cut(shape[1], columns, c)};
    const Dims end = {cut(shape[0], rows, r + 1), cut(shape[1], columns, c + 1)};
    return {begin, {end[0] - begin[0], end[1] - begin[1]}};
  }
};

/// One stored chunk for each block of `from`; one loading rank for each block of `to`.
struct ReshardRow {
  Grid from;
  Grid to;
  Dims shape;
  double read_over_needed_max = 1.05;
};

constexpr std::size_t kWidth = 4;

/// Returns a state with the tensor "w". Its pieces `boxes` are consecutive in `memory`.
StateDict state_of(const Dims& shape, const std::vector<Box>& boxes, std::byte* memory) {
  StateDict state;
  TensorLeaf& leaf = state.tensors.emplace_back();
  leaf.key = "w";
  leaf.dtype = DType::kFloat32;
  leaf.shape = shape;
  leaf.data = memory;
  std::int64_t local = 0;
  for (const Box& box : boxes) {
    leaf.pieces.push_back({box, local, contiguous_strides(box.extent)});
    local += box.elements();
  }
  return state;
}

std::vector<Box> blocks_of(const Dims& shape, const Grid& grid) {
  std::vector<Box> boxes;
  for (std::int64_t n = 0; n < grid.size(); ++n) boxes.push_back(grid.block(shape, n));
  return boxes;
}

/// Compares each rank's block in `loaded` with the same elements in `saved`. In both, the blocks
/// are consecutive.
void require_equal(const ReshardRow& row, ByteSpan saved, ByteSpan loaded) {
  const auto whole = [&](const Grid& grid, ByteSpan blocks) {
    Bytes tensor(blocks.size());
    std::size_t at = 0;
    for (const Box& box : blocks_of(row.shape, grid)) {
      const auto first = static_cast<std::size_t>(linear_index(box.offset, row.shape)) * kWidth;
      copy_strided({blocks.data() + at, contiguous_strides(box.extent)},
                   {tensor.data() + first, contiguous_strides(row.shape)}, box.extent, kWidth);
      at += static_cast<std::size_t>(box.elements()) * kWidth;
    }
    return tensor;
  };
  if (whole(row.from, saved) != whole(row.to, loaded)) bench::give_up("the tensors differ");
}

/// Loads the shares of all ranks of the new layout, one after the other. To measure the limit, the
/// payload file is read once.
void reshard(benchmark::State& state, const ReshardRow& row) {
  const auto bytes = static_cast<std::size_t>(volume(row.shape)) * kWidth;
  const bench::Place place = bench::Place::tmpfs();
  bench::SoloRank rank(place.path());
  bench::WarmMemory saved(bytes, 4);
  rank.save(state_of(row.shape, blocks_of(row.shape, row.from), saved.bytes().data()),
            {.directory = "ckpt"});
  bench::WarmMemory loaded(bytes, 5);
  std::vector<StateDict> wanted;
  std::size_t at = 0;
  for (const Box& box : blocks_of(row.shape, row.to)) {
    wanted.push_back(state_of(row.shape, {box}, loaded.bytes().data() + at));
    at += static_cast<std::size_t>(box.elements()) * kWidth;
  }
  std::uint64_t needed = 0;
  const LoadOptions options{.directory = "ckpt"};
  const auto load_all = [&] {
    needed = 0;
    for (StateDict& into : wanted) needed += rank.load(into, options).bytes_needed;
  };
  bench::BareCalls bare(place.path(), wanted, options, loaded.bytes());
  const auto limit = [&] { bench::read_file(place.file("ckpt/__0_0.distcp"), loaded.bytes(), 1); };
  bench::measure(state,
                 {.limit = "pread of the payload file",
                  .bytes = bytes,
                  .aim = 0.5,
                  .bare = "the same calls of preadv, and copies of the same runs to their places"},
                 {{}, load_all}, {{}, limit}, {{}, [&] { bare.load(); }});
  for (const auto& load : {std::function<void()>(load_all), {[&] { bare.load(); }}}) {
    limit();  // overwrites the memory with other bytes
    load();
    require_equal(row, saved.bytes(), loaded.bytes());
  }
  if (needed != bytes) bench::give_up("not all bytes were needed");
  const auto read = bare.count(".distcp");
  state.counters["read_over_needed"] =
      static_cast<double>(read.bytes) / static_cast<double>(needed);
  state.counters["aim_read_over_needed"] = row.read_over_needed_max;
  state.counters["reads"] = static_cast<double>(read.calls);
}

const Dims kMatrix = {8192, 4096};  // 128 MiB: rows of 16 KiB
const Dims kUneven = {8191, 4099};  // dimensions that no grid divides evenly
const Dims kTall = {262'144, 128};  // rows of 512 bytes

BENCHMARK_CAPTURE(reshard, rows_1_to_8, ReshardRow{{1, 1}, {8, 1}, kMatrix})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(reshard, rows_8_to_3, ReshardRow{{8, 1}, {3, 1}, kMatrix})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(reshard, rows_8_to_3_uneven, ReshardRow{{8, 1}, {3, 1}, kUneven})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(reshard, rows_to_columns, ReshardRow{{4, 1}, {1, 4}, kMatrix})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(reshard, rows_to_columns_uneven, ReshardRow{{3, 1}, {1, 8}, kUneven})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(reshard, columns_to_rows, ReshardRow{{1, 4}, {4, 1}, kMatrix})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(reshard, columns_1_to_8, ReshardRow{{1, 1}, {1, 8}, kMatrix})
    ->Apply(bench::in_turns);
// A rank needs two thirds of a row of some stored chunks, of 2 KiB each, and reads the rest, too.
BENCHMARK_CAPTURE(reshard, columns_8_to_3_uneven, ReshardRow{{1, 8}, {1, 3}, kUneven, 1.25})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(reshard, grid_2x4_to_4x2, ReshardRow{{2, 4}, {4, 2}, kMatrix})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(reshard, grid_3x3_to_2x5_uneven, ReshardRow{{3, 3}, {2, 5}, kUneven})
    ->Apply(bench::in_turns);
// A rank needs 128 bytes of each row, so it reads the 384 between them too.
BENCHMARK_CAPTURE(reshard, short_rows_to_columns, ReshardRow{{4, 1}, {1, 4}, kTall, 4})
    ->Apply(bench::in_turns);
BENCHMARK_CAPTURE(reshard, short_columns_to_rows, ReshardRow{{1, 4}, {4, 1}, kTall})
    ->Apply(bench::in_turns);

}  // namespace
}  // namespace reprise
