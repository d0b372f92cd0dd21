// Tests the public calls in one process: options reach the engine, results come back, and errors
// name what is at fault.

#include <gmock/gmock.h>

#include <complex>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/reprise.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <class Call>
std::optional<Error> error_of(const Call& call) {
  try {
    call();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

template <class Call>
std::optional<Code> code_of(const Call& call) {
  const auto error = error_of(call);
  return error ? std::optional(error->code()) : std::nullopt;
}

/// A job of one process with one tensor "w" of shape [4, 3].
class OneProcess : public testing::Test {
 protected:
  OneProcess() { state_.add("w", whole({4, 3}), w_.data()); }

  Sharded whole(const Dims& shape) { return sharded(shape, alone_, {}, job_.rank()); }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  void train() {
    for (auto& x : w_) x = x * 2 + 1;
  }

  contracts::TemporaryDirectory directory_;
  Job job_ = local_job(directory_.path());
  Mesh alone_{std::vector<Axis>{{"dp", 1}}};
  std::vector<float> w_ = std::vector<float>(12, 0.5F);
  State state_;
};

TEST_F(OneProcess, loads_tensors_objects_and_common_state_as_they_were_saved) {
  state_.add_object("rng", one_per_rank(job_.rank(), job_.world_size()), Tuple{{7, "seed"}});
  state_.common()["iteration"] = 10;
  state_.common()["lr"] = 0.25;
  const SaveResult saved = save(job_, state_, {.directory = "run", .step = 10});
  EXPECT_EQ(saved.directory, "run/iter_0000010");
  EXPECT_EQ(saved.tensors, 1U);
  EXPECT_EQ(saved.objects, 1U);
  EXPECT_GE(saved.bytes, 48U);

  const auto before = std::exchange(w_, std::vector<float>(12, -1.0F));
  State into;
  into.add("w", whole({4, 3}), w_.data());
  into.add_object("rng", one_per_rank(job_.rank(), job_.world_size()), NoneType{});
  const LoadResult loaded = load(job_, into, {.directory = "run"});
  EXPECT_EQ(w_, before);
  EXPECT_EQ(into.object("rng"), Value(Tuple{{7, "seed"}}));
  EXPECT_EQ(into.common()["iteration"], Value(10));
  EXPECT_EQ(into.common()["lr"], Value(0.25));
  EXPECT_EQ(loaded.directory, "run/iter_0000010");
  EXPECT_EQ(loaded.step, 10);
  EXPECT_EQ(loaded.elements, 12U);
  EXPECT_EQ(read_common(job_, "run").value(), into.common());
}

TEST_F(OneProcess, a_save_without_a_step_is_the_directory_itself) {
  EXPECT_EQ(save(job_, state_, {.directory = "final"}).directory, "final");
  EXPECT_TRUE(fs::exists(path("final/.metadata")));
  EXPECT_FALSE(load(job_, state_, {.directory = "final"}).step.has_value());
}

TEST_F(OneProcess, a_root_that_is_not_there_is_made) {
  Job other = local_job(path("not/there"));
  save(other, state_, {.directory = "final"});
  EXPECT_TRUE(fs::exists(path("not/there/final/.metadata")));
}

TEST_F(OneProcess, keep_removes_what_is_older) {
  for (const int step : {1, 2, 3}) {
    save(job_, state_, {.directory = "run", .step = step, .keep = 2});
  }
  EXPECT_FALSE(fs::exists(path("run/iter_0000001")));
  EXPECT_TRUE(fs::exists(path("run/iter_0000002")));
  EXPECT_EQ(code_of([&] { save(job_, state_, {.directory = "run", .step = 4, .keep = 0}); }),
            Code::kUsage);
}

TEST_F(OneProcess, a_manifest_is_written_where_it_is_asked_for) {
  save(job_, state_, {.directory = "plain"});
  save(job_, state_, {.directory = "sure", .checksums = Checksums::kCrc32AndSha256});
  EXPECT_FALSE(fs::exists(path("plain/integrity.json")));
  EXPECT_TRUE(fs::exists(path("sure/integrity.json")));
}

TEST_F(OneProcess, what_may_not_be_replaced_is_refused) {
  save(job_, state_, {.directory = "final"});
  EXPECT_EQ(code_of([&] { save(job_, state_, {.directory = "final", .replace = false}); }),
            Code::kUsage);
  save(job_, state_, {.directory = "final"});
}

TEST_F(OneProcess, strictness_and_excuses_decide_about_other_keys) {
  std::vector<float> more(2);
  save(job_, state_, {.directory = "run"});
  State wider;
  wider.add("w", whole({4, 3}), w_.data());
  wider.add("more", whole({2}), more.data());
  const auto refused = error_of([&] { load(job_, wider, {.directory = "run"}); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), Code::kNotStored);
  EXPECT_THAT(refused->what(), HasSubstr("more"));
  const LoadResult returned =
      load(job_, wider, {.directory = "run", .strictness = Strictness::kReturnAll});
  EXPECT_THAT(returned.not_stored, ElementsAre("more"));
  EXPECT_THAT(returned.not_requested, IsEmpty());
  EXPECT_THAT(load(job_, wider, {.directory = "run", .excused = {"more"}}).excused,
              ElementsAre("more"));
  State none;
  const LoadResult nothing =
      load(job_, none, {.directory = "run", .strictness = Strictness::kReturnAll});
  EXPECT_THAT(nothing.not_requested, ElementsAre("w"));
}

TEST_F(OneProcess, a_damaged_checkpoint_is_passed_over_where_that_is_allowed) {
  save(job_, state_, {.directory = "run", .step = 1});
  const auto first = w_;
  train();
  save(job_, state_, {.directory = "run", .step = 2});
  fs::resize_file(path("run/iter_0000002/__0_0.distcp"), 100);
  EXPECT_TRUE(code_of([&] { load(job_, state_, {.directory = "run"}); }));
  const LoadResult loaded =
      load(job_, state_, {.directory = "run", .fallback = Fallback::kNewestWhole});
  EXPECT_EQ(loaded.step, 1);
  EXPECT_EQ(w_, first);
  ASSERT_EQ(loaded.fell_back_from.size(), 1U);
  EXPECT_THAT(loaded.fell_back_from.front(), HasSubstr("iter_0000002"));

  // The damaged checkpoint is not one of the two that `keep` preserves.
  save(job_, state_, {.directory = "run", .step = 3, .keep = 2});
  EXPECT_TRUE(fs::exists(path("run/iter_0000001")));
}

TEST_F(OneProcess, what_is_damaged_in_one_directory_is_not_in_another) {
  for (const char* directory : {"run", "other"}) {
    for (const int step : {1, 2}) save(job_, state_, {.directory = directory, .step = step});
  }
  fs::resize_file(path("run/iter_0000002/__0_0.distcp"), 100);
  load(job_, state_, {.directory = "run", .fallback = Fallback::kNewestWhole});
  save(job_, state_, {.directory = "other", .step = 3, .keep = 2});
  EXPECT_FALSE(fs::exists(path("other/iter_0000001"))) << "step 2 in the other directory is whole";
  save(job_, state_, {.directory = "other", .step = 2});
  save(job_, state_, {.directory = "run", .step = 3, .keep = 2});
  EXPECT_TRUE(fs::exists(path("run/iter_0000001")))
      << "step 2 in this directory was not saved again";
}

TEST_F(OneProcess, a_save_in_flight_allows_changes_and_is_whole_when_finished) {
  const auto begun = w_;
  SaveInFlight flight = begin_save(job_, state_, {.directory = "run", .step = 1});
  train();
  while (!flight.poll()) {
  }
  EXPECT_EQ(flight.finish().directory, "run/iter_0000001");
  load(job_, state_, {.directory = "run"});
  EXPECT_EQ(w_, begun);
}

TEST_F(OneProcess, a_destroyed_save_in_flight_leaves_nothing_after_the_next_one) {
  save(job_, state_, {.directory = "run", .step = 1});
  {
    const SaveInFlight dropped = begin_save(job_, state_, {.directory = "run", .step = 2});
    EXPECT_EQ(code_of([&] { save(job_, state_, {.directory = "run", .step = 2}); }), Code::kLocked);
  }
  EXPECT_EQ(load(job_, state_, {.directory = "run"}).step, 1);
  save(job_, state_, {.directory = "run", .step = 2});
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path("run"))) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("iter_0000001", "iter_0000002",
                                                   "latest_checkpointed_iteration.txt"));
}

