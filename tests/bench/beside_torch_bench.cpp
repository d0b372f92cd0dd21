// Runs our side of tests/interop/beside_torch.py. Executes commands, one per line, and answers each
// with the seconds that it took, so that both sides can take turns on the same bytes.
//
//   in                                   out
//   content PATH                         maps the file that both sides use
//   state TENSORS ROWS COLUMNS           bf16; the tensors are consecutive in the content
//   save DIR none|crc32 STAGING_MIB      seconds, seconds until the job may continue
//   load DIR ignored|verified DIM PARTS  seconds of all parts, bytes read, bytes needed
//   plan RANKS TENSORS                   seconds of local plans, seconds of the global plan, items
//   cover TENSORS ROWS COLUMNS           seconds of the proofs for grids of ROWS x COLUMNS
//   owners FILE                          seconds, shards, shards owned by another rank
//   compare DTYPE BYTES THREADS          seconds, mismatches, max_delta of content's halves
//
// A command that fails is answered with "error" and the reason.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "core/adapters/local/solo_fabric.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/geometry/compare.hpp"
#include "core/load/load.hpp"
#include "core/plan/cover.hpp"
#include "core/save/save.hpp"
#include "tests/core/plan/owners_case.hpp"

namespace reprise {
namespace {

using Words = std::istringstream;
constexpr int kThreads = 2;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// One rank and its ports.
struct Rank {
  explicit Rank(const std::string& directory) : store(directory) {}

