// Tests the engine with NCCL as its data fabric: a load reads each byte once for all ranks.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/adapters/nccl/nccl_fabric.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "reprise/ports.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/fixtures/round_trip.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/nccl/launch.hpp"

namespace reprise::contracts {
namespace {

using testing_job::mesh_of;
using testing_job::RankState;
using testing_job::TensorSpec;

constexpr std::uint64_t kSecond = 1'000'000'000;

/// The elements have 4 x 30000 bytes in "all", 4 x 7000 in "more" and 8 x 5000 bytes in "cut".
const std::vector<TensorSpec> kSpecs = {{"all", DType::kFloat32, {300, 100}, {}},
                                        {"more", DType::kFloat32, {70, 100}, {}},
                                        {"cut", DType::kFloat64, {5000}, Placement({{"tp", 0}})}};
constexpr std::uint64_t kAllBytes = 120'000;

/// A directory that rank 0 creates for all ranks and removes at the end.
class SharedDirectory {
 public:
  explicit SharedDirectory(Communicator& ranks) {
    if (ranks.rank() == GroupRank{0}) own_.emplace();
    path_ = as_text(ranks.broadcast({0}, as_bytes(own_ ? own_->path() : "")));
  }
  const std::string& path() const { return path_; }

 private:
  std::optional<TemporaryDirectory> own_;
  std::string path_;
};

/// Tensors of a rank in the memory of its GPU.
class GpuState {
 public:
  GpuState(CudaDevice& device, const RankState& like) : state_(like.state) {
    for (auto& leaf : state_.tensors) {
      const auto bytes =
          static_cast<std::size_t>(leaf.pieces.front().box.elements()) * size_of(leaf.dtype);
      memory_.push_back(std::make_unique<testing_gpu::OnDevice>(device, Bytes(bytes)));
      leaf.data = memory_.back()->data();
    }
  }
  StateDict& state() { return state_; }
  /// Copies all tensors to those of `host`, which has the same.
  void read_into(const StateDict& host) const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const Bytes bytes = memory_[i]->read();
      std::copy(bytes.begin(), bytes.end(), host.tensors[i].data);
    }
  }

 private:
  StateDict state_;
  std::vector<std::unique_ptr<testing_gpu::OnDevice>> memory_;
};

void save_filled(const Ports& ports, const std::shared_ptr<Communicator>& ranks,
                 const RankState& saved) {
  StateDict state = saved.state;
  testing_job::fill(state);
  state.common = Dict{{"iteration", Value(std::int64_t{3})}};
  SaveOptions options;
  options.directory = "run";
  options.step = 3;
  Save::begin(ports, ranks, state, options).finish();
}

LoadOptions once_per_job(LoadChecksums checksums) {
  LoadOptions once;
  once.directory = "run";
  once.reads = Reads::kOncePerJob;
  once.checksums = checksums;
  return once;
}

/// Passes all calls on, and counts where gathers ended.
class CountedFabric final : public Fabric {
 public:
  explicit CountedFabric(Fabric& inner) : inner_(inner) {}
  GlobalRank rank() const override { return inner_.rank(); }
  std::int32_t world_size() const override { return inner_.world_size(); }
  std::shared_ptr<Communicator> communicator(const Group& group) override {
    return std::make_shared<Member>(*this, inner_.communicator(group));
  }

  std::uint64_t on_devices = 0;
  std::uint64_t on_hosts = 0;

 private:
  class Member final : public Communicator {
   public:
    Member(CountedFabric& fabric, std::shared_ptr<Communicator> inner)
        : fabric_(fabric), inner_(std::move(inner)) {}
    const Group& group() const override { return inner_->group(); }
    GroupRank rank() const override { return inner_->rank(); }
    void barrier() override { inner_->barrier(); }
    std::vector<Bytes> all_gather(ByteSpan mine) override {
      ++fabric_.on_hosts;
      return inner_->all_gather(mine);
    }
    const std::byte* all_gather_on_device(std::uint64_t share, ByteSpan mine) override {
      const std::byte* const there = inner_->all_gather_on_device(share, mine);
      if (there != nullptr) ++fabric_.on_devices;
      return there;
    }
    Bytes broadcast(GroupRank root, ByteSpan bytes) override {
      return inner_->broadcast(root, bytes);
    }
    std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override {
      return inner_->all_reduce(how, mine);
    }

