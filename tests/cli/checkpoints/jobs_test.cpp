// Tests that --jobs changes no byte of what a verb says, of healthy checkpoints and of damaged
// ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::jobs_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string kA = "torch_2.15.0/same_content_a";
const std::string kB = "torch_2.15.0/different_content";
const std::string kSaved = "torch_save_2.15.0/without_checksums.pt";

ProgramResult with_jobs(Words words, const std::string& jobs) {
  words.insert(words.end(), {"--jobs", jobs});
  return run_program(words);
}

TEST(Jobs, no_number_of_threads_changes_what_a_verb_says) {
  const Victim damaged(kA);
  for (const char* key : {"embedding", "ids"}) {
    const auto place = damaged.elements_of(key);
    damaged.flip(place.file, place.offset + 5);
  }
  const Victim sealed(kA);
  ASSERT_EQ(run_program({"seal", sealed.path()}).exit_code, 0);
  const auto place = sealed.elements_of("ids");
  sealed.flip(place.file, place.offset);
  const Victim saved("torch_save_2.15.0");
  saved.flip("training.pt", saved.offset_of("training.pt", "training/data/0") + 80);
  struct Row {
    Words words;
    int exit_code;
  };
  for (const Row& row : {Row{{"diff", data(kA), data("torch_2.15.0/same_content_b")}, 0},
                         Row{{"diff", data(kA), data(kB)}, 1},
                         Row{{"diff", "--json", data(kA), data(kB)}, 1},
                         Row{{"diff", data(kA), damaged.path()}, 2},
                         Row{{"diff", "--json", damaged.path(), data(kB)}, 2},
                         Row{{"diff", data(kSaved), data(kSaved)}, 0},
                         Row{{"diff", "--json", data("torch_save_2.15.0/training.pt"),
                              saved.file("training.pt").string()},
                             2},
                         Row{{"inspect", "--json", "--digest", damaged.path()}, 2},
                         Row{{"inspect", "--sha256", "--stats", data(kA)}, 0},
                         Row{{"digest", data(kA)}, 0},
                         Row{{"digest", damaged.path()}, 2},
                         Row{{"seal", "--json", damaged.path()}, 2},
                         Row{{"verify", data("mcore_0.16.1_gpt_tp2_pp2")}, 0},
                         Row{{"verify", damaged.path()}, 1},
                         Row{{"verify", "--json", "--health", damaged.path()}, 1},
                         Row{{"verify", "--json", "--health", data(kSaved)}, 0},
                         Row{{"verify", "--health", "--against", data(kA), data(kB)}, 0},
                         Row{{"verify", "--all", data("torch_2.15.0")}, 2},
                         Row{{"verify", "--sealed", sealed.path()}, 1},
                         Row{{"trend", "--json", data("changes_2.15.0/run")}, 0},
                         Row{{"scan", "--json", data("scan_3.11.7")}, 1},
                         Row{{"digest", "--json", data(kSaved)}, 0}}) {
    const auto one = with_jobs(row.words, "1");
    EXPECT_EQ(one.exit_code, row.exit_code) << row.words.front() << one.all();
    for (const char* jobs : {"2", "7"}) {
      const auto result = with_jobs(row.words, jobs);
      EXPECT_EQ(result.exit_code, row.exit_code) << row.words.front() << " --jobs " << jobs;
      EXPECT_EQ(result.out, one.out) << row.words.front() << " --jobs " << jobs;
      EXPECT_EQ(result.err, one.err) << row.words.front() << " --jobs " << jobs;
    }
    EXPECT_EQ(run_program(row.words).all(), one.all()) << row.words.front();
  }
  const Words words = {"diff", data("torch_save_2.15.0/training.pt"),
                       saved.file("training.pt").string()};
  EXPECT_THAT(with_jobs(words, "1").all(), HasSubstr(", 1 not known"));  // the others are compared
}

/// Returns the content of all files below a directory, by path.
std::map<std::string, std::string> content_of(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().lexically_relative(directory)] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

