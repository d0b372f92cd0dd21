// Tests that a scan finds the names that Python's own unpickler asks for, in pickles of each
// protocol and in files of torch.save, and that nothing that hides a name counts as looked at.

#include "core/scan/file_scan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <new>
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

const std::string kRunsCode = "cos\nsystem\n(S'true'\ntR.";
const std::string kTorn = "cmymod\nrun\n(S'true'\ntR";

TEST(FileScan, safetensors_that_are_a_pickle_too_are_found) {
  // The length of the header reads as the opcode SHORT_BINSTRING, which skips 80 bytes.
  std::string content("\x55\x50\0\0\0\0\0\0{\"", 10);
  content.resize(82, ' ');
  EXPECT_EQ(standing_of(scan(content + "0" + kRunsCode), "os.system"), Standing::kRefused);
  EXPECT_EQ(standing_of(scan(content + "0" + kTorn), "mymod.run"), Standing::kUnknown);
}

TEST(FileScan, only_a_header_that_fits_makes_it_safetensors) {
  const std::string header = R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const std::string whole = le(std::uint64_t{header.size()}) + header + "ab";
  EXPECT_EQ(scan(whole).kind, "safetensors");
  EXPECT_TRUE(scan(whole).unscanned.empty());
  EXPECT_EQ(scan(whole + "c").unscanned.size(), 1U);
  EXPECT_EQ(scan(le(std::uint64_t{9}) + "{\"garbage").unscanned.size(), 1U);
}

TEST(FileScan, indexes_are_read_as_python_reads_them) {
  for (const char* put : {"p+0\n", "p 0\n", "p0 \n", "p00\n", "p-0\n", "p1_0\n", "p\t7\r\n",
                          "p123456789012345\n", "r\x01\x01\x01\x01"}) {
    const FileScan found = scan("N"s + put + "0" + kRunsCode);
    EXPECT_EQ(standing_of(found, "os.system"), Standing::kRefused) << put;
    EXPECT_TRUE(found.unscanned.empty()) << put;
  }
  EXPECT_EQ(scan("Np0\0rest\n0"s + kRunsCode).names.size(), 1U);
  EXPECT_EQ(scan("Np99999999999999999999999\n0" + kRunsCode).unscanned.size(), 1U);
  for (const char* wrong : {"p_0\n", "p0_\n", "p1__0\n", "p-1\n", "p\n", "p0x\n"}) {
    EXPECT_TRUE(scan("N"s + wrong + "0" + kRunsCode).names.empty()) << wrong;
  }
}

TEST(FileScan, an_entry_far_away_may_be_made_again) {
  std::string body = text("posix") + "r" + le(std::uint32_t{1100}) + "0";
  for (int i = 0; i < 80; ++i)
    body +=
        "N\x94"
        "0";
  body += text("os") + "r" + le(std::uint32_t{1100}) + "0j" + le(std::uint32_t{1100}) +
          text("system") + "\x93";
  EXPECT_EQ(names_of(scan(std::string(as_text(pickle(body, 4))))), Names{"os.system"});
}

TEST(FileScan, text_that_is_not_utf8_does_not_end_it) {
  EXPECT_EQ(names_of(scan("X\x03\0\0\0\xed\xa0\x80"s + "0" + kRunsCode)), Names{"os.system"});
}

TEST(FileScan, what_a_torn_pickle_calls_is_told) {
  EXPECT_EQ(standing_of(scan(kTorn), "mymod.run"), Standing::kUnknown);
  EXPECT_EQ(scan(kTorn).unscanned.size(), 1U);
  // Words of a text are no names.
  EXPECT_TRUE(scan("cat\ndog\nmouse\n").unscanned.empty());
  EXPECT_TRUE(scan("cat, a\ndog, b\n(tR").unscanned.empty());
}

TEST(FileScan, what_wraps_pickles_is_not_looked_at) {
  struct Row {
    std::string begin;
    std::string kind;
  };
  for (const Row& row :
       std::vector<Row>{{"\x1f\x8b\x08\0"s, "gzip"},
                        {"\x78\x9c\x4b"s, "zlib"},
                        {"\x78\x5e\x6b"s, "zlib"},
                        {"BZh91AY&SY", "bzip2"},
                        {"\xfd"
                         "7zXZ\0\0"s,
                         "xz"},
                        {"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0"s, "lzma"},
                        {"\x04\x22\x4d\x18@"s, "lz4"},
                        {std::string(257, 'n') + "ustar ", "tar"}}) {
    const FileScan found = scan(row.begin);
    EXPECT_EQ(found.kind, row.kind);
    EXPECT_EQ(found.unscanned.size(), 1U) << row.kind;
  }
  // A pickle with a text there is one nevertheless.
  std::string content = "X" + le(std::uint32_t{300}) + std::string(252, 'n') + "ustar";
  content.resize(305, ' ');
  EXPECT_EQ(names_of(scan(content + "0" + kRunsCode)), Names{"os.system"});
}

std::string npy(const std::string& header) {
  return "\x93NUMPY\x01\0"s + le(static_cast<std::uint16_t>(header.size() + 1)) + header + "\n";
}

TEST(FileScan, only_arrays_of_numbers_have_no_pickle) {
  for (const char* type : {"<f4", "|b1", "|u1", "<U5", "<M8[ns]"}) {
    const FileScan found =
        scan(npy("{'descr': '"s + type + "', 'fortran_order': False, 'shape': (3, 4), }   "));
    EXPECT_EQ(found.kind, "numpy array");
    EXPECT_TRUE(found.unscanned.empty()) << type;
  }
  for (const char* header :
       {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'd' 'escr': 'O'}", "{}"}) {
    EXPECT_EQ(scan(npy(header)).unscanned.size(), 1U) << header;
  }
}

TEST(FileScan, a_name_that_promises_pickles_must_have_some) {
  const auto told = [](const char* name, const std::string& content) {
    FileScan found = scan(content);
    require_promised(name, found);
    return !found.unscanned.empty();
  };
  for (const char* name : {"weights.PT", "pytorch_model.bin", "a.joblib", "a.npy", "a.tar"}) {
    EXPECT_TRUE(told(name, "garbage")) << name;
    EXPECT_TRUE(told(name, "")) << name;
  }
  EXPECT_FALSE(told("__1_0.distcp", ""));
  const std::string header = R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const std::string elements = le(std::uint64_t{header.size()}) + header + "ab";
  EXPECT_FALSE(told("__0_0.distcp", elements));
  EXPECT_TRUE(told("model.pt", elements));
  EXPECT_FALSE(told("notes.txt", "garbage"));
  const std::string numbers = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }");
  EXPECT_FALSE(told("a.npy", numbers));
  EXPECT_TRUE(told("a.pt", numbers));
}

class NoMemory final : public ItemSource {
 public:
  std::uint64_t size() const override { return 100; }
  void read_at(std::uint64_t /*offset*/, MutableByteSpan /*out*/) override {
    throw std::bad_alloc();
  }
};

TEST(FileScan, a_file_that_does_not_fit_in_memory_is_told) {
  NoMemory source;
  EXPECT_EQ(scan_file(source).unscanned.size(), 1U);
}

}  // namespace
}  // namespace reprise::test::file_scan_test