   private:
    CountedFabric& fabric_;
    std::shared_ptr<Communicator> inner_;
  };

  Fabric& inner_;
};

/// Returns where gathers must have ended.
struct Ends {
  bool on_devices = false;
  bool on_hosts = false;
};
Ends ends_of(std::int32_t ranks, LoadChecksums checksums, std::uint64_t piece_bytes) {
  if (ranks == 1) return {};
  if (checksums == LoadChecksums::kVerified) return {.on_devices = false, .on_hosts = true};
  return {.on_devices = true, .on_hosts = piece_bytes < kAllBytes};
}

/// Other ranks' shares pass through the hosts if the CPU computes checksums, or if the round is
/// larger than the fabric's memory on the device. Rounds are large and small.
TEST(NcclEngine, what_all_ranks_need_is_read_once_and_goes_from_gpu_to_gpu) {
  on_ranks([](NcclRank& rank) {
    const auto bootstrap = rank.bootstrap(60 * kSecond);
    const Group world = Group::world(bootstrap->world_size());
    const auto outside = bootstrap->communicator(world);
    const SharedDirectory directory(*outside);
    PosixStore store(directory.path());
    HostDevice host("node", bootstrap->rank().value);
    ThreadTasks tasks(2);
    NoTrace trace;
    const auto mesh = mesh_of({{"tp", world.size()}});
    const RankState held(kSpecs, mesh, bootstrap->rank());
    save_filled({store, *bootstrap, host, tasks, trace}, outside, held);
    for (const std::uint64_t piece : {std::uint64_t{1} << 20U, std::uint64_t{1} << 16U}) {
      NcclFabric fabric(*bootstrap, rank.clock(),
                        {.deadline_ns = 60 * kSecond, .piece_bytes = piece}, rank.device());
      CudaDevice gpu("node", rank.device());
      CountedFabric counted(fabric);
      const Ports ports{store, *bootstrap, gpu, tasks, trace, &counted};
      for (const std::uint64_t staging : {std::uint64_t{1} << 26U, std::uint64_t{8192}}) {
        for (const auto checksums : {LoadChecksums::kIgnored, LoadChecksums::kVerified}) {
          testing_job::each_element(held.state, [](const TensorLeaf&, std::byte* element, auto) {
            *element = ~*element;
          });
          GpuState loaded(gpu, held);
          LoadOptions once = once_per_job(checksums);
          once.staging_bytes = staging;
          const LoadResult report = load(ports, *outside, loaded.state(), once);
          loaded.read_into(held.state);
          EXPECT_EQ(testing_job::wrong_elements(held.state), 0U);
          EXPECT_LE(report.peak_staging, report.bound_staging);
          const Ends ends = ends_of(world.size(), checksums, piece);
          // A round of all records is larger than a small piece, one of "more" alone is not.
          const bool one_round = staging > kAllBytes && piece < kAllBytes;
          EXPECT_EQ(std::exchange(counted.on_devices, 0) > 0, ends.on_devices && !one_round);
          EXPECT_EQ(std::exchange(counted.on_hosts, 0) > 0, ends.on_hosts);
          const std::vector<std::int64_t> own = {static_cast<std::int64_t>(report.bytes_for_all)};
          const auto read = outside->all_reduce(Reduce::kSum, own)[0];
          EXPECT_EQ(read > std::int64_t{kAllBytes}, world.size() > 1);
          EXPECT_LT(read, std::int64_t{2 * kAllBytes});
        }
      }
      fabric.close();
    }
    outside->barrier();
  });
}