TEST_F(OneProcess, a_save_in_flight_outlives_its_job) {
  std::optional<SaveInFlight> flight;
  {
    Job passing = local_job(directory_.path());
    flight = begin_save(passing, state_, {.directory = "run", .step = 1});
  }
  EXPECT_EQ(flight->finish().directory, "run/iter_0000001");
}

TEST_F(OneProcess, verify_finds_damage_and_diff_finds_differences) {
  save(job_, state_, {.directory = "a"});
  save(job_, state_, {.directory = "b"});
  train();
  save(job_, state_, {.directory = "c"});
  EXPECT_EQ(verify(job_, "a").verdict, VerifyVerdict::kWhole);
  EXPECT_EQ(verify(job_, "a").elements, 12U);
  EXPECT_EQ(diff(job_, "a", "b").outcome, DiffOutcome::kSame);
  const DiffSummary other = diff(job_, "a", "c");
  EXPECT_EQ(other.outcome, DiffOutcome::kDifferent);
  EXPECT_THAT(other.different, ElementsAre("w"));
  fs::resize_file(path("b/__0_0.distcp"), 100);
  const Verification torn = verify(job_, "b");
  EXPECT_EQ(torn.verdict, VerifyVerdict::kDamaged);
  EXPECT_FALSE(torn.findings.empty());
  EXPECT_EQ(code_of([&] { verify(job_, "nowhere"); }), Code::kNotFound);
}

