// Tests the engine with NCCL as its data fabric: a load reads each byte once for all ranks.
#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "core/adapters/nccl/nccl_fabric.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "reprise/ports.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/fixtures/round_trip.hpp"
#include "tests/nccl/launch.hpp"

namespace reprise::contracts {
namespace {

using testing_job::mesh_of;
using testing_job::RankState;
using testing_job::TensorSpec;

constexpr std::uint64_t kSecond = 1'000'000'000;

/// The elements have 4 x 30000 bytes in "all" and 8 x 5000 bytes in "cut".
const std::vector<TensorSpec> kSpecs = {{"all", DType::kFloat32, {300, 100}, {}},
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

TEST(NcclEngine, what_all_ranks_need_is_read_once_and_spread_over_nccl) {
  on_ranks([](NcclRank& rank) {
    const auto bootstrap = rank.bootstrap(60 * kSecond);
    const Group world = Group::world(bootstrap->world_size());
    const auto outside = bootstrap->communicator(world);
    const SharedDirectory directory(*outside);
    NcclFabric fabric(*bootstrap, rank.clock(), {.deadline_ns = 60 * kSecond}, rank.device());
    PosixStore store(directory.path());
    HostDevice device("node", fabric.rank().value);
    ThreadTasks tasks(1);
    NoTrace trace;
    const Ports ports{store, *bootstrap, device, tasks, trace, &fabric};
    const auto mesh = mesh_of({{"tp", world.size()}});

    RankState saved(kSpecs, mesh, fabric.rank());
    testing_job::fill(saved.state);
    saved.state.common = Dict{{"iteration", Value(std::int64_t{3})}};
    SaveSettings options;
    options.target = CommitTarget::iteration("run", Step{3});
    Save::begin(ports, outside, saved.state, options).finish();

    RankState loaded(kSpecs, mesh, fabric.rank());
    LoadSettings once;
    once.path = "run";
    once.reads = Reads::kOncePerJob;
    const LoadReport report = load(ports, *outside, loaded.state, once);
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
