// Tests that bad input is refused quickly. The exit code must be right, and the message must name
// the file. The program must not allocate the memory that the input claims to need.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::bad_input_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFixture = "torch_2.15.0/same_content_a";
/// A checkpoint with common.pt and objects.
constexpr const char* kMegatron = "mcore_0.16.1_gpt_dp2/iter_0000010";
constexpr const char* kTensor = "layers.0.weight";

struct InputRow {
  const char* name;
  std::function<void(const Victim&)> damage;
  int verify;        ///< exit code of verify
  int diff;          ///< exit code of diff against the undamaged checkpoint
  const char* says;  ///< text that verify must print
  const char* fixture = kFixture;
};

StoredTensor& tensor_in(Metadata& metadata, const std::string& key) {
  for (auto& tensor : metadata.catalog.tensors) {
    if (tensor.key == key) return tensor;
  }
  throw std::out_of_range(key);
}

/// Returns a pickle that would call `module.name("true")`.
std::string pickle_calling(const std::string& module, const std::string& name) {
  const std::string argument("X\x04\x00\x00\x00true", 9);
  return "\x80\x02\x63" + module + "\n" + name + "\n" + argument + "\x85R.";
}

std::vector<InputRow> rows() {
  const auto edit = [](void (*change)(StoredTensor&)) {
    return [change](const Victim& v) {
      v.edit_metadata([change](Metadata& m) { change(tensor_in(m, kTensor)); });
    };
  };
  return {
      {"payload cut in half", [](const Victim& v) { v.truncate("__1_0.distcp", 2000); }, 1, 2,
       "__1_0.distcp"},
      {"payload cut by a byte",
       [](const Victim& v) {
         v.truncate("__1_0.distcp", std::filesystem::file_size(v.file("__1_0.distcp")) - 1);
       },
       1, 2, "the file ends at"},
      {"payload empty", [](const Victim& v) { v.truncate("__2_0.distcp", 0); }, 1, 2,
       "the file ends at 0"},
      {"payload gone", [](const Victim& v) { v.remove("__2_0.distcp"); }, 1, 2,
       "the file is missing"},
      {"payload bit flipped",
       [](const Victim& v) {
         const auto at = v.elements_of(kTensor);
         v.flip(at.file, at.offset + 3);
       },
       1, 2, "CHECKSUM"},
      {"payload end record flipped", [](const Victim& v) { v.flip("__0_0.distcp", -20); }, 1, 2,
       "__0_0.distcp"},
      {"metadata cut", [](const Victim& v) { v.truncate(".metadata", 700); }, 1, 2, ".metadata"},
      {"metadata empty", [](const Victim& v) { v.truncate(".metadata", 0); }, 1, 2, ".metadata"},
      {"metadata is text", [](const Victim& v) { v.write(".metadata", "hello"); }, 1, 2,
       ".metadata"},
      {"metadata gone", [](const Victim& v) { v.remove(".metadata"); }, 1, 2, "INCOMPLETE"},
      {"os.system", [](const Victim& v) { v.write(".metadata", pickle_calling("os", "system")); },
       1, 2, "REFUSED_NAME"},
      {"posix.system",
       [](const Victim& v) { v.write(".metadata", pickle_calling("posix", "system")); }, 1, 2,
       "REFUSED_NAME"},
      {"builtins.eval",
       [](const Victim& v) { v.write(".metadata", pickle_calling("builtins", "eval")); }, 1, 2,
       "REFUSED_NAME"},
      {"string of 4 GB claimed",
       [](const Victim& v) {
         v.write(".metadata", std::string("\x80\x02X\xff\xff\xff\xff"
                                          "abc.",
                                          11));
       },
       1, 2, ".metadata"},
      {"bytes of 2^63 claimed",
       [](const Victim& v) {
         v.write(".metadata", std::string("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", 12));
       },
       1, 2, ".metadata"},
      {"chunk missing", edit([](StoredTensor& t) { t.chunks.erase(t.chunks.begin()); }), 1, 2,
       "COVERAGE_GAP"},
      {"chunks overlap", edit([](StoredTensor& t) { t.chunks[1].box.offset[0] -= 1; }), 1, 2,
       "CHUNK_OVERLAP"},
      {"chunk outside its tensor", edit([](StoredTensor& t) { t.chunks[0].box.offset[0] = 1000; }),
       1, 2, "EXTENT_MISMATCH"},
      {"extent of 2^62 rows", edit([](StoredTensor& t) {
         t.shape[0] = std::int64_t{1} << 62U;
         t.chunks[0].box.extent[0] = std::int64_t{1} << 62U;
       }),
       1, 2, kTensor},
      {"range beyond the file",
       edit([](StoredTensor& t) { t.chunks[0].range.offset = std::uint64_t{1} << 40U; }), 1, 2,
       "the file ends at"},
      {"range at the end of numbers",
       edit([](StoredTensor& t) { t.chunks[0].range.offset = (std::uint64_t{1} << 63U) - 16; }), 1,
       2, "ends at"},
      {"two items in the same bytes", edit([](StoredTensor& t) {
         t.chunks[1].file = t.chunks[0].file;
         t.chunks[1].range = t.chunks[0].range;
       }),
       1, 2, "overlap"},
      {"another dtype than the item's", edit([](StoredTensor& t) { t.dtype = DType::kInt32; }), 1,
       1, "DTYPE_DRIFT"},
      {"path escape",
       [](const Victim& v) {
         v.edit_metadata([](Metadata& m) { m.catalog.files[0] = "../../etc/passwd"; });
       },
       1, 2, "PATH_ESCAPE"},
      {"absolute path",
       [](const Victim& v) {
         v.edit_metadata([](Metadata& m) { m.catalog.files[0] = "/etc/passwd"; });
       },
       1, 2, "PATH_ESCAPE"},
      {"common.pt flipped at its first byte", [](const Victim& v) { v.flip("common.pt", 0); }, 1, 2,
       "common.pt, offset 0", kMegatron},
      {"common.pt empty", [](const Victim& v) { v.truncate("common.pt", 0); }, 1, 2, "common.pt",
       kMegatron},
      {"common.pt is text", [](const Victim& v) { v.write("common.pt", "{\"hello\": 1}"); }, 1, 2,
       "common.pt", kMegatron},
      {"object of zeros", [](const Victim& v) { v.zero_object_in("__0_0.distcp"); }, 1, 2,
       "__0_0.distcp", kMegatron},
      {"common.pt with a flipped bit in a value",
       [](const Victim& v) { v.flip("common.pt", v.offset_of("common.pt", "iteration") + 12); }, 1,
       2, "CHECKSUM", kMegatron},
      {"description of a tensor with a flipped bit that still decodes",
       [](const Victim& v) { v.flip("__0_0.distcp", v.offset_of("__0_0.distcp", "cpu") + 1); }, 1,
       2, "data.pkl"},
  };
}