/// Records the last reported progress. Throws an exception after `most` calls, which ends the work.
struct Watch final : Progress {
  explicit Watch(int most = 1000) : left(most) {}
  void advance(std::string_view /*what*/, std::uint64_t now, std::uint64_t of) override {
    done = now;
    total = of;
    if (left-- == 0) throw Error(Code::kUsage, "seen enough");
  }
  int left;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

TEST_F(OneProcess, verify_and_diff_tell_how_far_they_are_and_can_be_ended) {
  save(job_, state_, {.directory = "a"});
  Watch verifying;
  EXPECT_EQ(verify(job_, "a", &verifying).verdict, VerifyVerdict::kWhole);
  EXPECT_GT(verifying.total, 0U);
  EXPECT_EQ(verifying.done, verifying.total);
  Watch comparing;
  EXPECT_EQ(diff(job_, "a", "a", &comparing).outcome, DiffOutcome::kSame);
  EXPECT_GT(comparing.total, 0U);
  EXPECT_EQ(comparing.done, comparing.total);
  Watch enough(0);
  EXPECT_EQ(code_of([&] { verify(job_, "a", &enough); }), Code::kUsage);
  enough = Watch(0);
  EXPECT_EQ(code_of([&] { diff(job_, "a", "a", &enough); }), Code::kUsage);
}

TEST_F(OneProcess, a_state_takes_each_key_once_and_names_what_it_lacks) {
  const auto again = error_of([&] { state_.add("w", whole({4, 3}), w_.data()); });
  ASSERT_TRUE(again);
  EXPECT_EQ(again->code(), Code::kUsage);
  EXPECT_EQ(again->place().key, "w");
  EXPECT_EQ(code_of([&] { state_.object("rng"); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] {
              sharded({4}, alone_, {{"dp", 1}}, job_.rank());
            }),
            Code::kLayoutMismatch);
  EXPECT_EQ(code_of([&] { sharded({4}, alone_, {}, GlobalRank{3}); }), Code::kLayoutMismatch);
}

TEST(Sharding, gives_each_rank_its_part_and_its_copy) {
  const Mesh mesh({{"tp", 2}, {"dp", 2}});
  const Sharded part = sharded({5, 4}, mesh, {{"tp", 0}}, GlobalRank{3});
  EXPECT_EQ(part.offset, (Dims{3, 0}));
  EXPECT_EQ(part.extent, (Dims{2, 4}));
  EXPECT_EQ(part.local_elements(), 8U);
  EXPECT_EQ(part.replica, 1);
}

TEST(ElementTypes, follow_the_types_of_the_language) {
  static_assert(dtype_of<float>() == DType::kFloat32);
  static_assert(dtype_of<double>() == DType::kFloat64);
  static_assert(dtype_of<std::int64_t>() == DType::kInt64);
  static_assert(dtype_of<long long>() == DType::kInt64);
  static_assert(dtype_of<std::uint16_t>() == DType::kUInt16);
  static_assert(dtype_of<std::int8_t>() == DType::kInt8);
  static_assert(dtype_of<bool>() == DType::kBool);
  static_assert(dtype_of<std::complex<float>>() == DType::kComplex64);
}

/// Counts the events that are reported.
struct CountingTrace final : Trace {
  void event(const TraceEvent& /*event*/) override { ++events; }
  int events = 0;
};

TEST(Jobs, take_ports_of_the_users_own_and_refuse_to_lack_one) {
  const contracts::TemporaryDirectory directory;
  const auto trace = std::make_shared<CountingTrace>();
  JobPorts ports = local_ports(directory.path(), {.trace = trace});
  Job job(ports);
  const State empty;
  save(job, empty, {.directory = "run"});
  EXPECT_GT(trace->events, 0);
  ports.device = nullptr;
  EXPECT_EQ(code_of([&] { Job lacking(ports); }), Code::kUsage);
  EXPECT_EQ(code_of([&] { local_job(directory.path(), {.threads = -1}); }), Code::kUsage);
}

TEST(Jobs, are_movable) {
  const contracts::TemporaryDirectory directory;
  Job first = local_job(directory.path());
  const Job second = std::move(first);
  EXPECT_EQ(second.rank(), GlobalRank{0});
  EXPECT_EQ(second.world_size(), 1);
}

}  // namespace
}  // namespace reprise
