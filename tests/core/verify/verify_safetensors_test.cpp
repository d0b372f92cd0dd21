// Tests `verify` on safetensors that real packages wrote, and on damaged copies: each rule has a
// case that fails with its code, key, file and offset.

#include "core/verify/verify_safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

#include "core/verify/verify.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/safetensors_file.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise::test::verify_safetensors_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kData = "safetensors_0.8.0/";

VerifyReport verify_at(Store& store, const std::string& path,
                       PayloadCheck payload = PayloadCheck::kRead) {
  NoProgress progress;
  return verify(store, path, payload, progress);
}

std::string words_of(const Findings& findings) {
  std::ostringstream out;
  for (const auto& finding : findings) out << finding << '\n';
  return out.str();
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// Replaces a text that occurs once.
void replace(const fs::path& path, const std::string& from, const std::string& to) {
  std::string content = read(path);
  const auto at = content.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  ASSERT_EQ(content.find(from, at + 1), std::string::npos) << from;
  write(path, content.replace(at, from.size(), to));
}

std::uint64_t data_begin_of(const fs::path& path) {
  const std::string content = read(path);
  return 8 + load_le<std::uint64_t>(as_bytes(content));
}

/// A checkpoint in a temporary directory: a copy of a fixture, or empty.
struct Case : FixtureCopy {
  explicit Case(const std::string& fixture) : FixtureCopy(kData + fixture) {}
  fs::path operator/(const std::string& name) const { return path("ckpt") / name; }
};

struct Row {
  const char* what;
  const char* fixture;
  std::function<void(const Case&)> damage;
  Severity severity;
  Code code;
  std::string words;
  std::string key = {};
  std::string file = {};  // within the checkpoint
  std::function<std::uint64_t(const Case&)> offset = nullptr;
};

void expect_found(const Row& row) {
  SCOPED_TRACE(row.what);
  Case one(row.fixture);
  row.damage(one);
  const VerifyReport report = verify_at(one.store, "ckpt");
  const auto found = std::ranges::find_if(report.findings, [&](const Finding& finding) {
    const std::string file = row.file.empty() ? "" : one.store.display("ckpt/" + row.file);
    return finding.severity == row.severity && finding.code == row.code && finding.key == row.key &&
           (file.empty() || finding.file == file) &&
           finding.message.find(row.words) != std::string::npos;
  });
  ASSERT_NE(found, report.findings.end()) << words_of(report.findings);
  if (row.offset) {
    EXPECT_EQ(found->offset, row.offset(one)) << words_of(report.findings);
  }
  EXPECT_EQ(report.whole(), row.severity != Severity::kError);
}

constexpr const char* kModel = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kSecond = "model-00002-of-00003.safetensors";

TEST(VerifySafetensors, what_real_packages_wrote_is_whole) {
  for (const char* name :
       {"one", "one/model.safetensors", "dtypes", "transformers_shards",
        "transformers_shards/model.safetensors.index.json", "tied", "adapter", "pieces",
        "consolidated", "consolidated/sharded", "one_rank", "within"}) {
    const VerifyReport report = verify_at(data_store(), kData + name);
    EXPECT_EQ(report.verdict(), VerifyVerdict::kWhole) << name << words_of(report.findings);
    EXPECT_EQ(count_of(report.findings, Severity::kWarning), 0U) << words_of(report.findings);
    EXPECT_GT(report.elements, 0U) << name;
    EXPECT_TRUE(report.no_checksums) << name;
  }
  EXPECT_FALSE(verify_at(data_store(), kData + "torch_dist").no_checksums);
}

TEST(VerifySafetensors, damage_to_one_file_is_found) {
  const auto cut = [](std::uint64_t bytes) {
    return [bytes](const Case& one) {
      fs::resize_file(one / kModel, fs::file_size(one / kModel) - bytes);
    };
  };
  const auto file_with = [](const std::string& header, std::size_t data) {
    return [=](const Case& one) { write(one / kModel, safetensors_file(header, data)); };
  };
  const auto begin_plus = [](std::uint64_t more) {
    return [more](const Case& one) { return data_begin_of(one / kModel) + more; };
  };
  const auto at = [](std::uint64_t offset) { return [offset](const Case&) { return offset; }; };
  const auto entry = safetensors_entry;
  const Severity error = Severity::kError;
  const std::vector<Row> rows = {
      {"the last byte is missing", "one", cut(1), error, Code::kTornFile, "but the file at",
       "layers.0.bias", kModel},
      {"only half of the header is there", "one",
       [](const Case& one) { fs::resize_file(one / kModel, 100); }, error, Code::kTornFile,
       "the file ends after 92", "", kModel, at(0)},
      {"only 5 bytes are there", "one", [](const Case& one) { fs::resize_file(one / kModel, 5); },
       error, Code::kTornFile, "too short", "", kModel, at(0)},
      {"a huge header", "one",
       [](const Case& one) { write(one / kModel, std::string(8, '\x7f') + "{}"); }, error,
       Code::kLimit, "readers of safetensors take 100,000,000", "", kModel, at(0)},
      {"bytes follow", "one",
       [](const Case& one) { write(one / kModel, read(one / kModel) + "x"); }, error,
       Code::kCoverageGap, "1 byte after the last tensor", "layers.0.bias", kModel},
      {"a gap", "one",
       file_with("{" + entry("a", "U8", "4", 0, 4) + "," + entry("b", "U8", "4", 6, 10) + "}", 10),
       error, Code::kCoverageGap, "2 bytes before this tensor", "b", kModel, begin_plus(4)},
      {"an overlap", "one",
       file_with("{" + entry("a", "U8", "4", 0, 4) + "," + entry("b", "U8", "4", 3, 7) + "}", 7),
       error, Code::kChunkOverlap, "overlap those of a", "b", kModel, begin_plus(3)},
      {"a key twice", "one",
       file_with("{" + entry("a", "U8", "4", 0, 4) + "," + entry("a", "U8", "4", 4, 8) + "}", 8),
       error, Code::kTornFile, "occurs twice", "a", kModel},
      {"a shape that does not fit", "one", file_with("{" + entry("a", "F32", "4", 0, 15) + "}", 15),
       error, Code::kExtentMismatch, "15 bytes", "a", kModel},
      {"a shape that overflows", "one",
       file_with("{" + entry("a", "F32", "9223372036854775807,9", 0, 4) + "}", 4), error,
       Code::kLimit, "2^62", "a", kModel},
      {"no JSON", "one", file_with("hello", 4), error, Code::kTornFile, "not a JSON object", "",
       kModel, at(8)},
  };
  for (const Row& row : rows) expect_found(row);
}

TEST(VerifySafetensors, the_index_and_the_shards_are_held_against_each_other) {
  const char* const shards = "transformers_shards";
  const Severity error = Severity::kError;
  const Severity warning = Severity::kWarning;
  const std::string norm = "model.norm.weight";
  const std::vector<Row> rows = {
      {"a shard is missing", shards, [](const Case& one) { fs::remove(one / kSecond); }, error,
       Code::kNotFound, "the index says that it has this tensor",
       "model.layers.0.input_layernorm.weight", kSecond},
      {"a shard is cut off", shards, [](const Case& one) { fs::resize_file(one / kSecond, 40); },
       error, Code::kTornFile, "the file ends after", "", kSecond},
      {"the index assigns a key to another shard", shards,
       [&](const Case& one) {
         const std::string line = "\"" + norm + "\": \"";
         const std::string index = read(one / kIndex);
         const auto at = index.find(line) + line.size();
         const std::string now = index.substr(at, index.find('"', at) - at);
         replace(one / kIndex, line + now,
                 line + (now == kSecond ? "model-00001-of-00003.safetensors" : kSecond));
       },
       error, Code::kCoverageGap, "the index assigns it to", norm},
      {"the index lists a key that no shard has", shards,
       [](const Case& one) {
         replace(one / kIndex, "\"weight_map\": {",
                 std::string("\"weight_map\": {\"ghost\": \"") + kSecond + "\",");
       },
       error, Code::kCoverageGap, "the file does not have it", "ghost", kSecond},
      {"the index leaves out a key", shards,
       [&](const Case& one) {
         const std::string index = read(one / kIndex);
         const auto at = index.find(",\n    \"" + norm);
         replace(one / kIndex, index.substr(at, index.find('\n', at + 2) - at), "");
       },
       warning, Code::kNotRequested, "the index does not list this tensor", norm},
      {"the index has another size", shards,
       [](const Case& one) {
         replace(one / kIndex, "\"total_size\": 2384", "\"total_size\": 2385");
       },
       warning, Code::kExtentMismatch, "total_size is 2,385, but the tensors have 2,384", "",
       kIndex},
      {"the index leads elsewhere", shards,
       [](const Case& one) {
         replace(one / kIndex, "\"weight_map\": {",
                 "\"weight_map\": {\"up\": \"../x.safetensors\",");
       },
       error, Code::kPathEscape, "'..'", "up"},
      {"the index is no JSON", shards, [](const Case& one) { write(one / kIndex, "{"); }, error,
       Code::kTornFile, "not a JSON document", "", kIndex},
      {"the index has no map", shards, [](const Case& one) { write(one / kIndex, "{}"); }, error,
       Code::kTornFile, "no weight_map", "", kIndex},
      {"a key twice in the index", shards,
       [](const Case& one) { write(one / kIndex, R"({"weight_map":{"a":"x","a":"y"}})"); }, error,
       Code::kTornFile, "'a' occurs twice", "", kIndex},
      {"a key in two shards", shards,
       [&](const Case& one) {
         write(one / kSecond,
               safetensors_file("{" + safetensors_entry(norm, "BF16", "8", 0, 16) + "}", 16));
       },
       error, Code::kChunkOverlap, "a tensor of this name is in", norm, kSecond},
      {"a shard of an earlier save", shards,
       [](const Case& one) { fs::copy(one / kSecond, one / "model-00004-of-00004.safetensors"); },
       warning, Code::kNotRequested, "stale: shards that belong to none"},
      {"a shard is missing, without an index", shards,
       [](const Case& one) {
         fs::remove(one / kSecond);
         fs::remove(one / kIndex);
       },
       error, Code::kNotFound, "1 of 3 shards are missing, such as number 2"},
      {"a shard is missing, and another has a number that is too large", shards,
       [](const Case& one) {
         fs::rename(one / kSecond, one / "model-00004-of-00003.safetensors");
         fs::remove(one / kIndex);
       },
       error, Code::kNotFound, "1 of 3 shards are missing, such as number 2"},
  };
  for (const Row& row : rows) expect_found(row);
}

TEST(VerifySafetensors, pieces_tile_their_tensors) {
  const char* const second = "shard-00002-model-00001-of-00001.safetensors";
  const Severity error = Severity::kError;
  const std::vector<Row> rows = {
      {"the middle one is missing", "pieces", [=](const Case& one) { fs::remove(one / second); },
       error, Code::kCoverageGap, "none of the", "embedding"},
      {"one is there twice", "pieces",
       [=](const Case& one) {
         fs::copy(one / second, one / "shard-00004-model-00001-of-00001.safetensors");
       },
       error, Code::kChunkOverlap, "", "embedding", "shard-00004-model-00001-of-00001.safetensors"},
      {"a piece lies elsewhere", "pieces",
       [=](const Case& one) {
         replace(one / second, R"(\"embedding\": {\"saved_offsets\": [3, 0]})",
                 R"(\"embedding\": {\"saved_offsets\": [2, 0]})");
       },
       error, Code::kChunkOverlap, "", "embedding"},
      {"a piece has another type", "pieces",
       [=](const Case& one) { replace(one / second, R"("dtype":"F64")", R"("dtype":"I64")"); },
       error, Code::kDtypeDrift, "it is int64, but in", "embedding", second},
      {"a piece without a place", "pieces",
       [=](const Case& one) { replace(one / second, R"(\"ids\")", R"(\"odd\")"); }, error,
       Code::kTornFile, "does not say where this piece belongs", "ids", second},
      {"a piece with a place of other dimensions", "pieces",
       [=](const Case& one) {
         replace(one / second, R"(\"ids\": {\"saved_offsets\": [3]})",
                 R"(\"ids\": {\"saved_offsets\": [  ]})");
       },
       error, Code::kTornFile, "", "ids", second},
  };
  for (const Row& row : rows) expect_found(row);
}

TEST(VerifySafetensors, a_missing_last_piece_is_not_seen_and_that_is_said) {
  Case one("pieces");
  fs::remove(one / "shard-00003-model-00001-of-00001.safetensors");
  const VerifyReport report = verify_at(one.store, "ckpt");
  EXPECT_TRUE(report.whole()) << words_of(report.findings);
  EXPECT_THAT(words_of(report.findings), HasSubstr("missing at the end of a tensor"));
}

TEST(VerifySafetensors, what_torch_wrote_into_payload_files_is_checked) {
  const std::vector<Row> rows = {
      {"the end is cut off", "within",
       [](const Case& one) { fs::resize_file(one / "__0_0.distcp", 900); }, Severity::kError,
       Code::kTornFile, "the file ends at 900", "layers.1.weight", "__0_0.distcp"},
      {"a chunk is not there", "within",
       [](const Case& one) {
         replace(one / "__0_0.distcp", R"(\"ids\": {\"saved_offsets\": [0]})",
                 R"(\"ids\": {\"saved_offsets\": [4]})");
       },
       Severity::kError, Code::kCoverageGap, "this chunk is not among them", "ids", "__0_0.distcp"},
  };
  for (const Row& row : rows) expect_found(row);
}

TEST(VerifySafetensors, tied_weights_are_told) {
  const auto on = [](const char* fixture,
                     const std::function<void(const Case&)>& change = nullptr) {
    Case one(fixture);
    if (change) change(one);
    return words_of(verify_at(one.store, "ckpt").findings);
  };
  EXPECT_THAT(on("transformers_shards"), HasSubstr("config.json says that it is tied"));
  EXPECT_THAT(on("tied"), HasSubstr("it is tied to lm_head.weight"));
  const auto untie = [](const Case& one) {
    replace(one / "config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  };
  EXPECT_THAT(on("transformers_shards", untie),
              HasSubstr("warning NOT_STORED: not stored, and config.json says that"));
  const auto forget = [](const Case& one) { fs::remove(one / "config.json"); };
  EXPECT_THAT(on("transformers_shards", forget),
              HasSubstr("note NOT_STORED: not stored; a model for text"));
}

TEST(VerifySafetensors, an_adapter_is_no_model) {
  Case whole("adapter");
  EXPECT_THAT(words_of(verify_at(whole.store, "ckpt").findings),
              HasSubstr("an adapter, not a model: whole means that the adapter is; LORA, made for "
                        "tiny-llama"));
  Case bare("adapter");
  fs::remove(bare / "adapter_config.json");
  EXPECT_THAT(words_of(verify_at(bare.store, "ckpt").findings),
              HasSubstr("warning NOT_FOUND: without this file PEFT"));
  Case half("adapter");
  replace(half / "adapter_model.safetensors", "layers.0.self_attn.q_proj.lora_B.weight",
          "layers.0.self_attn.q_proj.lora_C.weight");
  const VerifyReport found = verify_at(half.store, "ckpt");
  EXPECT_FALSE(found.whole());
  EXPECT_THAT(words_of(found.findings), HasSubstr("error COVERAGE_GAP: missing, but the other"));
}

TEST(VerifySafetensors, which_files_belong_together_is_told) {
  Case several("one");
  fs::copy(several / kModel, several / "consolidated.safetensors");
  const VerifyReport report = verify_at(several.store, "ckpt");
  EXPECT_EQ(report.files, 1U);
  EXPECT_THAT(words_of(report.findings),
              HasSubstr("were not read; name one to read it: consolidated"));
  fs::rename(several / kModel, several / "other.safetensors");
  EXPECT_FALSE(verify_at(several.store, "ckpt").whole()) << "each key is in two files";

  Case indexes("transformers_shards");
  fs::copy(indexes / kIndex, indexes / "a.safetensors.index.json");
  fs::rename(indexes / kIndex, indexes / "b.safetensors.index.json");
  EXPECT_EQ(contracts::code_of([&] { verify_at(indexes.store, "ckpt"); }), Code::kNotFound);
  EXPECT_TRUE(verify_at(indexes.store, "ckpt/a.safetensors.index.json").whole());
}

TEST(VerifySafetensors, a_torch_dist_checkpoint_with_safetensors_beside_it_stays_one) {
  Case both("torch_dist");
  fs::copy(fs::path(REPRISE_TEST_DATA) / kData / "tied" / kModel, both / kModel);
  const Checkpoint checkpoint = Checkpoint::open_any(both.store, "ckpt");
  EXPECT_EQ(checkpoint.metadata().form, StoredForm::kTorchDist);
  EXPECT_EQ(checkpoint.catalog().tensors.size(), 6U);
  EXPECT_EQ(Checkpoint::open_any(both.store, "ckpt/model.safetensors").catalog().tensors.size(),
            20U);
  fs::remove(both / ".metadata");
  EXPECT_EQ(verify_at(both.store, "ckpt").findings.at(0).code, Code::kIncompleteSelected);
}

TEST(VerifySafetensors, a_file_that_changes_meanwhile_is_noticed) {
  Case one("one");
  Checkpoint checkpoint = Checkpoint::open_any(one.store, "ckpt");
  checkpoint.require_in_place();
  replace(one / kModel, "\"format\":\"pt\"", "\"format\":\"np\"");
  EXPECT_EQ(contracts::code_of([&] { checkpoint.require_in_place(); }), Code::kStaleMetadata);
}

TEST(VerifySafetensors, files_that_were_not_read_are_told) {
  Case one("one");
  write(one / "optimizer.pt", "cut");
  write(one / "config.json", "{}");
  EXPECT_THAT(words_of(verify_at(one.store, "ckpt").findings),
              HasSubstr("which were not read; name one to read it: optimizer.pt ["));
  Case shards("transformers_shards");
  write(shards / "model.safetensors", "cut");
  const auto report = verify_at(shards.store, "ckpt");
  EXPECT_EQ(report.strict_warnings(), 1U) << words_of(report.findings);
  EXPECT_THAT(words_of(report.findings), HasSubstr("read it in place of the shards"));
}

}  // namespace
}  // namespace reprise::test::verify_safetensors_test
