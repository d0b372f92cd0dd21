// Tests iterations whose directories have names of a trainer's own, beside which no tracker stands.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "reprise/reprise.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class OwnNames : public testing::Test {
 protected:
  OwnNames() {
    const TensorPart part{.offset = {0}, .extent = {4}, .data = w_.data()};
    state_.add("w", DType::kFloat32, {4}, {&part, 1});
  }
  void save_step(std::int64_t step, std::optional<std::int32_t> keep = {}) {
    std::fill(w_.begin(), w_.end(), static_cast<float>(step));
    save(job_, state_, {.directory = "run", .step = step, .step_names = "step-%d", .keep = keep});
  }
  LoadResult loaded(Fallback fallback = Fallback::kNone) {
    std::fill(w_.begin(), w_.end(), -1.0F);
    return load(job_, state_, {.directory = "run", .step_names = "step-%d", .fallback = fallback});
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_.path() + "/run")) {
      if (entry.is_directory()) found.push_back(entry.path().filename());
    }
    return found;
  }

  contracts::TemporaryDirectory directory_;
  Job job_ = local_job(directory_.path());
  std::vector<float> w_ = std::vector<float>(4);
  State state_;
};

TEST_F(OwnNames, the_newest_by_number_is_loaded_and_no_tracker_is_written) {
  for (const int step : {9, 10, 2}) save_step(step);
  EXPECT_THAT(names(), UnorderedElementsAre("step-2", "step-9", "step-10"));
  EXPECT_FALSE(fs::exists(directory_.path() + "/run/latest_checkpointed_iteration.txt"));
  const LoadResult result = loaded();
  EXPECT_EQ(result.step, 10);
  EXPECT_EQ(result.directory, "run/step-10");
  EXPECT_EQ(w_, std::vector<float>(4, 10));
}

TEST_F(OwnNames, keep_counts_them) {
  for (const int step : {1, 2, 3}) save_step(step, 2);
  EXPECT_THAT(names(), UnorderedElementsAre("step-2", "step-3"));
}

TEST_F(OwnNames, a_load_falls_back_past_damage_and_retention_ignores_damage) {
  for (const int step : {1, 2, 3}) save_step(step);
  fs::resize_file(directory_.path() + "/run/step-3/__0_0.distcp", 10);
  const LoadResult result = loaded(Fallback::kNewestWhole);
  EXPECT_EQ(result.step, 2);
  EXPECT_THAT(result.fell_back_from, ElementsAre(HasSubstr("run/step-3")));
  EXPECT_EQ(w_, std::vector<float>(4, 2));
  save_step(4, 2);
  EXPECT_THAT(names(), UnorderedElementsAre("step-2", "step-3", "step-4"));
}

TEST_F(OwnNames, one_without_metadata_is_passed_over_and_named) {
  for (const int step : {1, 2}) save_step(step);
  fs::remove(directory_.path() + "/run/step-2/.metadata");
  const LoadResult result = loaded();
  EXPECT_EQ(result.step, 1);
  EXPECT_THAT(result.log, testing::Contains(HasSubstr("step-2 was passed over")));
}

TEST_F(OwnNames, directories_without_payload_and_dead_saves_are_skipped) {
  save_step(1);
  fs::create_directory(directory_.path() + "/run/step-2");
  fs::create_directory(directory_.path() + "/run/step-3.saving-00c0ffee");
  std::ofstream(directory_.path() + "/run/step-3.saving-00c0ffee/__0_0.distcp") << "half a file";
  EXPECT_EQ(loaded().step, 1);
}

TEST_F(OwnNames, are_not_swallowed_by_a_checkpoint_without_a_step) {
  save_step(1);
  try {
    save(job_, state_, {.directory = "run"});
    ADD_FAILURE() << "the iterations were moved away";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUsage) << error.what();
  }
  EXPECT_EQ(loaded().step, 1);
}

TEST_F(OwnNames, a_first_start_finds_nothing) {
  EXPECT_EQ(load_if_any(job_, state_, {.directory = "run", .step_names = "step-%d"}), std::nullopt);
  save_step(1);
  EXPECT_TRUE(load_if_any(job_, state_, {.directory = "run", .step_names = "step-%d"}).has_value());
  EXPECT_EQ(read_common(job_, "run", "step-%d").value(), state_.common());
}

TEST_F(OwnNames, a_pattern_without_a_number_is_refused) {
  for (const char* pattern : {"step", "%d/%d"}) {
    try {
      save(job_, state_, {.directory = "run", .step = 1, .step_names = pattern});
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kUsage);
      EXPECT_THAT(error.message(), HasSubstr("step_names"));
    }
  }
}

}  // namespace
}  // namespace reprise
