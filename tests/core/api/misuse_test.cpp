// Tests mistakes that a program can make in its calls. Each mistake must become a named Error on
// all ranks, and no data may be lost.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "reprise/reprise.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/fixtures/complaint.hpp"

namespace reprise::misuse_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

/// Moves the value out of an object that the test will use again.
template <class T>
T taken_from(T& object) {
  return std::move(object);
}

/// A job of one process with one tensor "w" of shape [4].
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

TEST_F(Misuse, a_plain_checkpoint_keeps_files_of_others) {
  const auto file = [this](const std::string& name) {
    return std::filesystem::path(directory_.path()) / name;
  };
  const auto write = [](const std::filesystem::path& path) { std::ofstream(path) << "mine"; };
  std::filesystem::create_directories(file("out"));
  write(file("out/train.log"));
  EXPECT_THAT(save_complaint({.directory = "out"}),
              AllOf(HasSubstr("USAGE"), HasSubstr("train.log"), HasSubstr("another directory")));
  EXPECT_TRUE(std::filesystem::exists(file("out/train.log")));
  std::filesystem::remove(file("out/train.log"));
  save(job_, state_, {.directory = "out", .checksums = Checksums::kCrc32AndSha256});
  write(file("out/meta.pt"));
  write(file("out/.reprise-0123456789abcdef"));  // a writer that was killed leaves it
  save(job_, state_, {.directory = "out"});
  std::filesystem::create_directories(file("out/logs"));
  EXPECT_THAT(save_complaint({.directory = "out"}), HasSubstr("holds 'logs'"));
  EXPECT_TRUE(stands("out"));
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

TEST_F(Misuse, ranks_outside_of_a_group_are_refused) {
  const auto member = [](std::int32_t size, std::int32_t rank) {
    return complaint([&] { static_cast<void>(Group::world(size).member({rank})); });
  };
  EXPECT_EQ(member(3, 2), "");
  for (const std::int32_t rank : {-1, 3}) {
    EXPECT_THAT(member(3, rank), AllOf(HasSubstr("USAGE: rank: " + std::to_string(rank)),
                                       HasSubstr("they are 0 to 2")));
  }
  EXPECT_THAT(member(0, 0), AllOf(HasSubstr("USAGE: rank: 0"), HasSubstr("it has none")));
  EXPECT_EQ(Group::world(0).size(), 0);
  EXPECT_THAT(complaint([] { Group::world(-1); }),
              AllOf(HasSubstr("USAGE: size"), HasSubstr("-1"), HasSubstr("0 to 2147483647")));
}

TEST_F(Misuse, places_outside_of_a_mesh_are_refused) {
  const Mesh mesh({{"tp", 2}, {"dp", 3}});
  const auto at = [&mesh](std::vector<std::int32_t> coordinates) {
    return complaint([&] { static_cast<void>(mesh.member_at(coordinates)); });
  };
  EXPECT_EQ(at({1, 2}), "");
  EXPECT_THAT(at({1}), AllOf(HasSubstr("USAGE: coordinates: 1"), HasSubstr("2 axes")));
  EXPECT_THAT(at({1, 3}),
              AllOf(HasSubstr("USAGE: coordinates: 3"), HasSubstr("'dp'"), HasSubstr("0 to 2")));
  EXPECT_THAT(at({-1, 0}), AllOf(HasSubstr("USAGE: coordinates: -1"), HasSubstr("'tp'")));
  for (const std::int32_t member : {-1, 6}) {
    EXPECT_THAT(complaint([&] { mesh.group_along({member}, "tp"); }),
                AllOf(HasSubstr("USAGE: rank: " + std::to_string(member)), HasSubstr("0 to 5")));
  }
}

TEST_F(Misuse, a_number_that_is_no_dtype_is_refused) {
  for (const int number : {22, 255}) {
    const auto dtype = static_cast<DType>(number);
    const auto says =
        AllOf(HasSubstr("USAGE: dtype: " + std::to_string(number)), HasSubstr("types are 0 to 21"));
    EXPECT_THAT(complaint([&] { static_cast<void>(name_of(dtype)); }), says);
    EXPECT_THAT(complaint([&] { static_cast<void>(size_of(dtype)); }), says);
  }
  EXPECT_EQ(all_dtypes().size(), 22U);
}

TEST_F(Misuse, a_moved_from_state_allows_only_assignment) {
  state_.add_object("rng", same_on_all(job_.rank()), Value(7));
  State taken = taken_from(state_);
  const auto says = HasSubstr("USAGE: state: it was moved from");
  EXPECT_THAT(complaint([&] { state_.add("v", whole(), w_.data()); }), says);
  EXPECT_THAT(complaint([&] { state_.add_object("rng", same_on_all(job_.rank()), Value(8)); }),
              says);
  EXPECT_THAT(complaint([&] { state_.object("rng"); }), says);
  EXPECT_THAT(save_complaint({.directory = "run"}), says);
  EXPECT_FALSE(stands("run"));
  save(job_, taken, {.directory = "run"});
  EXPECT_THAT(complaint([&] { load(job_, state_, {.directory = "run"}); }), says);
  EXPECT_THAT(complaint([&] { load_if_any(job_, state_, {.directory = "run"}); }), says);

  // A second move from `state_` must do no harm, nor must the destruction of `again`.
  const State again = taken_from(state_);
  state_ = std::move(taken);
  EXPECT_EQ(state_.object("rng"), Value(7));
  EXPECT_EQ(save_complaint({.directory = "run"}), "");
}

TEST_F(Misuse, a_moved_from_save_in_flight_allows_only_assignment) {
  SaveInFlight first = begin_save(job_, state_, {.directory = "one"});
  SaveInFlight taken = taken_from(first);
  const auto says = HasSubstr("USAGE: save: it was moved from");
  EXPECT_THAT(complaint([&] { first.poll(); }), says);
  EXPECT_THAT(complaint([&] { first.finish(); }), says);
  EXPECT_FALSE(stands("one"));
  // A second move from `first` must do no harm, nor must the destruction of `again`.
  const SaveInFlight again = taken_from(first);
  first = std::move(taken);
  EXPECT_EQ(first.finish().directory, "one");
  EXPECT_TRUE(stands("one"));
}

TEST_F(Misuse, a_job_that_was_moved_from_takes_a_new_one_and_no_other_call) {
  Job taken = taken_from(job_);
  const auto says = HasSubstr("USAGE: job: it was moved from");
  EXPECT_THAT(complaint([&] { static_cast<void>(job_.rank()); }), says);
  EXPECT_THAT(complaint([&] { static_cast<void>(job_.world_size()); }), says);
  EXPECT_THAT(complaint([&] { static_cast<void>(job_.ports()); }), says);
  EXPECT_THAT(save_complaint({.directory = "run"}), says);
  EXPECT_THAT(complaint([&] { load_if_any(job_, state_, {.directory = "run"}); }), says);
  EXPECT_THAT(complaint([&] { read_common(job_, "run"); }), says);
  job_ = std::move(taken);
  EXPECT_EQ(save_complaint({.directory = "run"}), "");
}

TEST_F(Misuse, a_common_state_that_is_no_dict_is_refused) {
  state_.common() = Value(3);
  EXPECT_THAT(save_complaint({.directory = "run"}), AllOf(HasSubstr("USAGE"), HasSubstr("common")));
}

}  // namespace
}  // namespace reprise::misuse_test
