// Measures the verbs that read whole checkpoints, relative to reading or writing the same bytes
// with as many threads: see docs/speed.md.

#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/frame/verb.hpp"
#include "cli/program.hpp"
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

bench::Row row_of(const Saved& saved, const std::string& limit, double aim) {
  return {.limit = limit, .bytes = saved.bytes(), .aim = aim, .threads = kThreads};
}

void verify(benchmark::State& state, Shape shape, double aim) {
  const Saved saved(shape);
  bench::measure(state, row_of(saved, "pread of the payload file", aim),
                 {{},
                  [&] {
                    run_verb({"verify", saved.path("a")});
                  }},
                 {{}, [&] { bench::read_through(saved.payload("a"), kThreads); }});
}

void diff(benchmark::State& state, Shape shape, double aim) {
  const Saved saved(shape);
  bench::measure(state, row_of(saved, "pread of both payload files", aim),
                 {{},
                  [&] {
                    run_verb({"diff", saved.path("a"), saved.path("b")});
                  }},
                 {{}, [&] {
                    bench::read_through(saved.payload("a"), kThreads);
                    bench::read_through(saved.payload("b"), kThreads);
                  }});
}

void digest_of_files(benchmark::State& state, DType dtype, double aim) {
  const Saved saved(kLarge, dtype);
  bench::measure(state, row_of(saved, "pread of the payload file", aim),
                 {{},
                  [&] {
                    run_verb({"digest", saved.path("a")});
                  }},
                 {{}, [&] { bench::read_through(saved.payload("a"), kThreads); }});
}

void sha256(benchmark::State& state) {
  const Saved saved(kLarge);
  const auto hash_all = [&] {
    benchmark::DoNotOptimize(bench::sha256_of_parts(saved.state.bytes(), kThreads));
  };
  bench::measure(state, row_of(saved, "SHA-256 of the same bytes in memory", 0.85),
                 {{},
                  [&] {
                    run_verb({"inspect", "--sha256", saved.path("a")});
                  }},
                 {{}, hash_all});
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
  const auto write_all = [&] {
    std::filesystem::create_directory(out);
    const std::size_t share = saved.bytes() / files;
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t file = t; file < files; file += kThreads) {
          bench::write_new_file(out + "/" + std::to_string(file),
                                saved.state.bytes().subspan(file * share, share), 1,
                                bench::Durable::kNo);
        }
      });
    }
  };
  bench::measure(state, row_of(saved, "pwrite of as many new files", aim),
                 {clear, [&] { run_verb(arguments); }}, {clear, write_all});
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
