// Tests saves on background threads while the job trains. ThreadSanitizer checks these tests.
#include "reprise/save.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <mutex>

#include "core/api/calls.hpp"
#include "core/ports/passing_store.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/fixtures/round_trip.hpp"

namespace reprise {
namespace {

using contracts::run_ranks;
using contracts::TemporaryDirectory;
using testing::HasSubstr;

constexpr std::int32_t kQueueRanks = 4;

/// A job that sets its elements to values that depend on the step.
class Trainer {
 public:
  explicit Trainer(const Ports& ports)
      : ports_(ports),
        group_(ports.fabric.communicator(Group::world(kQueueRanks))),
        job_(job_over(ports, group_)),
        rank_({{"rows", DType::kFloat32, {70, 50}, Placement({{"tp", 0}, {"dp", 0}})},
               {"columns", DType::kBFloat16, {9, 600}, Placement({{"tp", 1}})},
               {"whole", DType::kInt64, {700}, {}}},
              testing_job::mesh_of({{"tp", 2}, {"dp", 2}}), ports.fabric.rank()) {
    testing_job::fill(rank_.state);
  }

  void train() {
    move(step_.value);
    ++step_.value;
    move(step_.value);
  }
  Step step() const { return step_; }
  const std::shared_ptr<Communicator>& group() const { return group_; }

  void save(SaveQueue& queue, const SaveQueue::OnEnd& on_end) {
    rank_.state.common = Dict{{"iteration", Value(step_.value)}};
    const SaveOptions options{
        .directory = "run", .step = step_.value, .staging_bytes = 8192, .batch_bytes = 4096};
    queue.begin(
        options, [&] { return begin_save(job_, rank_.state, options); }, on_end);
  }

  /// Loads the checkpoint of a step. Returns the number of elements that do not belong to that
  /// step.
  std::size_t wrong_in(Step step) {
    load(ports_, *group_, rank_.state,
         {.directory = CommitTarget::iteration("run", step).directory});
    move(step.value);
    return testing_job::wrong_elements(rank_.state);
  }

 private:
  /// Changes the elements from those of step 0 to those of another step, or back.
  void move(std::int64_t step) {
    testing_job::each_element(rank_.state,
                              [step](const TensorLeaf&, std::byte* element, std::uint64_t) {
                                element[0] ^= static_cast<std::byte>(37 * step);
                              });
  }

  const Ports& ports_;
  std::shared_ptr<Communicator> group_;
  Job job_;
  testing_job::RankState rank_;
  Step step_;
};

/// Records the steps in the order in which their saves ended, and the error of each.
struct Ends {
  std::vector<std::int64_t> steps;
  std::vector<std::string> errors;

