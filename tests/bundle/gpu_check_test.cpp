// Tests what tests/bundle/gpu-check does on a machine with several GPUs, with programs in the place
// of nvidia-smi, mpirun and the bundle's own that say what those would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/contracts/temporary_directory.hpp"

namespace reprise::testing_bundle {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string text_in(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A bundle whose programs are scripts.
class StubBundle {
 public:
  explicit StubBundle(int gpus) {
    fs::create_directory(path("bin"));
    for (const char* const name : {"gpu-check", "run"}) {
      fs::copy_file(fs::path(REPRISE_SOURCE_DIR) / "tests/bundle" / name, path(name));
    }
    std::ofstream(path("commit.txt")) << "commit 0\n";
    program("nvidia-smi", "for ((i = 0; i < " + std::to_string(gpus) +
                              "; i++)); do echo \"GPU $i: NVIDIA H100 (UUID: GPU-$i)\"; done\n");
    program("mpirun",
            "n=$2; shift 2\n"
            "for ((r = 0; r < n; r++)); do\n"
            "  OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_LOCAL_RANK=$r \"$@\" || exit 1\n"
            "done\n");
    program(
        "test_nccl",
        "echo \"[  PASSED  ] 3 tests.\"\n"
        "[[ -z \"$REPRISE_READ_ONCE_MIB\" ]] || echo \"read once: $REPRISE_READ_ONCE_MIB MiB\"\n");
    program(
        "bench_gpu",
        "for a in \"$@\"; do\n"
        "  [[ $a != --benchmark_out=* ]] || printf '{\\n \"ours_GBps\": 1%s.5,\\n \"x\": 9\\n}\\n' "
        "\"$CUDA_VISIBLE_DEVICES\" >\"${a#*=}\"\n"
        "done\n");
    program("reprise", "echo \"$@\" >>\"" + path("asked").string() + "\"\n");
    program("reprise-ranks", "");
  }

  /// Runs the group, and returns the exit status.
  int check() {
    const std::string command = "PATH=\"" + path("bin").string() + ":$PATH\" bash '" +
                                path("gpu-check").string() + "' '" + path("out").string() +
                                "' several >'" + path("shown").string() + "' 2>&1";
    return WEXITSTATUS(std::system(command.c_str()));
  }
  std::string summary() const { return text_in(path("out/summary.txt")); }
  std::string asked() const { return text_in(path("asked")); }

 private:
  fs::path path(const std::string& name) const { return fs::path(directory_.path()) / name; }
  void program(const std::string& name, const std::string& script) {
    const fs::path file = path("bin/" + name);
    std::ofstream(file) << "#!/usr/bin/env bash\n" << script;
    fs::permissions(file, fs::perms::owner_all);
  }

  contracts::TemporaryDirectory directory_;
};

TEST(GpuCheck, uses_all_gpus_at_once_and_adds_up_their_rates) {
  StubBundle bundle(8);
  EXPECT_EQ(bundle.check(), 0);
  EXPECT_THAT(
      bundle.summary(),
      AllOf(ContainsRegex("ok +test_nccl, all GPUs"), ContainsRegex("ok +scenarios on all GPUs"),
            ContainsRegex("ok +snapshots on all GPUs"),
            HasSubstr("8 ranks, 112.0 GB/s in all"),  // 10.5 and so on up to 17.5
            HasSubstr("read once: 8192 MiB"), Not(HasSubstr("not run"))));
  EXPECT_THAT(bundle.asked(), HasSubstr("--tag gpu-shared --lane gpu --quiet --rows 1 --jobs 1 "
                                        "--ranks-per-gpu 1 --report"));
}

TEST(GpuCheck, lets_ranks_share_gpus_where_there_are_fewer_than_six) {
  StubBundle bundle(4);
  EXPECT_EQ(bundle.check(), 0);
  EXPECT_THAT(bundle.asked(), HasSubstr("--ranks-per-gpu 2"));
}

TEST(GpuCheck, says_not_run_where_there_is_one_gpu_or_none) {
  StubBundle one(1);
  EXPECT_EQ(one.check(), 0);
  EXPECT_THAT(one.summary(), ContainsRegex("not run +several GPUs +0 s  one GPU"));
  EXPECT_THAT(one.asked(), Not(HasSubstr("run ")));
  StubBundle none(0);
  EXPECT_EQ(none.check(), 0);
  EXPECT_THAT(none.summary(), ContainsRegex("not run +several GPUs +0 s  no GPU"));
}

}  // namespace
}  // namespace reprise::testing_bundle
