// A program's mistakes: each is a named Error on all ranks, and nothing is lost.

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "reprise/reprise.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::misuse_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

/// Returns the text of the Error that `call` throws; empty if it throws none.
template <class Call>
std::string complaint(const Call& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// A job of one process with one tensor, w [4].
class Misuse : public testing::Test {
 protected:
  Misuse() { state_.add("w", whole(), w_.data()); }

  Sharded whole() { return sharded({4}, alone_, {}, job_.rank()); }
  bool stands(const std::string& name) const {
    return fs::exists(directory_.path() + "/" + name + "/.metadata");
  }
  std::string save_complaint(const SaveOptions& options) {
    return complaint([&] { save(job_, state_, options); });
  }

  contracts::TemporaryDirectory directory_;
  Job job_ = local_job(directory_.path());
  Mesh alone_{std::vector<Axis>{{"dp", 1}}};
  std::vector<float> w_ = std::vector<float>(4, 0.5F);
  State state_;
};

TEST_F(Misuse, keep_without_a_step_removes_nothing) {
  save(job_, state_, {.directory = "", .step = 1});
  save(job_, state_, {.directory = "", .step = 2});
  EXPECT_THAT(save_complaint({.directory = "final", .keep = 1}),
              AllOf(HasSubstr("USAGE"), HasSubstr("keep")));
  EXPECT_TRUE(stands("iter_0000001"));
  EXPECT_TRUE(stands("iter_0000002"));
  EXPECT_FALSE(stands("final"));
}

TEST_F(Misuse, a_plain_checkpoint_does_not_take_the_place_of_a_run) {
  save(job_, state_, {.directory = "run", .step = 1});
  EXPECT_THAT(save_complaint({.directory = "run"}), AllOf(HasSubstr("USAGE"), HasSubstr("step")));
  EXPECT_TRUE(stands("run/iter_0000001"));
}

TEST_F(Misuse, an_iteration_is_not_hidden_below_a_plain_checkpoint) {
  save(job_, state_, {.directory = "plain"});
  EXPECT_THAT(save_complaint({.directory = "plain", .step = 1}), HasSubstr("USAGE"));
  EXPECT_FALSE(stands("plain/iter_0000001"));
}

TEST_F(Misuse, memory_and_types_that_are_none_are_refused) {
  float* const nothing = nullptr;
  EXPECT_THAT(complaint([&] { state_.add("v", whole(), nothing); }),
              AllOf(HasSubstr("USAGE"), HasSubstr("key v")));
  EXPECT_THAT(complaint([&] { state_.add("v", whole(), DType{99}, w_.data()); }),
              AllOf(HasSubstr("USAGE"), HasSubstr("dtype")));
  state_.add("empty", sharded({0}, alone_, {}, job_.rank()), nothing);
  EXPECT_EQ(save_complaint({.directory = "run"}), "");
}

TEST_F(Misuse, shapes_and_splits_that_mean_nothing_are_refused) {
  const auto of = [&](const Dims& shape, std::vector<Split> splits) {
    return complaint([&] { sharded(shape, alone_, std::move(splits), job_.rank()); });
  };
  EXPECT_THAT(of({-4}, {}), HasSubstr("USAGE"));
  EXPECT_THAT(of({4}, {{"db", 0}}), AllOf(HasSubstr("LAYOUT_MISMATCH"), HasSubstr("'db'")));
  EXPECT_THAT(complaint([] { Dims({1, 1, 1, 1, 1, 1, 1, 1, 1}); }), HasSubstr("USAGE"));
}

TEST_F(Misuse, a_common_state_that_is_no_dict_is_refused) {
  state_.common = Value(3);
  EXPECT_THAT(save_complaint({.directory = "run"}), AllOf(HasSubstr("USAGE"), HasSubstr("common")));
}

}  // namespace
}  // namespace reprise::misuse_test