  PosixStore store;
  SoloFabric fabric;
  HostDevice device{"bench", 0};
  ThreadTasks tasks{kThreads - 1};
  NoTrace trace;
  Ports ports{store, fabric, device, tasks, trace};
  std::shared_ptr<Communicator> group = fabric.communicator(Group::world(1));
};

/// The file with the tensors' elements. PyTorch's side uses the same file.
class Content {
 public:
  void map(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status = {};
    if (fd < 0 || ::fstat(fd, &status) != 0) throw Error(Code::kNotFound, "cannot open " + path);
    size_ = static_cast<std::size_t>(status.st_size);
    void* const at =
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) throw Error(Code::kNotFound, "cannot map " + path);
    data_ = static_cast<std::byte*>(at);
  }
  MutableByteSpan first(std::size_t bytes) const {
    if (bytes > size_) throw Error(Code::kUsage, "the content is too small");
    return {data_, bytes};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

std::string take(Words& words) {
  std::string word;
  if (!(words >> word)) throw Error(Code::kUsage, "a word is missing");
  return word;
}
std::int64_t take_number(Words& words) { return std::stoll(take(words)); }

std::string key_of(std::int64_t tensor) {
  const std::string digits = std::to_string(tensor);
  return "layers." + std::string(5 - digits.size(), '0') + digits + ".weight";
}

std::string answer(const std::vector<double>& numbers) {
  std::ostringstream out;
  out.precision(9);
  for (const double number : numbers) out << (out.tellp() > 0 ? " " : "") << number;
  return out.str();
}

class Worker {
 public:
  std::string answer_to(const std::string& line) {
    Words words(line);
    const std::string verb = take(words);
    const auto known = verbs_.find(verb);
    if (known == verbs_.end()) throw Error(Code::kUsage, "no such verb: " + verb);
    return (this->*known->second)(words);
  }

 private:
  std::string content(Words& words) {
    content_.map(take(words));
    return "";
  }

  std::string state(Words& words) {
    tensors_ = take_number(words);
    shape_ = {take_number(words), 0};
    shape_[1] = take_number(words);
    bytes_each_ = static_cast<std::size_t>(volume(shape_)) * size_of(kType);
    target_ = Bytes(static_cast<std::size_t>(tensors_) * bytes_each_, std::byte{0xA5});
    return "";
  }

  std::string save(Words& words) {
    const std::string directory = take(words);
    SaveOptions options{.directory = "ckpt"};
    options.checksums = take(words) == "crc32" ? Checksums::kCrc32 : Checksums::kNone;
    options.staging_bytes = static_cast<std::uint64_t>(take_number(words)) << 20U;
    Rank rank(directory);
    const auto source = content_.first(target_.size());
    const StateDict saved = leaves(Box::whole(shape_), source.data());
    double until_begun = 0;
    const double all = seconds_of([&] {
      std::optional<Save> save;
      until_begun = seconds_of([&] { save = Save::begin(rank.ports, rank.group, saved, options); });
      save->finish();
    });
    return answer({all, until_begun});
  }

  /// Loads the share of each rank in turn, as if that rank had the machine to itself.
  std::string load(Words& words) {
    const std::string directory = take(words);
    const LoadOptions options{.directory = "ckpt",
                              .excused = {},
                              .checksums = take(words) == "verified" ? LoadChecksums::kVerified
                                                                     : LoadChecksums::kIgnored};
    const auto dimension = static_cast<std::size_t>(take_number(words));
    const std::int64_t parts = take_number(words);
    Rank rank(directory);
    double all = 0;
    LoadResult sum;
    for (std::int64_t part = 0; part < parts; ++part) {
      Box box = Box::whole(shape_);
      const Interval mine = ceil_chunk(shape_[dimension], parts, part);
      box.offset[dimension] = mine.begin;
      box.extent[dimension] = mine.length();
      std::fill(target_.begin(), target_.end(), std::byte{0xA5});
      StateDict loaded = leaves(box, target_.data());
      all += seconds_of([&] {
        const LoadResult report = reprise::load(rank.ports, *rank.group, loaded, options);
        sum.bytes_read += report.bytes_read;
        sum.bytes_needed += report.bytes_needed;
      });
      check(box, loaded);
    }
    return answer(
        {all, static_cast<double>(sum.bytes_read), static_cast<double>(sum.bytes_needed)});
  }

  std::string plan(Words& words);
  std::string cover(Words& words);
  std::string owners(Words& words);
  std::string compare(Words& words);

  /// Returns a state that contains `box` of each tensor. The tensors' data are consecutive in
  /// memory, starting at `data`.
  StateDict leaves(const Box& box, std::byte* data) const {
    StateDict state;
    for (std::int64_t t = 0; t < tensors_; ++t) {
      TensorLeaf& leaf = state.tensors.emplace_back();
      leaf.key = key_of(t);
      leaf.dtype = kType;
      leaf.shape = shape_;
      leaf.pieces = {contiguous_piece(box)};
      leaf.data = data + static_cast<std::size_t>(t * box.elements()) * size_of(kType);
    }
    return state;
  }

  /// Checks that the loaded bytes equal the content.
  void check(const Box& box, const StateDict& loaded) const {
    const auto all = content_.first(target_.size());
    const auto row = static_cast<std::size_t>(box.extent[1]) * size_of(kType);
    for (std::size_t t = 0; t < loaded.tensors.size(); ++t) {
      for (std::int64_t i = 0; i < box.extent[0]; ++i) {
        const Dims first = {box.offset[0] + i, box.offset[1]};
        const auto at = static_cast<std::size_t>(linear_index(first, shape_)) * size_of(kType);
        if (std::memcmp(all.data() + t * bytes_each_ + at,
                        loaded.tensors[t].data + static_cast<std::size_t>(i) * row, row) != 0) {
          throw Error(Code::kChecksum, "another content was loaded",
                      {.key = loaded.tensors[t].key});
        }
      }
    }
  }

  static constexpr DType kType = DType::kBFloat16;
  static const std::map<std::string, std::string (Worker::*)(Words&)> verbs_;

  Content content_;
  std::int64_t tensors_ = 0;
  Dims shape_;
  std::size_t bytes_each_ = 0;
  Bytes target_;
};

// ---------------------------------------------------------------- commands that plan

/// Returns the rank's leaves, with no memory behind them. Each tensor's rows are split by dp, its
/// columns by tp.
StateDict planned_leaves(const std::shared_ptr<const Mesh>& mesh, GroupRank rank,
                         std::int64_t tensors) {
  const Placement split({{"dp", 0}, {"tp", 1}});
  const std::int64_t rows = std::max<std::int64_t>(64, mesh->axis_size("dp"));
  StateDict state;
  for (std::int64_t t = 0; t < tensors; ++t) {
    TensorLeaf& leaf = state.tensors.emplace_back();
    leaf.key = key_of(t);
    leaf.shape = {rows * (1 + t % 20), 128};
    leaf.pieces = {contiguous_piece(split.box(leaf.shape, *mesh, rank))};
    leaf.placed = Placed{mesh, split};
  }
  return state;
}

std::string Worker::plan(Words& words) {
  const auto ranks = static_cast<std::int32_t>(take_number(words));
  const std::int64_t tensors = take_number(words);
  const auto mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 8}, {"dp", ranks / 8}});
  std::vector<LocalPlan> plans;
  double local = 0;
  for (std::int32_t r = 0; r < ranks; ++r) {
    const StateDict state = planned_leaves(mesh, {r}, tensors);
    local += seconds_of([&] { plans.push_back(local_plan(state, {r})); });
  }
  GlobalPlan global;
  const double all = seconds_of([&] { global = global_plan(plans); });
  std::size_t items = 0;
  for (const auto& tensor : global.tensors) items += tensor.owners.size();
  return answer({local, all, static_cast<double>(items)});
}

