// Tests that a load which reads once for the job survives the failure of each single call of CUDA
// and NCCL, on each of its ranks: its ranks have the right bytes, or all of them throw the failure
// of the rank that had it. Nobody waits longer than the deadlines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/nccl/nccl_fabric.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/agree/agreement.hpp"
#include "core/load/load.hpp"
#include "core/save/save.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/models/nccl/ranks.hpp"

namespace reprise::models {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kDataDeadlineNs = 5 * kSecond;
constexpr std::uint64_t kDeadlineNs = 2 * kDataDeadlineNs;
/// The data fabric's deadline passes once, and then the other's at most twice.
constexpr std::uint64_t kEndNs = kDataDeadlineNs + 2 * kDeadlineNs;
constexpr std::int64_t kColumns = 700;

/// Work that has ended when start() returns.
struct DoneTasks final : Tasks {
  struct Done final : Task {
    std::exception_ptr failure;
    bool done() override { return true; }
    void wait() override {
      if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
    }
  };
  std::unique_ptr<Task> start(std::function<void()> work) override {
    auto task = std::make_unique<Done>();
    try {
      work();
    } catch (const std::exception&) {
      task->failure = std::current_exception();
    }
    return task;
  }
};

Bytes content() {
  Bytes bytes(3 * kColumns * 4);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

/// One tensor that every rank holds whole.
StateDict state_over(std::byte* data) {
  StateDict state;
  TensorLeaf leaf;
  leaf.key = "w";
  leaf.dtype = DType::kFloat32;
  leaf.shape = {3, kColumns};
  leaf.pieces = {{{{0, 0}, leaf.shape}, 0, {kColumns, 1}}};
  leaf.data = data;
  state.tensors.push_back(leaf);
  return state;
}

/// Holds what a rank owns until its process ends.
struct Process {
  std::unique_ptr<Fabric> bootstrap;
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<NcclFabric> fabric;
  std::unique_ptr<DeviceMemory> memory;

  Bytes read() const {
    Bytes bytes(memory->size());
    copy_bytes(device->compute_stream(), memory->data(), bytes.data(), bytes.size());
    return bytes;
  }
};

/// True if the error is the failure of a call that the model let fail.
bool is_the_cause(const Error& error) {
  const std::string text = error.what();
  return text.find("the model lets this call fail") != std::string::npos ||
         text.find("out of memory") != std::string::npos ||
         text.find("an error of the model of NCCL") != std::string::npos;
}

/// Returns what belonged to ranks that failed. Such a process ends without freeing anything.
std::vector<std::unique_ptr<Process>>& ended() {
  static auto* const all = new std::vector<std::unique_ptr<Process>>;  // NOLINT
  return *all;
}

class FailingNcclCalls : public testing::TestWithParam<bool> {
 protected:
  static constexpr std::int32_t kRanks = 3;

  void SetUp() override {
    ModelRanks ranks(1, {});
    const auto end = ranks.run([&](ModelRank& rank) {
      const auto bootstrap = rank.bootstrap(kDeadlineNs);
      PosixStore store(directory_.path());
      CudaDevice device("node", 0);
      DoneTasks tasks;
      NoTrace trace;
      const testing_gpu::OnDevice saved(device, content());
      const Ports ports{store, *bootstrap, device, tasks, trace};
      Save::begin(ports, bootstrap->communicator(Group::world(1)), state_over(saved.data()),
                  {.directory = "ckpt"})
          .finish();
    });
    ASSERT_FALSE(end.errors[0]) << end.errors[0]->what();
  }

  /// Loads on all ranks. Returns what each of them holds then.
  RanksEnd load_with_failing(std::uint64_t failing, bool sticky) {
    Settings cuda{.schedule = Schedule::kLatest};
    cuda.failing_call = failing;
    cuda.sticky = sticky;
    ModelRanks ranks(kRanks, cuda);
    right_ = 0;
    return ranks.run([&](ModelRank& rank) {
      ::setenv("NCCL_HOSTID", std::to_string(rank.rank().value).c_str(), 1);
      take_environment();
      auto own = std::make_unique<Process>();
      try {
        load_on(rank, *own);
      } catch (const std::exception&) {
        ended().push_back(std::move(own));
        throw;
      }
    });
  }

  contracts::TemporaryDirectory directory_;
  std::int32_t right_ = 0;          ///< ranks with the right bytes
  std::int32_t without_room_ = -1;  ///< the rank whose device has no room for a communicator

 private:
  void load_on(ModelRank& rank, Process& own) {
    own.bootstrap = rank.bootstrap(kDeadlineNs);
    own.device = std::make_unique<CudaDevice>("node", 0);
    own.fabric = std::make_unique<NcclFabric>(*own.bootstrap, rank.clock(),
                                              NcclLimits{.deadline_ns = kDataDeadlineNs,
                                                         .piece_bytes = contracts::kFewBytes,
                                                         .watch = &rank.watch()},
                                              0);
    own.memory = std::make_unique<DeviceMemory>(0, content().size());
    PosixStore store(directory_.path());
    DoneTasks tasks;
    NoTrace trace;
    const Ports ports{store, *own.bootstrap, *own.device, tasks, trace, own.fabric.get()};
    const auto group = own.bootstrap->communicator(Group::world(kRanks));
    StateDict into = state_over(own.memory->data());
    LoadOptions settings;
    settings.directory = "ckpt";
    settings.reads = Reads::kOncePerJob;
    if (rank.rank().value == without_room_) let_device_memory_run_out();
    const LoadResult report = load(ports, *group, into, settings);
    EXPECT_GT(report.bytes_for_all, 0U);
    if (own.read() == content()) ++right_;
    own.fabric->close();
  }
};

TEST_P(FailingNcclCalls, are_one_error_on_all_ranks_or_the_bytes_are_right) {
  const RanksEnd sound = load_with_failing(0, false);
  for (const auto& error : sound.errors) ASSERT_FALSE(error) << error->what();
  ASSERT_EQ(right_, kRanks);
  ASSERT_EQ(live_communicators(), 0U);
  const std::uint64_t all = calls();
  RecordProperty("calls", static_cast<int>(all));
  const std::uint64_t step = std::getenv("REPRISE_FEW") != nullptr ? 7 : 1;
  std::uint64_t told = 0;
  for (std::uint64_t failing = 1; failing <= all; failing += step) {
    SCOPED_TRACE("call " + std::to_string(failing) + " of " + std::to_string(all));
    const RanksEnd end = load_with_failing(failing, GetParam());
    const auto failed = std::count_if(end.errors.begin(), end.errors.end(),
                                      [](const auto& error) { return error.has_value(); });
    EXPECT_FALSE(end.hang) << end.hang->what();
    EXPECT_LT(end.ns, kEndNs);
    EXPECT_THAT(faults(), testing::IsEmpty());
    EXPECT_GE(failed + right_, kRanks) << "a rank has wrong bytes, and no error";
    const auto causes = std::count_if(end.errors.begin(), end.errors.end(), [](const auto& error) {
      return error && is_the_cause(*error);
    });
    EXPECT_EQ(failed > 0, causes > 0) << "the cause is told";
    for (const auto& error : end.errors) {
      if (!error) continue;
      EXPECT_TRUE(is_the_cause(*error) || is_about_a_peer(*error)) << error->what();
    }
    if (causes == kRanks) ++told;
  }
  EXPECT_GT(told, 0U);
  reset({});
}

TEST_P(FailingNcclCalls, for_lack_of_room_on_a_rank_make_bytes_go_over_the_host) {
  for (without_room_ = 0; without_room_ < kRanks; ++without_room_) {
    const RanksEnd end = load_with_failing(0, false);
    for (const auto& error : end.errors) EXPECT_FALSE(error) << error->what();
    EXPECT_EQ(right_, kRanks) << without_room_;
    EXPECT_THAT(faults(), testing::IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Once, FailingNcclCalls, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(FromThenOn, FailingNcclCalls, testing::Values(true));

}  // namespace
}  // namespace reprise::models
