// Measures the verbs that read whole checkpoints, relative to reading or writing the same bytes
// with as many threads: see docs/speed.md.

#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/frame/verb.hpp"
#include "cli/program.hpp"
#include "core/base/sha256.hpp"
#include "core/digest/run_digest.hpp"
#include "core/format/zip/crc32.hpp"
#include "tests/bench/beside.hpp"
#include "tests/bench/equal_tensors.hpp"
#include "tests/bench/limit.hpp"
#include "tests/bench/solo_rank.hpp"

namespace reprise {
namespace {

constexpr int kThreads = 2;
constexpr std::size_t kMiB = std::size_t{1} << 20U;

struct Shape {
  std::size_t tensors;
  std::size_t bytes_each;
};
constexpr Shape kLarge = {32, 32 * kMiB};
constexpr Shape kSmall = {10'000, kMiB / 16};

/// Runs the program with these arguments.
void run_verb(std::vector<std::string> arguments) {
  static const cli::Verbs verbs = cli::all_verbs();
  arguments.insert(arguments.end(), {"--jobs", std::to_string(kThreads), "--quiet"});
  std::ostringstream said;
  const auto code = cli::run_program(arguments, verbs, {.out = said, .err = said});
  if (code != cli::ExitCode::kPass)
    bench::give_up(arguments.front() + " did not pass: " + said.str());
}

/// Two equal checkpoints of one file each, in memory.
struct Saved {
  explicit Saved(Shape shape, std::optional<DType> dtype = {})
      : state(shape.tensors, shape.bytes_each, 4) {
    for (auto& tensor : state.state.tensors) {
      if (!dtype) break;
      tensor.dtype = *dtype;
      tensor.shape = {static_cast<std::int64_t>(shape.bytes_each / size_of(*dtype))};
      tensor.pieces = {contiguous_piece(Box::whole(tensor.shape))};
    }
    bench::SoloRank rank(place.path());
    rank.save(state.state, {.directory = "a"});
    std::filesystem::copy(path("a"), path("b"));
  }
  std::string path(const std::string& name) const { return place.file(name); }
  std::string payload(const std::string& ckpt) const { return path(ckpt + "/__0_0.distcp"); }
  std::uint64_t bytes() const { return state.bytes().size(); }

  bench::Place place = bench::Place::tmpfs();
  bench::EqualTensors state;
};

bench::Row row_of(const Saved& saved, const std::string& limit, double aim,
                  const std::string& bare = {}) {
  return {.limit = limit, .bytes = saved.bytes(), .aim = aim, .threads = kThreads, .bare = bare};
}

void verify(benchmark::State& state, Shape shape, double aim) {
  const Saved saved(shape);
  const auto sum = [](bench::Blocks blocks) { benchmark::DoNotOptimize(crc32_of(blocks[0])); };
  bench::measure(state,
                 row_of(saved, "pread of the payload file", aim,
                        "pread of the payload file, and the CRC-32 of each block"),
                 {{},
                  [&] {
                    run_verb({"verify", saved.path("a")});
                  }},
                 {{}, [&] { bench::read_through(saved.payload("a"), kThreads); }},
                 {{}, [&] { bench::read_through({saved.payload("a")}, kThreads, sum); }});
}

void diff(benchmark::State& state, Shape shape, double aim) {
  const Saved saved(shape);
  const auto compare = [&](bench::Blocks blocks) {
    for (const auto block : blocks) benchmark::DoNotOptimize(crc32_of(block));
    if (std::memcmp(blocks[0].data(), blocks[1].data(), blocks[0].size()) != 0) {
      bench::give_up("the files differ");
    }
  };
  bench::measure(
      state,
      row_of(saved, "pread of both payload files", aim,
             "pread of both payload files, the CRC-32 of each block, and memcmp of the two"),
      {{},
       [&] {
         run_verb({"diff", saved.path("a"), saved.path("b")});
       }},
      {{},
       [&] {
         bench::read_through(saved.payload("a"), kThreads);
         bench::read_through(saved.payload("b"), kThreads);
       }},
      {{}, [&] {
         bench::read_through({saved.payload("a"), saved.payload("b")}, kThreads, compare);
       }});
}

/// Digests the bytes as elements of `Word`.
template <class Word>
void digest_block(bench::Blocks blocks) {
  const auto bytes = blocks[0];
  benchmark::DoNotOptimize(run_digest<Word>(
      {1, 0, bytes.data(), static_cast<std::int64_t>(bytes.size() / sizeof(Word))}));
}

void digest_of_files(benchmark::State& state, DType dtype, double aim) {
  const Saved saved(kLarge, dtype);
  const auto digest = size_of(dtype) == 1   ? digest_block<std::uint8_t>
                      : size_of(dtype) == 2 ? digest_block<std::uint16_t>
                                            : digest_block<std::uint32_t>;
  bench::measure(state,
                 row_of(saved, "pread of the payload file", aim,
                        "pread of the payload file, and the digest of its elements in memory"),
                 {{},
                  [&] {
                    run_verb({"digest", saved.path("a")});
                  }},
                 {{}, [&] { bench::read_through(saved.payload("a"), kThreads); }},
                 {{}, [&] { bench::read_through({saved.payload("a")}, kThreads, digest); }});
}

void sha256(benchmark::State& state) {
  const Saved saved(kLarge);
  const auto hash_all = [&] {
    benchmark::DoNotOptimize(bench::sha256_of_parts(saved.state.bytes(), kThreads));
  };
  const auto hash = [](bench::Blocks blocks) {
    benchmark::DoNotOptimize(crc32_of(blocks[0]));
    benchmark::DoNotOptimize(sha256_of(blocks[0]));
  };
  bench::measure(state,
                 row_of(saved, "SHA-256 of the same bytes in memory", 0.85,
                        "pread of the payload file, its CRC-32 and its SHA-256"),
                 {{},
                  [&] {
                    run_verb({"inspect", "--sha256", saved.path("a")});
                  }},
                 {{}, hash_all},
                 {{}, [&] { bench::read_through({saved.payload("a")}, kThreads, hash); }});
}

/// Writes a copy of the checkpoint's elements; the limit writes as many bytes into as many new
/// files, which is slower than reading them.
void write_copy(benchmark::State& state, Shape shape, std::size_t files, double aim,
                const std::vector<std::string>& verb) {
  const Saved saved(shape);
  const std::string out = saved.path("out");
  const auto clear = [&] { std::filesystem::remove_all(out); };
  std::vector<std::string> arguments = verb;
  arguments.insert(arguments.end(), {saved.path("a"), out});
  const std::size_t share = saved.bytes() / files;
  /// Calls write(number, path) for each new file, on as many threads.
  const auto each_file = [&](const std::function<void(std::size_t, const std::string&)>& write) {
    std::filesystem::create_directory(out);
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t n = t; n < files; n += kThreads) write(n, out + "/" + std::to_string(n));
      });
    }
  };
  const auto write_all = [&] {
    each_file([&](std::size_t n, const std::string& path) {
      bench::write_new_file(path, saved.state.bytes().subspan(n * share, share), 1,
                            bench::Durable::kNo);
    });
  };
  const auto copy_all = [&] {
    each_file([&](std::size_t n, const std::string& path) {
      bench::copy_part(saved.payload("a"), n * share, share, path);
    });
  };
  bench::measure(state,
                 row_of(saved, "pwrite of as many new files", aim,
                        "pread of the payload file, its CRC-32, pwrite of as many new files, and "
                        "pread of these with their CRC-32"),
                 {clear, [&] { run_verb(arguments); }}, {clear, write_all}, {clear, copy_all});
}

