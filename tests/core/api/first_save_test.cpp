// Tests loads by a job that may be running for the first time. If there is a committed checkpoint,
// the job continues from it. If an earlier run died during its first save, the job starts from the
// beginning.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/calls.hpp"
#include "core/ports/passing_store.hpp"
#include "reprise/reprise.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"

namespace reprise {
namespace {

namespace fs = std::filesystem;

/// Kills the process just before a chosen change to the store.
class DyingStore final : public PassingStore {
 public:
  DyingStore(std::shared_ptr<Store> inner, int changes)
      : PassingStore(*inner), owned_(std::move(inner)), left_(changes) {}

  std::unique_ptr<WriteFile> create(const std::string& path) override {
    change();
    return PassingStore::create(path);
  }
  void make_directory(const std::string& path) override {
    change();
    PassingStore::make_directory(path);
  }
  void publish(const NameChange& name) override {
    change();
    PassingStore::publish(name);
  }
  void remove(const std::string& path) override {
    change();
    PassingStore::remove(path);
  }
  void sync_directory(const std::string& directory) override {
    change();
    PassingStore::sync_directory(directory);
  }

 private:
  void change() {
    if (left_-- == 0) raise(SIGKILL);
  }

  std::shared_ptr<Store> owned_;
  int left_;
};

/// A state of one tensor with all elements equal to `value`.
struct Trained {
  explicit Trained(const Job& job, float value) : w(12, value) {
    state.add("w", sharded({4, 3}, Mesh({{"dp", job.world_size()}}), {}, job.rank()), w.data());
  }
  std::vector<float> w;
  State state;
};

/// Runs a first save in a process that is killed just before change number `change`. Returns true
/// if the process was killed.
bool killed_at(const std::string& root, int change) {
  const pid_t child = fork();
  if (child == 0) {
    JobPorts ports = local_ports(root);
    ports.store = std::make_shared<DyingStore>(ports.store, change);
    Job job(std::move(ports));
    const Trained first(job, 1);
    save(job, first.state, {.directory = "run", .step = 10});
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

TEST(FirstSave, killed_anywhere_lets_the_job_begin_again) {
  int begun_again = 0;
  int gone_on = 0;
  bool killed = true;
  for (int change = 0; killed; ++change) {
    SCOPED_TRACE(change);
    const contracts::TemporaryDirectory directory;
    killed = killed_at(directory.path(), change);
    Job job = local_job(directory.path());
    Trained next(job, 7);
    const auto last =
        load_if_any(job, next.state, {.directory = "run", .fallback = Fallback::kNewestWhole});
    EXPECT_EQ(next.w, std::vector<float>(12, last ? 1.0F : 7.0F));
    EXPECT_TRUE(last || killed);
    ++(last ? gone_on : begun_again);
    const std::int64_t step = last ? *last->step + 10 : 10;
    save(job, next.state, {.directory = "run", .step = step});
    EXPECT_EQ(load(job, next.state, {.directory = "run"}).step, step);
  }
  EXPECT_GE(begun_again, 5);
  EXPECT_GE(gone_on, 3) << "deaths at the tracker's change and sync, and no death";
}

/// The files in a directory, and the result of a load by a job that may be starting.
struct Row {
  const char* name;
  std::vector<std::string> files;
  std::optional<Code> code;  ///< nothing if the job starts from the beginning
};

TEST(LoadIfAny, tells_a_beginning_from_what_cannot_be_loaded) {
  const Row rows[] = {
      {"nothing", {}, {}},
      {"somebody's files", {"run/config.yaml", "run/logs/0.txt"}, {}},
      {"a save that died", {"run/iter_0000010.saving-0123456789abcdef/.metadata"}, {}},
      {"another writer's that died", {"run/iter_0000010/__0_0.distcp"}, {}},
      {"a tracker without its iteration",
       {"run/latest_checkpointed_iteration.txt"},
       Code::kTrackerDangling},
      {"an iteration that no tracker names", {"run/iter_0000010/.metadata"}, Code::kNotFound},
      {"checkpoints further below", {"run/a/step-3/.metadata"}, Code::kNotFound},
      {"a file", {"run"}, Code::kNotFound},
      {"payload that lost its metadata", {"run/__0_0.distcp"}, Code::kIncompleteSelected},
      {"another format", {"run/model.safetensors"}, Code::kUnsupported},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const contracts::TemporaryDirectory directory;
    for (const std::string& file : row.files) {
      const fs::path path = directory.path() + "/" + file;
      fs::create_directories(path.parent_path());
      std::ofstream(path) << "10";
    }
    Job job = local_job(directory.path());
    Trained job_state(job, 7);
    std::optional<Code> code;
    try {
      EXPECT_FALSE(load_if_any(job, job_state.state, {.directory = "run"}));
    } catch (const Error& error) {
      code = error.code();
    }
    EXPECT_EQ(code, row.code);
    EXPECT_EQ(job_state.w, std::vector<float>(12, 7.0F));
  }
}

TEST(LoadIfAny, is_refused_by_all_if_one_sees_another_file_system__2_ranks) {
  for (const std::int32_t apart : {0, 1}) {
    SCOPED_TRACE(apart);
    const contracts::TemporaryDirectory directory;
    const contracts::TemporaryDirectory empty;
    const auto wrap = [&](Store&, GlobalRank rank) {
      return rank.value == apart ? std::make_unique<PosixStore>(empty.path()) : nullptr;
    };
    for (const bool saved : {false, true}) {
      contracts::run_ranks(
          2, directory.path(),
          [&](const Ports& ports) {
            Job job = job_over(ports, ports.fabric.communicator(Group::world(2)));
            Trained own(job, 7);
            const LoadOptions options = {.directory = "run"};
            if (!saved) {
              EXPECT_FALSE(load_if_any(job, own.state, options));
              return;
            }
            try {
              load_if_any(job, own.state, options);
              ADD_FAILURE() << "it began without a checkpoint";
            } catch (const Error& error) {
              EXPECT_EQ(error.code(), Code::kNotFound);
              EXPECT_EQ(error.place().rank, GlobalRank{apart});
            }
          },
          wrap);
      Job writer = local_job(directory.path());
      save(writer, Trained(writer, 1).state, {.directory = "run", .step = 10});
    }
  }
}

}  // namespace
}  // namespace reprise