TEST(Jobs, no_number_of_threads_changes_a_byte_that_is_written) {
  const std::string kMegatron = "mcore_0.16.1_gpt_tp2_pp2";
  for (const Words& words :
       {Words{"reshard", data(kA)}, Words{"reshard", "--ranks", "3", "--json", data(kA)},
        Words{"reshard", "--ranks", "5", "--writers", "3", data(kMegatron)},
        Words{"reshard", "--split", "^w=0:2", "--writers", "2", data(kSaved)},
        Words{"import", "--ranks", "2", data(kSaved)},
        Words{"export", "--max-shard", "200", data(kA)}}) {
    std::map<std::string, std::string> first;
    ProgramResult told;
    for (const char* jobs : {"1", "2", "7"}) {
      const contracts::TemporaryDirectory directory;
      Words all = words;
      all.push_back(directory.path() + "/out");
      ProgramResult result = with_jobs(all, jobs);
      ASSERT_EQ(result.exit_code, 0) << words.front() << result.all();
      for (auto at = result.out.find(directory.path()); at != std::string::npos;
           at = result.out.find(directory.path())) {
        result.out.erase(at, directory.path().size());
      }
      auto files = content_of(directory.path());
      if (first.empty()) {
        first = std::move(files);
        told = result;
        EXPECT_GT(first.size(), 1U) << words.front();
        continue;
      }
      EXPECT_EQ(files, first) << words.front() << " --jobs " << jobs;
      EXPECT_EQ(result.out, told.out) << words.front() << " --jobs " << jobs;
    }
  }
}

TEST(Jobs, what_is_damaged_is_refused_alike_by_all_that_write) {
  const Victim damaged(kA);
  for (const char* key : {"scale", "embedding", "ids"}) {
    const auto place = damaged.elements_of(key);
    damaged.flip(place.file, place.offset);
  }
  for (const Words& words : {Words{"reshard", "--ranks", "4"}, Words{"export"}, Words{"import"}}) {
    const contracts::TemporaryDirectory directory;
    Words all = words;
    all.insert(all.end(), {damaged.path(), directory.path() + "/out"});
    const auto one = with_jobs(all, "1");
    EXPECT_EQ(one.exit_code, 2) << one.all();
    EXPECT_THAT(one.all(), HasSubstr("CHECKSUM"));
    for (const char* jobs : {"2", "7"}) EXPECT_EQ(with_jobs(all, jobs).all(), one.all()) << jobs;
    EXPECT_TRUE(fs::is_empty(directory.path())) << words.front();
  }
}

/// Sets how many files this process, and the programs that it starts, may have open without asking.
class FewOpenFiles {
 public:
  explicit FewOpenFiles(rlim_t files) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = files;
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewOpenFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewOpenFiles(const FewOpenFiles&) = delete;
  FewOpenFiles& operator=(const FewOpenFiles&) = delete;

 private:
  rlimit before_{};
};

TEST(Jobs, threads_may_have_more_files_open_than_a_shell_allows) {
  const contracts::TemporaryDirectory directory;
  const std::string many = directory.path() + "/many";
  const auto made = run_program(
      {"reshard", "--ranks", "40", "--writers", "40", data("mcore_0.16.1_gpt_tp2_pp2"), many});
  ASSERT_EQ(made.exit_code, 0) << made.all();
  const FewOpenFiles few(30);
  const auto verified = with_jobs({"verify", many}, "7");
  EXPECT_EQ(verified.exit_code, 0) << verified.all();
}

TEST(Jobs, what_is_no_number_of_threads_is_a_usage_error) {
  for (const char* jobs : {"0", "-1", "two", "1.5", "1025", ""}) {
    EXPECT_EQ(with_jobs({"diff", data(kA), data(kB)}, jobs).exit_code, 2) << jobs;
    EXPECT_EQ(with_jobs({"inspect", "--digest", data(kA)}, jobs).exit_code, 2) << jobs;
    EXPECT_EQ(with_jobs({"verify", data(kA)}, jobs).exit_code, 2) << jobs;
  }
}

}  // namespace
}  // namespace reprise::test::jobs_test
