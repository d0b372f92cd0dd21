// Tests that diff compares the files next to the payload: by their values if diff can read them,
// otherwise by their bytes. It must never silently report different files as the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "core/adapters/posix/host_device.hpp"
#include "core/diff/diff.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/integrity.hpp"
#include "core/format/pickle/pickle_writer.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

using test::WrittenCheckpoint;
using ::testing::HasSubstr;

class DiffBeside : public testing::Test {
 protected:
  DiffBeside() {
    for (auto* side : {&a_, &b_}) side->bytes("weight", 4, 1);
  }

  static void put(WrittenCheckpoint& side, const std::string& name, ByteSpan content) {
    const std::string path = "ckpt/" + name;
    side.store().make_directory(parent_path(path));
    write_durably(side.store(), path, content);
  }
  void put(const std::string& name, ByteSpan left, ByteSpan right) {
    put(a_, name, left);
    put(b_, name, right);
  }
  std::filesystem::path path(WrittenCheckpoint& side, const std::string& name) {
    return side.store().display("ckpt/" + name);
  }

  DiffReport report(const DiffOptions& options = {}) { return report_of(a_, b_, options); }
  static DiffReport report_of(WrittenCheckpoint& left, WrittenCheckpoint& right,
                              const DiffOptions& options = {}) {
    return test::diff_of(left.store(), "ckpt", right.store(), "ckpt", options);
  }
  /// Returns the result for the file. The test fails if the report does not contain exactly one
  /// file.
  ObjectDiff file(const DiffReport& report) {
    if (report.files.size() == 1) return report.files[0];
    ADD_FAILURE() << report.files.size() << " files";
    return {};
  }

  WrittenCheckpoint a_;
  WrittenCheckpoint b_;
};

TEST_F(DiffBeside, the_same_bytes_are_the_same_whatever_they_are) {
  const Bytes large(1U << 20U, std::byte{7});
  put("loader.state", large, large);
  const auto same = report();
  EXPECT_EQ(file(same).verdict, DiffVerdict::kSame);
  EXPECT_EQ(same.files_compared, 1U);
  EXPECT_EQ(same.outcome(), DiffOutcome::kSame);
}

TEST_F(DiffBeside, archives_and_pickles_are_compared_by_value) {
  const Value one = Dict{{"epoch", 1}};
  const Value two = Dict{{"epoch", 2}};
  put("meta.pt", write_bytes_item(one, "archive"), write_bytes_item(one, "meta"));
  EXPECT_EQ(file(report()).verdict, DiffVerdict::kSame) << "only the archive's inner name differs";
  put("meta.pt", write_bytes_item(one), write_bytes_item(two));
  const auto archives = report();
  EXPECT_EQ(file(archives).verdict, DiffVerdict::kDifferent);
  ASSERT_EQ(file(archives).differences.size(), 1U);
  EXPECT_EQ(file(archives).differences[0].path, "['epoch']");
  EXPECT_EQ(archives.outcome(LayoutBound::kAccepted), DiffOutcome::kDifferent);
  put("meta.pt", encode_value(one, nullptr), encode_value(two, nullptr));
  EXPECT_EQ(file(report()).verdict, DiffVerdict::kDifferent);
  EXPECT_EQ(file(report()).differences.size(), 1U);
}

TEST_F(DiffBeside, other_bytes_that_are_not_interpreted_are_not_known) {
  const auto opaque = [](const char* name) {
    return read_all(test::data_store(), "torch_2.15.0/objects/" + std::string(name) + ".pt",
                    1U << 20U);
  };
  const std::pair<Bytes, Bytes> rows[] = {
      {to_bytes("left"), to_bytes("right")},
      {to_bytes(""), to_bytes("right")},
      {to_bytes("\x80\x02garbled"), to_bytes("\x80\x02gambled")},
      {opaque("foreign_class"), opaque("legacy_stream")},
  };
  for (const auto& [left, right] : rows) {
    put("state", left, right);
    const auto open = report();
    EXPECT_EQ(file(open).verdict, DiffVerdict::kNotKnown);
    EXPECT_THAT(file(open).reason, HasSubstr("not interpreted: "));
    EXPECT_EQ(open.files_compared, 0U);
    EXPECT_EQ(open.not_known(), 1U);
    EXPECT_EQ(open.outcome(LayoutBound::kAccepted), DiffOutcome::kNotAllCompared);
  }
}