/// Mebibytes of the state that is loaded to measure the rate: few, unless the user asks for more.
std::int64_t rate_mib() {
  const char* const asked = std::getenv("REPRISE_READ_ONCE_MIB");
  return asked != nullptr ? std::stoll(asked) : 1;
}

TEST(NcclEngine, tells_the_rate_at_which_all_ranks_get_what_is_read_once) {
  on_ranks([](NcclRank& rank) {
    const auto bootstrap = rank.bootstrap(600 * kSecond);
    const Group world = Group::world(bootstrap->world_size());
    const auto outside = bootstrap->communicator(world);
    const SharedDirectory directory(*outside);
    PosixStore store(directory.path());
    HostDevice host("node", bootstrap->rank().value);
    ThreadTasks tasks(4);
    NoTrace trace;
    const std::vector<TensorSpec> specs = {
        {"all", DType::kFloat64, {rate_mib(), std::int64_t{1} << 17U}, {}}};
    RankState held(specs, mesh_of({{"tp", world.size()}}), bootstrap->rank());
    save_filled({store, *bootstrap, host, tasks, trace}, outside, held);
    NcclFabric fabric(*bootstrap, rank.clock(), {.deadline_ns = 600 * kSecond}, rank.device());
    CudaDevice gpu("node", rank.device());
    GpuState loaded(gpu, held);
    std::vector<double> seconds;
    for (int turn = 0; turn < 3; ++turn) {
      outside->barrier();
      const auto begin = std::chrono::steady_clock::now();
      load({store, *bootstrap, gpu, tasks, trace, &fabric}, *outside, loaded.state(),
           once_per_job(LoadChecksums::kIgnored));
      outside->barrier();
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      seconds.push_back(taken.count());
    }
    loaded.read_into(held.state);
    EXPECT_EQ(testing_job::wrong_elements(held.state), 0U);
    const double best = *std::min_element(seconds.begin(), seconds.end());
    if (bootstrap->rank() == GlobalRank{0}) {
      std::printf("read once: %lld MiB for each of %d ranks in %.3f s, %.2f GB/s a rank\n",
                  static_cast<long long>(rate_mib()), world.size(), best,
                  static_cast<double>(rate_mib()) * 1.048576e-3 / best);
    }
    fabric.close();
    outside->barrier();
  });
}

TEST(NcclEngine, what_all_ranks_need_is_read_once_and_spread_over_nccl) {
  on_ranks([](NcclRank& rank) {
    const auto bootstrap = rank.bootstrap(60 * kSecond);
    const Group world = Group::world(bootstrap->world_size());
    const auto outside = bootstrap->communicator(world);
    const SharedDirectory directory(*outside);
    NcclFabric fabric(*bootstrap, rank.clock(),
                      {.deadline_ns = 60 * kSecond, .piece_bytes = kFewBytes}, rank.device());
    PosixStore store(directory.path());
    HostDevice device("node", fabric.rank().value);
    ThreadTasks tasks(1);
    NoTrace trace;
    const Ports ports{store, *bootstrap, device, tasks, trace, &fabric};
    const auto mesh = mesh_of({{"tp", world.size()}});

    save_filled(ports, outside, RankState(kSpecs, mesh, fabric.rank()));
    RankState loaded(kSpecs, mesh, fabric.rank());
    const LoadResult report =
        load(ports, *outside, loaded.state, once_per_job(LoadChecksums::kIgnored));
    const std::vector<std::int64_t> own = {static_cast<std::int64_t>(report.bytes_for_all)};
    const auto read = outside->all_reduce(Reduce::kSum, own)[0];
    if (world.size() > 1) {
      EXPECT_GE(report.bytes_for_all, kAllBytes / static_cast<std::uint64_t>(world.size()) - 1);
      EXPECT_LT(read, std::int64_t{2 * kAllBytes});
    }
    EXPECT_EQ(testing_job::wrong_elements(loaded.state), 0U);
    fabric.close();
    outside->barrier();
  });
}

}  // namespace
}  // namespace reprise::contracts
