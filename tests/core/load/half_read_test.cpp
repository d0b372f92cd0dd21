// Tests loads that fall back to an older checkpoint after they have read some tensors of a damaged
// one. Such a load must fill these tensors from the older checkpoint, or be refused. This holds
// even if the load is lenient about missing keys.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/load/load.hpp"
#include "core/ports/whole_file.hpp"
#include "core/save/save.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"

namespace reprise {
namespace {

using contracts::error_of;
using contracts::run_ranks;

constexpr std::int64_t kElements = 4;
constexpr std::byte kSaved{0x37};
constexpr std::byte kBefore{0x5A};
constexpr std::byte kPoison{0xBD};

constexpr Strictness kModes[] = {
    Strictness::kAssumeOkUnexpected, Strictness::kLogUnexpected, Strictness::kLogAll,
    Strictness::kRaiseUnexpected,    Strictness::kRaiseAll,      Strictness::kReturnUnexpected,
    Strictness::kReturnAll,          Strictness::kIgnoreAll,
};

/// The state of a rank: its part of "a" and, on the last rank, also "new".
struct TwoTensors {
  TwoTensors(const Ports& ports, std::byte content, bool with_new) {
    const std::int64_t rank = ports.fabric.rank().value;
    const std::int64_t ranks = ports.fabric.world_size();
    add("a", {{rank * kElements}, {kElements}}, ranks * kElements, content);
    if (with_new && rank == ranks - 1) add("new", {{0}, {kElements}}, kElements, content);
    state.common = Dict{{"iteration", Value(std::int64_t{1})}};
  }
  TwoTensors(const TwoTensors&) = delete;
  TwoTensors& operator=(const TwoTensors&) = delete;

  void add(const std::string& key, const Box& box, std::int64_t length, std::byte content) {
    buffers.push_back(std::make_unique<Bytes>(static_cast<std::size_t>(box.elements()), content));
    TensorLeaf leaf;
    leaf.key = key;
    leaf.dtype = DType::kUInt8;
    leaf.shape = {length};
    leaf.pieces = {contiguous_piece(box)};
    leaf.data = buffers.back()->data();
    state.tensors.push_back(std::move(leaf));
  }

  bool all_of(std::size_t tensor, std::byte content) const {
    return std::ranges::all_of(*buffers[tensor], [content](std::byte b) { return b == content; });
  }

  std::vector<std::unique_ptr<Bytes>> buffers;  ///< in the state's order
  StateDict state;
};

/// Saves two steps. Step 1 lacks "new"; step 2 has it, and differs in some elements of "a".
class HalfRead : public testing::TestWithParam<std::int32_t> {
 protected:
  HalfRead() {
    for (const std::int64_t step : {1, 2}) {
      run_ranks(GetParam(), directory_.path(), [step](const Ports& ports) {
        const TwoTensors job(ports, kSaved, step == 2);
        SaveOptions options;
        options.directory = "run";
        options.step = step;
        Save::begin(ports, ports.fabric.communicator(Group::world(ports.fabric.world_size())),
                    job.state, options)
            .finish();
      });
    }
    change_new();
  }

  void change_new() {
    PosixStore store(directory_.path());
    Checkpoint checkpoint = Checkpoint::open(store, "run");
    const StoredTensor& tensor = *checkpoint.catalog().tensor("new");
    const StoredChunk& chunk = tensor.chunks.at(0);
    const TensorItem item = checkpoint.tensor_item(tensor, chunk);
    const std::string path = checkpoint.path_of(chunk.file);
    Bytes content = read_all(store, path, 1U << 20U);
    content[static_cast<std::size_t>(chunk.range.offset + item.data_offset)] ^= std::byte{1};
    write_durably(store, path, content);
  }