TEST_F(DiffBeside, large_files_are_compared_as_bytes) {
  constexpr std::uint64_t kLarge = std::uint64_t{40} << 20U;  // most of the file is a hole
  for (auto* side : {&a_, &b_}) {
    put(*side, "loader.pt", write_bytes_item(Value(1)));
    std::filesystem::resize_file(path(*side, "loader.pt"), kLarge);
  }
  EXPECT_EQ(file(report()).verdict, DiffVerdict::kSame);
  b_.store().open("ckpt/loader.pt");
  std::filesystem::resize_file(path(b_, "loader.pt"), kLarge + 1);
  EXPECT_EQ(file(report()).verdict, DiffVerdict::kNotKnown);
  EXPECT_THAT(file(report()).reason, HasSubstr("larger than 16"));
  for (auto* side : {&a_, &b_}) {
    put(*side, "loader.pt", write_bytes_item(Value(side == &a_ ? 1 : 2)));
    std::filesystem::resize_file(path(*side, "loader.pt"), std::uint64_t{16} << 20U);
  }
  EXPECT_THAT(file(report()).reason, testing::Not(HasSubstr("larger than")));
}

Bytes concatenated(const Value& one, const Value& other) {
  Bytes bytes = encode_value(one, nullptr);
  append(bytes, encode_value(other, nullptr));
  return bytes;
}

/// Returns a file that torch.save would write for a list with one number, plus an additional record
/// `name`.
Bytes with_record(std::string_view name, std::string_view content, std::string_view prefix) {
  ArchiveWriter out(prefix);
  out.add("data.pkl", encode_value(List{1}, nullptr));
  out.add(name, as_bytes(content));
  out.add("version", as_bytes("3\n"));
  out.finish();
  return out.take();
}

Bytes with_bytes_after_pickle(std::string_view rest) {
  Bytes pickle = encode_value(List{1}, nullptr);
  append(pickle, as_bytes(rest));
  ArchiveWriter out("archive");
  out.add("data.pkl", pickle);
  out.add("version", as_bytes("3\n"));
  out.finish();
  return out.take();
}

struct LeftOut {
  Bytes left;
  Bytes right;
  const char* what;
};

std::vector<LeftOut> archives_with_more_than_a_value() {
  return {
      {with_record("extra/config.json", "AAAA", "archive"),
       with_record("extra/config.json", "BBBB", "archive"), "'extra/config.json'"},
      {with_record("data/7", "AAAA", "archive"), with_record("data/7", "BBBB", "archive"),
       "'data/7'"},
      {write_bytes_item(List{1}), with_record("extra/config.json", "BBBB", "archive"),
       "'extra/config.json'"},
      {with_bytes_after_pickle("A"), with_bytes_after_pickle("B"), "1 bytes after the pickle"},
  };
}

TEST_F(DiffBeside, what_is_no_part_of_the_value_is_never_the_same_in_silence) {
  std::vector<LeftOut> rows = archives_with_more_than_a_value();
  rows.push_back({concatenated(List{1}, List{2}), concatenated(List{1}, List{3}), "after the"});
  for (const auto& [left, right, what] : rows) {
    SCOPED_TRACE(what);
    put("state", left, right);
    EXPECT_EQ(file(report()).verdict, DiffVerdict::kNotKnown);
    EXPECT_THAT(file(report()).reason, HasSubstr(what));
    EXPECT_EQ(report().outcome(), DiffOutcome::kNotAllCompared);
    put("state", left, left);
    EXPECT_EQ(report().outcome(), DiffOutcome::kSame);
  }
  put("state", concatenated(List{1}, List{2}), concatenated(List{2}, List{2}));
  EXPECT_EQ(file(report()).verdict, DiffVerdict::kDifferent);
  put("state", with_record("byteorder", "little", "one"), with_record("byteorder", "little", "b"));
  EXPECT_EQ(file(report()).verdict, DiffVerdict::kSame)
      << "every item has this record, so it is no content";
}

