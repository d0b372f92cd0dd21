// Tests the rules of resume_points() on directories named as the programs name them.

#include "core/resume/resume_point.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/adapters/posix/posix_store.hpp"
#include "core/format/bytes_item.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A directory with files; "name/" is an empty directory, "name|text" a file with text.
class Made {
 public:
  explicit Made(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto equals = name.find('|');
      const fs::path path = fs::path(directory_.path()) / "root" / name.substr(0, equals);
      fs::create_directories(name.ends_with('/') ? path : path.parent_path());
      if (name.ends_with('/')) continue;
      std::ofstream(path) << (equals == std::string::npos ? "" : name.substr(equals + 1));
      // Later names are of later files.
      const auto time = fs::file_time_type::clock::now() + std::chrono::seconds(++files_);
      fs::last_write_time(path, time);
      if (path.parent_path() != fs::path(directory_.path()) / "root") {
        fs::last_write_time(path.parent_path(), time);
      }
    }
  }
  std::vector<ResumePoint> points() const {
    PosixStore store(directory_.path());
    return resume_points(store, "root");
  }
  fs::path path(const std::string& name) const {
    return fs::path(directory_.path()) / "root" / name;
  }

 private:
  contracts::TemporaryDirectory directory_;
  int files_ = 0;
};

/// Returns "program: name; passed, passed" for each point.
std::vector<std::string> words(const std::vector<ResumePoint>& points) {
  std::vector<std::string> lines;
  for (const ResumePoint& point : points) {
    std::string line = point.program + ": " + (point.name.empty() ? point.why : point.name);
    for (const PassedOver& passed : point.passed) line += "; " + passed.name + " " + passed.why;
    lines.push_back(line);
  }
  return lines;
}

constexpr const char* kTracker = "latest_checkpointed_iteration.txt";

TEST(ResumePoint, megatron_takes_what_the_tracker_names) {
  const Made made({"iter_0000010/.metadata", "iter_0000020/.metadata", "iter_0000030/x",
                   std::string(kTracker) + "|20"});
  EXPECT_THAT(words(made.points()),
              ElementsAre("Megatron-LM: iter_0000020; iter_0000030 newer than what the tracker "
                          "names; iter_0000010 older",
                          "Reprise: iter_0000020; iter_0000030 has no .metadata; iter_0000010 "
                          "loaded if those before it are damaged"));
}

TEST(ResumePoint, a_tracker_may_name_what_is_gone) {
  const Made made({"iter_0000010/.metadata", std::string(kTracker) + "|20"});
  EXPECT_THAT(
      words(made.points()),
      ElementsAre("Megatron-LM: latest_checkpointed_iteration.txt names iter_0000020, which "
                  "is not there; iter_0000010 the tracker does not name it",
                  "Reprise: iter_0000010"));
  EXPECT_TRUE(made.points().at(0).broken);
}

TEST(ResumePoint, without_a_tracker_megatron_begins_anew) {
  const Made made({"iter_0000010/.metadata", "iter_0000020/.metadata"});
  const auto points = made.points();
  EXPECT_EQ(points.at(0).name, "");
  EXPECT_THAT(points.at(0).why, HasSubstr("there is no latest_checkpointed"));
  EXPECT_EQ(points.at(0).passed.size(), 2U);
  EXPECT_FALSE(points.at(0).broken);
}

TEST(ResumePoint, a_tracker_may_be_garbled) {
  const Made made({"iter_0000010/.metadata", std::string(kTracker) + "|soon"});
  EXPECT_THAT(made.points().at(0).why, HasSubstr("latest_checkpointed_iteration.txt: "));
  EXPECT_TRUE(made.points().at(0).broken);
}

TEST(ResumePoint, bridge_has_a_tracker_of_its_own) {
  const Made made({"iter_0000010/.metadata", "iter_0000020/.metadata",
                   std::string(kTracker) + "|10", "latest_train_state.pt"});
  const std::int32_t step = 20;
  Bytes data;
  append_le(data, step);
  const Bytes item = write_bytes_item(
      Dict{{Value("step"), Value(TensorValue{.dtype = DType::kInt32, .shape = {}, .data = data})}});
  std::ofstream(made.path("latest_train_state.pt"), std::ios::binary)
      .write(reinterpret_cast<const char*>(item.data()), static_cast<std::streamsize>(item.size()));
  EXPECT_THAT(words(made.points()).at(1), "Megatron-Bridge: iter_0000020; iter_0000010 older");
}

TEST(ResumePoint, torchtitan_takes_the_highest_with_metadata) {
  const Made made({"step-9/.metadata", "step-100/model.safetensors.index.json", "step-200/x",
                   "step-30/.metadata"});
  EXPECT_THAT(words(made.points()).at(0),
              "torchtitan: step-100; step-200 has neither .metadata nor "
              "model.safetensors.index.json; step-30 older; step-9 older");
}

TEST(ResumePoint, verl_takes_what_the_tracker_names) {
  const Made made(
      {"global_step_5/actor/x", "global_step_10/actor/x", std::string(kTracker) + "|5"});
  EXPECT_THAT(words(made.points()),
              ElementsAre("verl: global_step_5; global_step_10 newer than what the tracker names"));
  const Made none({"global_step_5/actor/x"});
  EXPECT_THAT(words(none.points()).at(0), HasSubstr("verl: there is no latest_checkpointed"));
}

TEST(ResumePoint, nemo_passes_over_what_is_unfinished_and_stops_at_the_end) {
  const Made made(
      {"a--step=5-last/weights/x", "a--step=9-last/weights/x", "a--step=9-last-unfinished"});
  EXPECT_THAT(words(made.points()),
              ElementsAre("NeMo: a--step=5-last; a--step=9-last is marked as unfinished"));
  EXPECT_TRUE(made.points().at(0).broken);
  const Made ended({"a--step=5-last/weights/x", "a--step=9-end/weights/x"});
  EXPECT_THAT(words(ended.points()), ElementsAre("NeMo: a--step=9-end says that the run has ended; "
                                                 "a--step=5-last the run has ended"));
  EXPECT_FALSE(ended.points().at(0).broken);
}

TEST(ResumePoint, others_take_the_last_changed_or_the_highest) {
  const Made lightning({"last.ckpt", "last-v1.ckpt", "epoch=3.ckpt"});
  EXPECT_THAT(words(lightning.points()), ElementsAre("Lightning: last-v1.ckpt; last.ckpt older"));
  const Made transformers({"checkpoint-9/x", "checkpoint-10/x", "checkpoint-best/x"});
  EXPECT_THAT(words(transformers.points()),
              ElementsAre("transformers: checkpoint-10; checkpoint-9 older"));
  const Made accelerate({"checkpoint_9/x", "checkpoint_10/x"});
  EXPECT_THAT(words(accelerate.points()),
              ElementsAre("Accelerate: checkpoint_10; checkpoint_9 older"));
}

TEST(ResumePoint, other_directories_have_no_points) {
  const Made made({"step-x/.metadata", "steps-3/.metadata", "a/b"});
  EXPECT_TRUE(made.points().empty());
  PosixStore store("/");
  const auto error = contracts::error_of([&] { resume_points(store, "no/such/directory"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kNotFound);
}

}  // namespace
}  // namespace reprise::test
