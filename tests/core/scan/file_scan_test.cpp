// Tests that a scan finds the names that Python's own unpickler asks for, in pickles of each
// protocol and in files of torch.save, and that nothing that hides a name counts as looked at.

#include "core/scan/file_scan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/scan/tree_scan.hpp"
#include "tests/core/format/pickles.hpp"

namespace reprise::test::file_scan_test {
namespace {

using pickle::Standing;
using Names = std::set<std::string>;

const std::string kFolder = std::string(REPRISE_TEST_DATA) + "/scan_3.11.7/";

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

FileScan scan(const std::string& content) {
  SpanSource source(as_bytes(content));
  return scan_file(source);
}
FileScan scan_fixture(const std::string& name) { return scan(content_of(kFolder + name)); }

Names names_of(const FileScan& scan) {
  Names names;
  for (const ScannedName& each : scan.names) names.insert(each.name);
  return names;
}

Standing standing_of(const FileScan& scan, const std::string& name) {
  const auto found = std::ranges::find(scan.names, name, &ScannedName::name);
  EXPECT_NE(found, scan.names.end()) << name;
  return found == scan.names.end() ? Standing::kKnown : found->standing;
}

TEST(FileScan, finds_the_names_that_python_asks_for) {
  const auto expected = nlohmann::json::parse(content_of(kFolder + "expected.json")).at("files");
  // Python computes these names while it loads; a scan says so and refuses them.
  const Names computed{"computed.pkl",          "escaped.pkl", "extension.pkl", "getattr.pkl",
                       "getattr_handed_on.pkl", "outside.pkl", "long_name.pkl", "as_text.py"};
  std::size_t compared = 0;
  for (const auto& [file, names] : expected.items()) {
    if (computed.contains(file)) continue;
    EXPECT_EQ(names_of(scan_fixture(file)), names.get<Names>()) << file;
    ++compared;
  }
  EXPECT_EQ(compared, 48U);
}

TEST(FileScan, no_hostile_file_is_clean) {
  std::size_t hostile = 0;
  const auto expected = nlohmann::json::parse(content_of(kFolder + "expected.json")).at("files");
  for (const auto& [file, names] : expected.items()) {
    const bool harmless = file.starts_with("harmless") || file == "as_text.py" ||
                          file == "no_pickle.pkl" || file == "empty.pkl";
    const FileScan found = scan_fixture(file);
    const bool clean =
        found.unscanned.empty() && std::ranges::all_of(found.names, [](const ScannedName& each) {
          return each.standing == Standing::kKnown;
        });
    EXPECT_EQ(clean, harmless) << file;
    hostile += harmless ? 0 : 1;
  }
  EXPECT_EQ(hostile, 45U);
}

TEST(FileScan, a_name_has_its_offset_and_its_record) {
  const FileScan alone = scan_fixture("inst.pkl");
  ASSERT_EQ(alone.names.size(), 1U);
  EXPECT_EQ(alone.names[0].offset, 9U);
  EXPECT_EQ(alone.names[0].record, "");
  for (const char* file : {"hidden_record.pt", "hidden_text.pt", "second_pickle.pt"}) {
    const std::string content = content_of(kFolder + file);
    const FileScan found = scan(content);
    const auto& last = found.names.back();
    EXPECT_EQ(last.standing, Standing::kRefused) << file;
    EXPECT_NE(last.record, "data.pkl") << file;
    EXPECT_NE(content.substr(last.offset - 8, 40).find("system"), std::string::npos) << file;
  }
}

TEST(FileScan, what_only_a_run_would_tell_is_refused) {
  struct Row {
    std::string file;
    std::string name;
  };
  for (const Row& row :
       std::vector<Row>{{"computed.pkl", "a name that the pickle computes"},
                        {"escaped.pkl", "a name that the pickle computes"},
                        {"extension.pkl", "what a program registered as extension 77"},
                        {"outside.pkl", "something outside the pickle"},
                        {"getattr.pkl", "torch.Tensor.__init__"},
                        {"getattr_handed_on.pkl", "builtins.getattr"},
                        {"changes_a_class.pkl", "collections.OrderedDict"}}) {
    const FileScan found = scan_fixture(row.file);
    EXPECT_TRUE(std::ranges::any_of(found.names, [&](const ScannedName& each) {
      return each.name == row.name && each.standing == Standing::kRefused && !each.why.empty();
    })) << row.file;
  }
}

TEST(FileScan, members_of_known_enums_may_be_read) {
  const std::string mode = global("megatron.core.rerun_state_machine", "RerunMode");
  const auto read = [&](const std::string& of, const std::string& member) {
    return scan(std::string(
        as_text(pickle(global("__builtin__", "getattr") + of + text(member) + "\x86R"))));
  };
  EXPECT_EQ(read(mode, "DISABLED").names.size(), 2U);
  EXPECT_EQ(
      standing_of(read(mode, "__class__"), "megatron.core.rerun_state_machine.RerunMode.__class__"),
      Standing::kRefused);
  EXPECT_EQ(standing_of(read(global("my", "Mode"), "FAST"), "my.Mode.FAST"), Standing::kUnknown);
}

TEST(FileScan, damage_is_told_with_what_came_before_it) {
  const FileScan cut = scan_fixture("cut_after_name.pkl");
  EXPECT_EQ(standing_of(cut, "os.system"), Standing::kRefused);
  ASSERT_EQ(cut.unscanned.size(), 1U);
  EXPECT_EQ(scan_fixture("cut.pkl").unscanned.size(), 1U);
  EXPECT_EQ(scan_fixture("trailing.pkl").unscanned.size(), 1U);
  EXPECT_EQ(scan_fixture("garbled_pickle.pt").unscanned.at(0).record, "other.pkl");
  const FileScan rest = scan_fixture("rest_before.distcp");
  EXPECT_EQ(rest.unscanned.size(), 1U);
  EXPECT_EQ(rest.names.size(), 3U);
}

TEST(FileScan, each_archive_in_a_row_is_scanned) {
  const FileScan found = scan_fixture("in_a_row.distcp");
  EXPECT_EQ(found.kind, "3 archives");
  EXPECT_EQ(found.pickles, 3U);
  const auto& tensor = found.names.front();
  EXPECT_EQ(tensor.pickles, 3U);
  EXPECT_EQ(standing_of(found, "posix.system"), Standing::kRefused);
}

TEST(FileScan, other_files_have_no_kind) {
  EXPECT_EQ(scan_fixture("no_pickle.pkl").kind, "");
  EXPECT_EQ(scan_fixture("as_text.py").kind, "");
  EXPECT_EQ(scan("").kind, "empty");
  EXPECT_EQ(scan("\x28\xb5\x2f\xfd----").unscanned.size(), 1U);
  EXPECT_TRUE(is_name_of_pickles("a/.metadata"));
  EXPECT_FALSE(is_name_of_pickles("metadata.json"));
}

TEST(FileScan, safetensors_that_are_a_pickle_too_are_found) {
  // The length of the header reads as the opcode SHORT_BINSTRING, which skips 80 bytes.
  std::string content("\x55\x50\0\0\0\0\0\0{\"", 10);
  content.resize(82, ' ');
  content += "0cos\nsystem\n(S'true'\ntR.";
  EXPECT_EQ(standing_of(scan(content), "os.system"), Standing::kRefused);
}

}  // namespace
}  // namespace reprise::test::file_scan_test