const std::vector<std::string> kReshard = {"reshard", "--ranks", "4"};
const std::vector<std::string> kExport = {"export", "--max-shard", "256MiB"};

BENCHMARK_CAPTURE(verify, large, kLarge, 0.85)->Apply(bench::in_turns);
BENCHMARK_CAPTURE(verify, small, kSmall, 0)->Apply(bench::in_turns);
BENCHMARK_CAPTURE(diff, large, kLarge, 0.85)->Apply(bench::in_turns);
BENCHMARK_CAPTURE(diff, small, kSmall, 0)->Apply(bench::in_turns);
BENCHMARK_CAPTURE(digest_of_files, float32, DType::kFloat32, 0.5)->Apply(bench::in_turns);
BENCHMARK_CAPTURE(digest_of_files, bfloat16, DType::kBFloat16, 0.5)->Apply(bench::in_turns);
BENCHMARK_CAPTURE(digest_of_files, uint8, DType::kUInt8, 0)->Apply(bench::in_turns);
BENCHMARK(sha256)->Apply(bench::in_turns);
BENCHMARK_CAPTURE(write_copy, reshard_large, kLarge, 4, 0.7, kReshard)->Apply(bench::in_turns);
BENCHMARK_CAPTURE(write_copy, reshard_small, kSmall, 4, 0, kReshard)->Apply(bench::in_turns);
BENCHMARK_CAPTURE(write_copy, export_large, kLarge, 4, 0, kExport)->Apply(bench::in_turns);

}  // namespace
}  // namespace reprise