TEST_F(DiffBeside, parts_outside_of_an_objects_value_are_never_ignored) {
  for (const auto& [left, right, what] : archives_with_more_than_a_value()) {
    SCOPED_TRACE(what);
    for (const bool equal : {true, false}) {
      WrittenCheckpoint a;
      WrittenCheckpoint b;
      a.item("state", left);
      b.item("state", equal ? left : right);
      const DiffReport judged = report_of(a, b);
      ASSERT_EQ(judged.objects.size(), 1U);
      EXPECT_EQ(judged.objects[0].verdict, equal ? DiffVerdict::kSame : DiffVerdict::kNotKnown);
    }
  }
}

TEST_F(DiffBeside, parts_outside_of_the_common_state_are_never_ignored) {
  const auto common = [](std::string_view content) {
    ArchiveWriter out("common");
    out.add("data.pkl", encode_value(Dict{{"iteration", 1}}, nullptr));
    out.add("extra", as_bytes(content));
    out.add("version", as_bytes("3\n"));
    out.finish();
    return out.take();
  };
  put("common.pt", common("A"), common("B"));
  const DiffReport other = report();
  ASSERT_EQ(other.objects.size(), 1U);
  EXPECT_EQ(other.objects[0].verdict, DiffVerdict::kNotKnown);
  put("common.pt", common("A"), common("A"));
  EXPECT_EQ(report().outcome(), DiffOutcome::kSame);
}

TEST_F(DiffBeside, what_only_one_side_has_is_different) {
  put(a_, "modelopt_state/deep/state", as_bytes("x"));
  const auto left = report();
  EXPECT_EQ(file(left).verdict, DiffVerdict::kOnlyLeft);
  EXPECT_EQ(file(left).key, "modelopt_state/deep/state");
  EXPECT_EQ(left.outcome(), DiffOutcome::kDifferent);
  std::swap(a_.store(), b_.store());
  EXPECT_EQ(file(report()).verdict, DiffVerdict::kOnlyRight);
}

TEST_F(DiffBeside, users_files_with_names_of_checkpoint_files_are_compared) {
  for (const std::string name : {"metadata.json", "integrity.json", "common.pt"}) {
    SCOPED_TRACE(name);
    put(name, as_bytes("{\"mine\": 1}"), as_bytes("{\"mine\": 2}"));
    EXPECT_EQ(file(report()).key, name);
    EXPECT_EQ(file(report()).verdict, DiffVerdict::kNotKnown);
    for (auto* side : {&a_, &b_}) side->store().remove("ckpt/" + name);
  }
}

TEST_F(DiffBeside, metadata_json_of_megatron_is_compared_by_value) {
  const std::string name(kBackendFile);
  const auto judged = [&](std::string_view left, std::string_view right) {
    put(name, as_bytes(left), as_bytes(right));
    return file(report()).verdict;
  };
  const std::string_view plain = R"({"sharded_backend": "torch_dist"})";
  EXPECT_EQ(judged(plain, as_text(write_backend_info())), DiffVerdict::kSame)
      << "fields that a version omits have the same meaning";
  EXPECT_EQ(judged(plain, R"({"sharded_backend": "zarr"})"), DiffVerdict::kDifferent);
  EXPECT_EQ(judged(plain, R"({"sharded_backend": "torch_dist", "own": [1]})"),
            DiffVerdict::kDifferent);
  EXPECT_EQ(judged(plain, R"({"mine": 1})"), DiffVerdict::kDifferent);
  EXPECT_EQ(judged(plain, R"({"sharded_backend": )"), DiffVerdict::kNotKnown);
}

TEST_F(DiffBeside, megatron_s_own_files_on_one_side_alone_are_different) {
  for (const auto& [name, content] : std::vector<std::pair<std::string, Bytes>>{
           {"metadata.json", write_backend_info()}, {"integrity.json", write_integrity({})}}) {
    SCOPED_TRACE(name);
    put(a_, name, content);
    put("common.pt", write_common_file({{"iteration", 1}}), write_common_file({{"iteration", 1}}));
    EXPECT_EQ(file(report()).key, name);
    EXPECT_EQ(file(report()).verdict, DiffVerdict::kOnlyLeft);
    EXPECT_EQ(report().outcome(), DiffOutcome::kDifferent);
    a_.store().remove("ckpt/" + name);
  }
}