TEST(BadInput, EachIsRefusedByVerifyAndByDiff) {
  // This limit is enough for the sizes that the files really have, but far too low for the sizes
  // that they claim.
  const RunLimits limits{.seconds = 20, .address_space_bytes = std::uint64_t{1} << 30U};
  for (const InputRow& row : rows()) {
    const std::string good = std::string(REPRISE_TEST_DATA) + "/" + row.fixture;
    const Victim victim(row.fixture);
    row.damage(victim);
    const auto verified = run_program({"verify", victim.path()}, limits);
    EXPECT_EQ(verified.exit_code, row.verify) << row.name << '\n' << verified.all();
    EXPECT_THAT(verified.all(), HasSubstr(row.says)) << row.name;
    const auto compared = run_program({"diff", good, victim.path()}, limits);
    EXPECT_EQ(compared.exit_code, row.diff) << row.name << '\n' << compared.all();
    if (row.diff == 2) {
      EXPECT_THAT(compared.err, HasSubstr("reprise diff: ")) << row.name;
    }
  }
}

TEST(BadInput, WhatIsNoCheckpointIsUnreadable) {
  const Victim victim(kFixture);
  for (const std::string& path :
       {victim.path() + "/nowhere", victim.path() + "/.metadata", std::string("/proc/self")}) {
    for (const char* verb : {"verify", "inspect"}) {
      const auto result = run_program({verb, path});
      EXPECT_EQ(result.exit_code, 2) << verb << ' ' << path << '\n' << result.all();
      EXPECT_THAT(result.err, HasSubstr("NOT_FOUND")) << verb << ' ' << path;
    }
  }
}

TEST(BadInput, OfTwoThatCannotBeOpenedDiffNamesTheFirst) {
  const Victim victim(kFixture);
  for (const char* jobs : {"1", "2", "7"}) {
    const auto result = run_program(
        {"diff", "--jobs", jobs, victim.path() + "/nowhere_a", victim.path() + "/nowhere_b"});
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_THAT(result.err, AllOf(HasSubstr("nowhere_a"), Not(HasSubstr("nowhere_b"))));
  }
}

TEST(BadInput, EveryTruncationOfTheMetadataIsRefused) {
  const Victim victim(kFixture);
  const auto size = std::filesystem::file_size(victim.file(".metadata"));
  for (std::uint64_t cut = size - 1; cut > size / 29; cut -= size / 29) {
    victim.truncate(".metadata", cut);
    EXPECT_EQ(run_program({"verify", victim.path()}).exit_code, 1) << cut;
  }
}

TEST(BadInput, NoFlippedBitOfTheMetadataCrashesOrHangs) {
  const std::string good = std::string(REPRISE_TEST_DATA) + "/" + kFixture;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(good + "/.metadata"));
  for (std::int64_t at = 0; at < size; at += size / 61) {
    const Victim victim(kFixture);
    victim.flip(".metadata", at);
    const auto result = run_program(
        {"verify", victim.path()}, {.seconds = 20, .address_space_bytes = std::uint64_t{1} << 30U});
    EXPECT_THAT(result.exit_code, ::testing::AnyOf(0, 1)) << at << '\n' << result.all();
  }
}

}  // namespace
}  // namespace reprise::test::bad_input_test