  SaveQueue::OnEnd of(Step step) {
    return [this, step](const EndedSave& end) {
      steps.push_back(step.value);
      errors.emplace_back(end.error ? end.error->what() : "");
    };
  }
};

TEST(SaveQueue, each_checkpoint_has_the_step_where_its_save_began__4_ranks) {
  for (const std::size_t in_flight : {1, 2, 3}) {
    const TemporaryDirectory directory;
    run_ranks(kQueueRanks, directory.path(), [&](const Ports& ports) {
      Trainer job(ports);
      Ends ends;
      SaveQueue queue(in_flight);
      for (int i = 0; i < 5; ++i) {
        job.train();
        job.save(queue, ends.of(job.step()));
        EXPECT_LE(queue.in_flight(), in_flight);
        job.train();
        queue.poll();
      }
      queue.finalize();
      EXPECT_EQ(queue.in_flight(), 0U);
      EXPECT_EQ(ends.steps, (std::vector<std::int64_t>{1, 3, 5, 7, 9}));
      EXPECT_EQ(ends.errors, std::vector<std::string>(5));
      for (const auto step : ends.steps) {
        Trainer other(ports);
        EXPECT_EQ(other.wrong_in(Step{step}), 0U) << "step " << step;
      }
    });
  }
}

TEST(SaveQueue, polling_alone_ends_a_save_when_all_ranks_are_done) {
  const TemporaryDirectory directory;
  run_ranks(kQueueRanks, directory.path(), [&](const Ports& ports) {
    Trainer job(ports);
    Ends ends;
    SaveQueue queue;
    job.save(queue, ends.of(job.step()));
    while (queue.in_flight() > 0) {
      job.train();
      queue.poll();
    }
    EXPECT_EQ(ends.errors, std::vector<std::string>(1));
    const auto steps = job.group()->all_reduce(Reduce::kMax, std::vector{job.step().value});
    EXPECT_EQ(steps.front(), job.step().value) << "all ranks must see it end at the same step";
    EXPECT_EQ(Trainer(ports).wrong_in(Step{0}), 0U);
  });
}

TEST(SaveQueue, a_second_save_of_a_step_always_waits_for_the_first) {
  const TemporaryDirectory directory;
  run_ranks(kQueueRanks, directory.path(), [&](const Ports& ports) {
    Trainer job(ports);
    Ends ends;
    SaveQueue queue(3);
    job.save(queue, ends.of(job.step()));
    job.save(queue, ends.of(job.step()));
    EXPECT_EQ(ends.steps.size(), 1U);
    queue.finalize();
    EXPECT_EQ(ends.errors, std::vector<std::string>(2));
    EXPECT_EQ(Trainer(ports).wrong_in(Step{0}), 0U);
  });
}

/// A payload file whose sync fails.
class Unsynced final : public WriteFile {
 public:
  Unsynced(std::unique_ptr<WriteFile> inner, std::string path)
      : inner_(std::move(inner)), path_(std::move(path)) {}
  void write_at(std::uint64_t offset, ByteSpan bytes) override { inner_->write_at(offset, bytes); }
  void sync() override { throw Error(Code::kIo, "the disk is gone", {.file = path_}); }
  void close() override { inner_->close(); }

 private:
  std::unique_ptr<WriteFile> inner_;
  std::string path_;
};
class StoreFailingOnce final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    auto file = inner().create(path);
    if (path.find("iter_0000002") == std::string::npos) return file;
    return std::make_unique<Unsynced>(std::move(file), path);
  }
};

TEST(SaveQueue, a_background_failure_fails_all_ranks_and_only_that_save) {
  const TemporaryDirectory directory;
  const auto wrap = [](Store& store, GlobalRank rank) -> std::unique_ptr<Store> {
    return rank == GlobalRank{2} ? std::make_unique<StoreFailingOnce>(store) : nullptr;
  };
  std::mutex mutex;
  std::vector<std::string> said;
  run_ranks(
      kQueueRanks, directory.path(),
      [&](const Ports& ports) {
        Trainer job(ports);
        Ends ends;
        SaveQueue queue(3);
        for (int i = 0; i < 3; ++i) {
          job.train();
          job.save(queue, ends.of(job.step()));
        }
        queue.finalize();
        ASSERT_EQ(ends.steps, (std::vector<std::int64_t>{1, 2, 3}));
        EXPECT_EQ(ends.errors[0] + ends.errors[2], "");
        EXPECT_EQ(Trainer(ports).wrong_in(Step{1}), 0U);
        EXPECT_EQ(Trainer(ports).wrong_in(Step{3}), 0U);
        EXPECT_FALSE(ports.store.stat("run/iter_0000002"));
        const std::lock_guard lock(mutex);
        said.push_back(ends.errors[1]);
      },
      wrap);
  ASSERT_EQ(said, std::vector<std::string>(kQueueRanks, said.front()));
  EXPECT_THAT(said.front(), HasSubstr("rank 2"));
  EXPECT_THAT(said.front(), testing::ContainsRegex("iter_0000002.saving-[0-9a-f]+/__2_0.distcp"));
}

TEST(SaveQueue, needs_room_for_a_save) {
  try {
    SaveQueue queue(0);
    FAIL() << "a queue without room can't begin a save";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUsage) << error.what();
  }
}

TEST(SaveQueue, what_a_handler_throws_passes_and_the_save_has_ended) {
  const TemporaryDirectory directory;
  run_ranks(kQueueRanks, directory.path(), [&](const Ports& ports) {
    Trainer job(ports);
    SaveQueue queue;
    job.save(queue, [](const EndedSave&) { throw std::runtime_error("mine"); });
    EXPECT_THROW(queue.finalize(), std::runtime_error);
    EXPECT_EQ(queue.in_flight(), 0U);
  });
}

}  // namespace
}  // namespace reprise