  contracts::TemporaryDirectory directory_;
};

TEST_P(HalfRead, a_tensor_that_the_older_one_lacks_fails_the_load_in_any_mode) {
  for (const Strictness mode : kModes) {
    for (const bool excused : {false, true}) {
      run_ranks(GetParam(), directory_.path(), [&](const Ports& ports) {
        const TwoTensors job(ports, kBefore, true);
        StateDict state = job.state;
        LoadOptions options{.directory = "run", .strictness = mode, .excused = {}};
        if (excused) options.excused = {"new"};
        options.fallback = Fallback::kNewestWhole;
        const auto group = ports.fabric.communicator(Group::world(GetParam()));
        const auto error = error_of([&] { load(ports, *group, state, options); });
        ASSERT_TRUE(error) << name_of(mode);
        EXPECT_EQ(error->code(), Code::kNotStored) << error->what();
        EXPECT_EQ(error->place().key, "new");
        EXPECT_THAT(error->what(), testing::HasSubstr("a newer checkpoint, which is damaged, has"));
        for (std::size_t t = 0; t < state.tensors.size(); ++t) {
          EXPECT_TRUE(job.all_of(t, kPoison)) << state.tensors[t].key;
        }
      });
    }
  }
}

TEST_P(HalfRead, what_the_older_checkpoint_has_is_filled_from_it) {
  run_ranks(GetParam(), directory_.path(), [&](const Ports& ports) {
    const TwoTensors job(ports, kBefore, false);
    StateDict state = job.state;
    LoadOptions options{.directory = "run", .strictness = Strictness::kIgnoreAll, .excused = {}};
    options.fallback = Fallback::kNewestWhole;
    load(ports, *ports.fabric.communicator(Group::world(GetParam())), state, options);
    EXPECT_TRUE(job.all_of(0, kSaved));
  });
}

TEST_P(HalfRead, the_older_one_requested_directly_leaves_the_tensor_untouched) {
  run_ranks(GetParam(), directory_.path(), [&](const Ports& ports) {
    const TwoTensors job(ports, kBefore, true);
    StateDict state = job.state;
    const LoadOptions options{
        .directory = "run/iter_0000001", .strictness = Strictness::kIgnoreAll, .excused = {}};
    load(ports, *ports.fabric.communicator(Group::world(GetParam())), state, options);
    EXPECT_TRUE(job.all_of(0, kSaved));
    for (std::size_t t = 1; t < state.tensors.size(); ++t) EXPECT_TRUE(job.all_of(t, kBefore));
  });
}

/// A device whose memory the host can't write. Its scatters fail from number `works` on, each with
/// its own number in the message, as after an error that a GPU does not forget.
class FailingDevice final : public Device {
 public:
  FailingDevice(Device& host, int works) : host_(host), works_(works) {}

  std::string name() const override { return host_.name(); }
  DeviceEvent gather(std::span<const GatherCopy> copies) override { return host_.gather(copies); }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    const int number = scatters_++;
    if (number < works_) return host_.scatter(copies);
    throw Error(Code::kInternal, "scatter " + std::to_string(number) + " failed");
  }
  void wait(DeviceEvent event) override { host_.wait(event); }

 private:
  Device& host_;
  int works_;
  int scatters_ = 0;
};

/// Keeps the details of the events.
class Details final : public Trace {
 public:
  void event(const TraceEvent& event) override { text += event.detail + "\n"; }
  std::string text;
};

TEST_P(HalfRead, a_device_failure_is_reported_and_not_the_failure_to_poison) {
  run_ranks(GetParam(), directory_.path(), [&](const Ports& near) {
    FailingDevice device(near.device, 0);
    Details trace;
    const Ports ports{near.store, near.fabric, device, near.tasks, trace};
    const TwoTensors job(ports, kBefore, true);
    StateDict state = job.state;
    const auto group = ports.fabric.communicator(Group::world(GetParam()));
    const auto error = error_of([&] { load(ports, *group, state, {.directory = "run"}); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->what(), testing::HasSubstr("scatter 0 failed"));
    EXPECT_THAT(trace.text, testing::HasSubstr("scatter 1 failed")) << "is noted, too";
  });
}

TEST_P(HalfRead, damage_is_the_error_where_poison_fails_after_it) {
  run_ranks(GetParam(), directory_.path(), [&](const Ports& near) {
    FailingDevice device(near.device, 2);  // as many as there are tensors to read
    const Ports ports{near.store, near.fabric, device, near.tasks, near.trace};
    const TwoTensors job(ports, kBefore, true);
    StateDict state = job.state;
    LoadOptions options{.directory = "run"};
    options.checksums = LoadChecksums::kVerified;
    const auto group = ports.fabric.communicator(Group::world(GetParam()));
    const auto error = error_of([&] { load(ports, *group, state, options); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kChecksum) << error->what();
    EXPECT_THAT(error->what(), testing::HasSubstr("scatter 2 failed")) << "is told by all ranks";
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, HalfRead, testing::Values(1, 2));

}  // namespace
}  // namespace reprise