TEST_F(DiffBeside, manifests_of_other_bytes_say_nothing_of_the_content) {
  put("integrity.json", write_integrity({}), write_integrity({{{"__0_0.distcp", {}}}}));
  EXPECT_TRUE(report().files.empty());
  EXPECT_EQ(report().outcome(), DiffOutcome::kSame);
}

TEST_F(DiffBeside, what_an_earlier_save_left_is_told_and_takes_no_part) {
  put(a_, "__7_0.distcp", as_bytes("stale"));
  put(a_, "__3.metadata", as_bytes("stale"));
  put(a_, "__8_0.distcp", as_bytes(""));
  const DiffReport judged = report();
  EXPECT_EQ(judged.outcome(), DiffOutcome::kSame);
  ASSERT_EQ(judged.notes.size(), 2U);
  EXPECT_EQ(count_of(judged.notes, Severity::kNote), 2U);
  EXPECT_THAT(judged.notes[0].message, HasSubstr("__7_0.distcp; not compared"));
  EXPECT_THAT(judged.notes[1].message, HasSubstr("__3.metadata; not compared"));
}

TEST_F(DiffBeside, links_to_files_are_followed_and_links_to_directories_are_not) {
  put("blobs/x", as_bytes("x"), as_bytes("x"));
  put("blobs/y", as_bytes("x"), as_bytes("y"));
  for (auto* side : {&a_, &b_}) side->store().publish({"ckpt/blobs", "blobs"});
  std::filesystem::create_symlink("../blobs/x", path(a_, "meta.pt"));
  put(b_, "meta.pt", as_bytes("x"));
  EXPECT_EQ(file(report()).verdict, DiffVerdict::kSame);
  for (auto* side : {&a_, &b_}) {
    side->store().remove("ckpt/meta.pt");
    std::filesystem::create_directory_symlink("../blobs", path(*side, "state"));
  }
  const auto links = report();
  EXPECT_EQ(file(links).key, "state");
  EXPECT_EQ(file(links).verdict, DiffVerdict::kNotKnown);
  b_.store().remove("ckpt/state");
  EXPECT_EQ(file(report()).verdict, DiffVerdict::kOnlyLeft);
  put(b_, "state/x", as_bytes("x"));
  const auto beside_directory = report();
  ASSERT_EQ(beside_directory.files.size(), 2U);
  for (const auto& each : beside_directory.files) {
    EXPECT_EQ(each.verdict, DiffVerdict::kNotKnown) << each.key;
  }
}

TEST_F(DiffBeside, what_can_t_be_opened_is_not_known_and_ends_nothing) {
  const std::function<void(const std::filesystem::path&)> rows[] = {
      [](const auto& at) { std::filesystem::create_symlink("nowhere", at); },
      [](const auto& at) { std::filesystem::create_symlink("stray", at); },
      [](const auto& at) { ASSERT_EQ(::mkfifo(at.c_str(), 0600), 0); },
  };
  for (const auto& make : rows) {
    for (auto* side : {&a_, &b_}) {
      side->store();
      make(path(*side, "stray"));
    }
    const DiffReport judged = report();
    EXPECT_EQ(file(judged).key, "stray");
    EXPECT_EQ(file(judged).verdict, DiffVerdict::kNotKnown);
    EXPECT_THAT(file(judged).reason, HasSubstr("it can't be opened: open: "));
    EXPECT_EQ(judged.outcome(LayoutBound::kAccepted), DiffOutcome::kNotAllCompared);
    std::filesystem::remove(path(a_, "stray"));
    EXPECT_EQ(file(report()).verdict, DiffVerdict::kOnlyRight);
    std::filesystem::remove(path(b_, "stray"));
  }
}

TEST_F(DiffBeside, what_is_left_out_is_counted) {
  put("meta.pt", as_bytes("x"), as_bytes("y"));
  const auto left_out = report({.wanted = [](std::string_view key) { return key != "meta.pt"; }});
  EXPECT_TRUE(left_out.files.empty());
  EXPECT_EQ(left_out.ignored_keys, 1U);
  EXPECT_EQ(left_out.outcome(), DiffOutcome::kSame);
}

}  // namespace
}  // namespace reprise