std::string Worker::cover(Words& words) {
  const std::int64_t tensors = take_number(words);
  const std::int64_t rows = take_number(words);
  const std::int64_t columns = take_number(words);
  std::vector<std::vector<Box>> boxes(static_cast<std::size_t>(tensors));
  for (auto& grid : boxes) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) grid.push_back({{4 * i, 4 * j}, {4, 4}});
    }
  }
  bool whole = true;
  const double all = seconds_of([&] {
    for (const auto& grid : boxes) whole = whole && !prove_cover({4 * rows, 4 * columns}, grid);
  });
  if (!whole) throw Error(Code::kCoverageGap, "a grid has a gap");
  return answer({all});
}

std::string Worker::owners(Words& words) {
  std::ifstream file(take(words));
  const OwnersCase expected = read_owners_case(file);
  GlobalPlan found;
  const double all = seconds_of([&] { found = global_plan(expected.plans); });
  const auto others = owned_otherwise(expected, found);
  return answer(
      {all, static_cast<double>(expected.shards.size()), static_cast<double>(others.size())});
}

std::string Worker::compare(Words& words) {
  const std::string name = take(words);
  const DType dtype = name == "float32" ? DType::kFloat32 : DType::kBFloat16;
  const auto half = static_cast<std::size_t>(take_number(words));
  const auto threads = static_cast<std::size_t>(take_number(words));
  const auto both = content_.first(2 * half);
  std::vector<Comparison> parts(threads);
  const std::size_t step = half / threads;
  const auto part = [&](std::size_t t) {
    parts[t] = compare_elements(dtype, both.data() + t * step, both.data() + half + t * step,
                                static_cast<std::int64_t>(step / size_of(dtype)));
  };
  const double all = seconds_of([&] {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < threads; ++t) others.emplace_back(part, t);
    part(0);
  });
  Comparison sum;
  for (const auto& one : parts) sum.append(one);
  return answer({all, static_cast<double>(sum.bit_mismatches), sum.max_delta});
}

const std::map<std::string, std::string (Worker::*)(Words&)> Worker::verbs_ = {
    {"content", &Worker::content}, {"state", &Worker::state},    {"save", &Worker::save},
    {"load", &Worker::load},       {"plan", &Worker::plan},      {"cover", &Worker::cover},
    {"owners", &Worker::owners},   {"compare", &Worker::compare}};

}  // namespace
}  // namespace reprise

int main() {
  reprise::Worker worker;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << worker.answer_to(line) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "error " << error.what() << std::endl;
    }
  }
}
