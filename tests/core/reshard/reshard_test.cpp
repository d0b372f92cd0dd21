// Tests reshard on every fixture, with several rules for splitting tensors into chunks. According
// to diff, the result must have the same content as the original. Bytes that are not interpreted
// must not change.

#include "core/reshard/reshard.hpp"
#include "core/ports/whole_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/diff/diff.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/integrity.hpp"
#include "core/format/pickle/pickle_machine.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/zip_layout.hpp"
#include "core/plan/cover.hpp"
#include "core/ports/passing_store.hpp"
#include "core/verify/verify.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CutRule over_ranks(std::int64_t ranks) {
  return [ranks](const std::string&, const Dims& shape) -> std::optional<Cut> {
    return shape.empty() ? std::nullopt : std::optional(Cut{0, ranks});
  };
}

CutRule last_dimension(std::int64_t parts) {
  return [parts](const std::string&, const Dims& shape) -> std::optional<Cut> {
    return shape.empty() ? std::nullopt : std::optional(Cut{shape.size() - 1, parts});
  };
}

class Reshard : public test::StoreTest {
 protected:
  ReshardReport run(const std::string& fixture, const ReshardOptions& options) {
    Checkpoint source = Checkpoint::open(test::data_store(), fixture);
    return reshard(source, {"out"}, options, {store_, device_, tasks_, trace_, progress_});
  }

  DiffReport against(const std::string& fixture) {
    return test::diff_of(test::data_store(), fixture, store_, "out");
  }
};

TEST_F(Reshard, KeepsTheContentOfEveryFixtureUnderEveryCut) {
  const ImageOptions small{.staging_bytes_max = 16384, .batch_bytes = 4096};
  struct Row {
    const char* what;
    ReshardOptions options;
  };
  const std::vector<Row> rows = {
      {"rows over 3", {.rule = over_ranks(3), .writers = 3, .image = small}},
      {"rows over 64 in 2 files", {.rule = over_ranks(64), .writers = 2, .image = small}},
      {"last dimension in 2", {.rule = last_dimension(2), .writers = 2, .image = small}},
      {"as it was, one file", {.rule = {}, .writers = 1, .image = small}},
  };
  for (const auto* fixture :
       {"torch_2.15.0/plain", "torch_2.15.0/fsdp2_tp_strided", "torch_2.15.0/sd_view_strided",
        "torch_2.15.0/fsdp2_uneven", "mcore_0.16.1_gpt_tp2_pp2", "vectors/ck_p2"}) {
    for (const auto& row : rows) {
      const auto report = run(fixture, row.options);
      const auto verdict = against(fixture);
      EXPECT_EQ(verdict.different(), 0U) << fixture << ", " << row.what;
      EXPECT_EQ(verdict.elements, report.elements) << fixture << ", " << row.what;
      const auto whole = verify(store_, "out", PayloadCheck::kRead, progress_);
      EXPECT_TRUE(whole.whole()) << fixture << ", " << row.what << ": " << whole.findings[0];
      EXPECT_EQ(count_of(whole.findings, Severity::kWarning), 0U) << fixture;
    }
  }
}

TEST_F(Reshard, LeavesOutStridesWhichEarlierTorchCantRead) {
  const std::string fixture = "torch_2.15.0/same_content_a";
  const auto strides_in = [](Store& store, const std::string& path) {
    std::size_t count = 0;
    const Checkpoint checkpoint = Checkpoint::open(store, path);
    for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
      count += tensor.traits.strides ? 1U : 0U;
    }
    return count;
  };
  const std::size_t recorded = strides_in(test::data_store(), fixture);
  ASSERT_GT(recorded, 0U);
  run(fixture, {});
  EXPECT_EQ(strides_in(store_, "out"), 0U);
  Checkpoint source = Checkpoint::open(test::data_store(), fixture);
  const ReshardOptions kept{.strides = true};
  reshard(source, {"kept"}, kept, {store_, device_, tasks_, trace_, progress_});
  EXPECT_EQ(strides_in(store_, "kept"), recorded);
}

/// Returns each class of which a .metadata holds an instance, with the form of its state: the
/// number of fields of a tuple, or the names of fields of a dict.
std::set<std::string> forms_in(Store& store, const std::string& path) {
  const Bytes bytes = read_all(store, path + "/.metadata", 1U << 20U);
  const auto reading = pickle::read_graph(bytes, pickle::Grammar::kMetadata, {.file = path});
  const pickle::Graph& graph = reading.graph;
  std::set<std::string> forms;
  for (pickle::NodeId id = 0; id < graph.size(); ++id) {
    if (graph.kind(id) != pickle::Kind::kInstance) continue;
    const pickle::Instance& one = graph.instance(id);
    const pickle::GlobalName& type = graph.global(one.type);
    std::string form = std::string(type.module) + '.' + std::string(type.name) + ": ";
    if (one.state == pickle::kNoNode) {
      form += std::to_string(graph.tuple(one.args).size()) + " arguments";
    } else if (graph.kind(one.state) == pickle::Kind::kTuple) {
      form += std::to_string(graph.tuple(one.state).size()) + " fields";
    } else {
      graph.each_pair(graph.chain(one.state), [&](pickle::NodeId key, pickle::NodeId) {
        form += std::string(graph.text(key)) + ' ';
      });
    }
    forms.insert(form);
  }
  return forms;
}

// Torch before 2.15 reads what it writes itself, so a file of the same forms is one that it can
// read.
TEST_F(Reshard, WritesNothingThatFilesOfEarlierTorchDoNotHave) {
  std::set<std::string> earlier;
  for (const auto* fixture : {"torch_2.4.1/same_content_a", "torch_2.9.1/same_content_b"}) {
    earlier.merge(forms_in(test::data_store(), fixture));
  }
  ASSERT_GT(earlier.size(), 5U);
  for (const auto* fixture :
       {"torch_2.15.0/same_content_a", "torch_2.15.0/fsdp2_model", "torch_2.15.0/plain_odd"}) {
    const auto saved = forms_in(test::data_store(), fixture);
    EXPECT_FALSE(std::ranges::includes(earlier, saved)) << fixture << " has nothing new";
    run(fixture, {.rule = over_ranks(3), .writers = 2});
    const auto written = forms_in(store_, "out");
    ASSERT_GT(written.size(), 5U);
    for (const std::string& form : written) EXPECT_TRUE(earlier.contains(form)) << form;
  }
}

TEST_F(Reshard, CopiesObjectsByteForByte) {
  run("mcore_0.16.1_gpt_tp2_pp2", {.rule = over_ranks(2), .writers = 2});
  Checkpoint before = Checkpoint::open(test::data_store(), "mcore_0.16.1_gpt_tp2_pp2");
  Checkpoint after = Checkpoint::open(store_, "out");
  ASSERT_FALSE(before.catalog().objects.empty());
  for (const auto& object : before.catalog().objects) {
    EXPECT_EQ(before.object_bytes(object), after.object_bytes(*after.catalog().object(object.key)))
        << object.key;
  }
}

TEST_F(Reshard, KeepsThePathsOfTheNestedStateDict) {
  run("torch_2.15.0/plain", {.rule = over_ranks(2), .writers = 2});
  const auto paths_of = [](const Checkpoint& checkpoint) {
    std::map<std::string, std::vector<PathStep>> paths;
    for (const auto& entry : checkpoint.metadata().planner_data) paths[entry.key] = entry.path;
    return paths;
  };
  const auto before = paths_of(Checkpoint::open(test::data_store(), "torch_2.15.0/plain"));
  EXPECT_FALSE(before.empty());
  EXPECT_EQ(before, paths_of(Checkpoint::open(store_, "out")));
}

TEST_F(Reshard, ReplacesWhatIsThereAsAWhole) {
  run("torch_2.15.0/plain", {.rule = over_ranks(5), .writers = 5});
  run("torch_2.15.0/same_content_a", {.rule = over_ranks(2), .writers = 2});
  const auto report = verify(store_, "out", PayloadCheck::kRead, progress_);
  EXPECT_TRUE(report.whole());
  EXPECT_THAT(report.findings, IsEmpty()) << report.findings[0];
  EXPECT_EQ(against("torch_2.15.0/same_content_a").different(), 0U);
}

TEST_F(Reshard, RefusesToWriteDamageAnew) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  Checkpoint source = Checkpoint::open(copy.store, "ckpt");
  const StoredTensor& tensor = *source.catalog().tensor("embedding");
  const StoredChunk& chunk = tensor.chunks.at(0);
  const auto at = chunk.range.offset + source.tensor_item(tensor, chunk).data_offset;
  const auto file = copy.path("ckpt") / source.catalog().files[chunk.file];
  {
    PosixStore raw(file.parent_path().string());
    Bytes bytes = read_all(raw, file.filename().string(), 1U << 30U);
    bytes[at] ^= std::byte{1};
    const auto out = raw.create(file.filename().string());
    out->write_at(0, bytes);
    out->close();
  }
  const auto error = contracts::error_of([&] {
    reshard(source, {"out"}, {}, {store_, device_, tasks_, trace_, progress_});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kChecksum);
  EXPECT_FALSE(store_.stat("out"));
}

/// Flips one bit of the byte at offset `at`, but only in the result of a single read. Of all reads
/// that include the byte, this is read number `read`.
class FlippingStore final : public PassingStore {
 public:
  FlippingStore(Store& inner, std::string name, std::uint64_t at, int read)
      : PassingStore(inner), name_(std::move(name)), at_(at), read_(read) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    auto file = inner().open(path);
    if (!path.ends_with(name_)) return file;
    return std::make_unique<File>(std::move(file), *this);
  }
  bool flipped() const { return reads_ >= read_; }

 private:
  class File final : public ReadFile {
   public:
    File(std::unique_ptr<ReadFile> inner, FlippingStore& store)
        : inner_(std::move(inner)), store_(store) {}
    std::uint64_t size() const override { return inner_->size(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      inner_->read_at(offset, out);
      const bool has = store_.at_ >= offset && store_.at_ - offset < out.size();
      if (has && ++store_.reads_ == store_.read_) out[store_.at_ - offset] ^= std::byte{1};
    }

   private:
    std::unique_ptr<ReadFile> inner_;
    FlippingStore& store_;
  };

  std::string name_;
  std::uint64_t at_;
  int read_;
  int reads_ = 0;
};

TEST_F(Reshard, WritesNoBitThatFlippedInAnyOfItsReads) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  struct Place {
    std::string file;
    std::uint64_t at;
  };
  std::vector<Place> places;
  {
    Checkpoint source = Checkpoint::open(copy.store, "ckpt");
    for (const auto& tensor : source.catalog().tensors) {
      const StoredChunk& chunk = tensor.chunks.front();
      const TensorItem item = source.tensor_item(tensor, chunk);
      places.push_back({source.catalog().files[chunk.file],
                        chunk.range.offset + item.data_offset + item.data_bytes - 1});
    }
    for (const auto& object : source.catalog().objects) {
      const auto slice = source.slice(object.key, object.file, object.range);
      Archive archive(*slice);
      const auto pickle = archive.content_range(archive.at("data.pkl"));
      places.push_back(
          {source.catalog().files[object.file], object.range.offset + pickle.offset + 3});
    }
  }
  const CutRule rules[] = {over_ranks(2), last_dimension(3)};
  for (std::size_t row = 0; row < 2 * places.size(); ++row) {
    const Place& place = places[row / 2];
    const CutRule& rule = rules[row % 2];
    int refused = 0;
    constexpr int kReadsMax = 12;
    // True if `read` is larger than the number of times that reshard reads the byte. In this case
    // no bit is flipped.
    bool beyond = false;
    for (int read = 1; read <= kReadsMax && !beyond; ++read) {
      FlippingStore store(copy.store, place.file, place.at, read);
      Checkpoint source = Checkpoint::open(store, "ckpt");
      try {
        reshard(source, {"out"}, {.rule = rule, .writers = 2},
                {store_, device_, tasks_, trace_, progress_});
      } catch (const Error&) {
        ++refused;
        EXPECT_FALSE(store_.stat("out.saving"));
        continue;
      }
      EXPECT_EQ(against("torch_2.15.0/same_content_a").different(), 0U)
          << place.file << " " << place.at << ", read " << read;
      store_.remove("out");
      beyond = !store.flipped();
    }
    EXPECT_TRUE(beyond) << place.file << " " << place.at;
    EXPECT_GT(refused, 0) << place.file << " " << place.at;
  }
}

/// Drops the last bytes of each write to files with a given name.
class ShortStore final : public PassingStore {
 public:
  ShortStore(Store& inner, std::string name) : PassingStore(inner), name_(std::move(name)) {}

  std::unique_ptr<WriteFile> create(const std::string& path) override {
    auto file = inner().create(path);
    if (!path.ends_with(name_)) return file;
    return std::make_unique<File>(std::move(file));
  }

 private:
  class File final : public WriteFile {
   public:
    explicit File(std::unique_ptr<WriteFile> inner) : inner_(std::move(inner)) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      inner_->write_at(offset, bytes.first(bytes.size() - bytes.size() / 3));
    }
    void sync() override { inner_->sync(); }
    void close() override { inner_->close(); }

   private:
    std::unique_ptr<WriteFile> inner_;
  };

  std::string name_;
};

TEST_F(Reshard, RefusesWhatTheStoreDidNotKeep) {
  const std::string fixture = "mcore_0.16.1_gpt_tp2_pp2";
  for (const std::string name : {"__0_0.distcp", "__0_1.distcp", "common.pt", "metadata.json"}) {
    ShortStore store(store_, name);
    Checkpoint source = Checkpoint::open(test::data_store(), fixture);
    const auto code = contracts::code_of([&] {
      reshard(source, {"out"}, {.rule = over_ranks(2), .writers = 2},
              {store, device_, tasks_, trace_, progress_});
    });
    EXPECT_EQ(code, Code::kIo) << name;
    EXPECT_FALSE(store_.stat("out")) << name;
  }
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  write_durably(copy.store, "ckpt/notes.pt", as_bytes("beside the payload"));
  ShortStore store(store_, "notes.pt");
  Checkpoint source = Checkpoint::open(copy.store, "ckpt");
  EXPECT_EQ(contracts::code_of([&] {
              reshard(source, {"out"}, {.rule = over_ranks(2), .writers = 2},
                      {store, device_, tasks_, trace_, progress_});
            }),
            Code::kIo);
}

/// Sets the checksums in each archive's directory to 0, as torch does when checksums are switched
/// off.
void clear_checksums(const std::filesystem::path& file) {
  PosixStore raw(file.parent_path().string());
  Bytes bytes = read_all(raw, file.filename().string(), 1U << 30U);
  for (std::size_t at = 0; at + zip::kCentralBytes <= bytes.size(); ++at) {
    const auto signature = load_le<std::uint32_t>(ByteSpan(bytes).subspan(at));
    if (signature == zip::kCentralSignature) std::fill_n(bytes.begin() + at + 16, 4, std::byte{});
  }
  write_durably(raw, file.filename().string(), bytes);
}

TEST_F(Reshard, PutsChecksumsInWhereTheWriterLeftThemOut) {
  for (const bool all : {true, false}) {
    test::FixtureCopy copy("torch_2.15.0/same_content_a");
    const Checkpoint before = Checkpoint::open(copy.store, "ckpt");
    const auto files = before.catalog().files;
    ASSERT_GT(files.size(), 1U);
    ASSERT_FALSE(before.catalog().objects.empty());
    const std::string& of_object = files[before.catalog().objects[0].file];
    for (const auto& file : files) {
      if (all || file == of_object) clear_checksums(copy.path("ckpt") / file);
    }
    const auto as_is = verify(copy.store, "ckpt", PayloadCheck::kRead, progress_);
    EXPECT_TRUE(as_is.whole());
    ASSERT_EQ(as_is.findings.size(), 1U);
    EXPECT_EQ(as_is.findings[0].message.find(of_object) != std::string::npos, !all)
        << as_is.findings[0];
    Checkpoint source = Checkpoint::open(copy.store, "ckpt");
    const auto report = reshard(source, {"out"}, {.rule = over_ranks(2), .writers = 2},
                                {store_, device_, tasks_, trace_, progress_});
    EXPECT_EQ(report.notes.size(), 1U) << "a note must say that checksums were off";
    const auto written = verify(store_, "out", PayloadCheck::kRead, progress_);
    EXPECT_THAT(written.findings, IsEmpty()) << written.findings[0];
    EXPECT_EQ(against("torch_2.15.0/same_content_a").different(), 0U);
    store_.remove("out");
  }
}

TEST_F(Reshard, LooksOnceMoreRightBeforeTheCommit) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  Checkpoint source = Checkpoint::open(copy.store, "ckpt");
  std::vector<Entry> seen;
  ReshardOptions options{.rule = over_ranks(2), .writers = 2};
  options.last_look = [&] {
    seen = store_.list("");
    throw Error(Code::kUsage, "somebody put a file there");
  };
  const auto write = [&] {
    reshard(source, {"out"}, options, {store_, device_, tasks_, trace_, progress_});
  };
  EXPECT_EQ(contracts::code_of(write), Code::kUsage);
  ASSERT_EQ(seen.size(), 2U) << "the directory being written, and its lock";
  EXPECT_TRUE(store_.list("").empty());
}

TEST_F(Reshard, WhatIsJudgedDamagedGetsNoName) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  Checkpoint source = Checkpoint::open(copy.store, "ckpt");
  ReshardOptions options{.rule = over_ranks(2), .writers = 2};
  std::string judged;
  bool damaged = true;
  options.judge = [&](const std::string& directory) {
    judged = directory;
    EXPECT_FALSE(store_.stat("out"));
    EXPECT_TRUE(verify(store_, directory, PayloadCheck::kRead, progress_).whole());
    if (damaged) throw Error(Code::kExtentMismatch, "its bytes overlap");
  };
  const auto write = [&] {
    reshard(source, {"out"}, options, {store_, device_, tasks_, trace_, progress_});
  };
  EXPECT_EQ(contracts::code_of(write), Code::kExtentMismatch);
  EXPECT_TRUE(store_.list("").empty());
  damaged = false;
  write();
  EXPECT_TRUE(store_.stat("out"));
  EXPECT_NE(judged, "out");
}

TEST_F(Reshard, CarriesAlongWhatStandsBesideThePayload) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  copy.store.make_directory("ckpt/modelopt_state/empty");
  const Bytes content = to_bytes(std::string(3000000, 'x'));
  write_durably(copy.store, "ckpt/meta.pt", content);
  write_durably(copy.store, "ckpt/modelopt_state/.metadata", as_bytes("its own"));
  write_durably(copy.store, "ckpt/modelopt_state/__0_0.distcp", as_bytes("as well"));
  write_durably(copy.store, "ckpt/__7_0.distcp", as_bytes("stale"));
  write_durably(copy.store, "elsewhere", as_bytes("secret"));
  std::filesystem::create_symlink("../elsewhere", copy.path("ckpt") / "link");
  Checkpoint source = Checkpoint::open(copy.store, "ckpt");
  const auto report = reshard(source, {"out"}, {.rule = over_ranks(2), .writers = 2},
                              {store_, device_, tasks_, trace_, progress_});
  EXPECT_THAT(report.carried, ElementsAre("meta.pt", "modelopt_state/"));
  EXPECT_THAT(report.left_out, ElementsAre("__7_0.distcp (of an earlier save)", "link (a link)"));
  EXPECT_EQ(read_all(store_, "out/meta.pt", 1U << 30U), content);
  EXPECT_EQ(read_all(store_, "out/modelopt_state/.metadata", 100), to_bytes("its own"));
  EXPECT_EQ(read_all(store_, "out/modelopt_state/__0_0.distcp", 100), to_bytes("as well"));
  EXPECT_TRUE(store_.stat("out/modelopt_state/empty"));
  EXPECT_FALSE(store_.stat("out/link"));
  EXPECT_FALSE(store_.stat("out/__7_0.distcp"));
}

TEST_F(Reshard, ListsInItsManifestAllFilesButThoseInFolders) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  copy.store.make_directory("ckpt/modelopt_state");
  write_durably(copy.store, "ckpt/meta.pt", as_bytes("m"));
  write_durably(copy.store, "ckpt/modelopt_state/own", as_bytes("o"));
  const Bytes metadata = read_all(copy.store, "ckpt/.metadata", 1U << 30U);
  write_durably(copy.store, "ckpt/integrity.json",
                write_integrity({{{".metadata", sha256_of(metadata)}}}));
  Checkpoint source = Checkpoint::open(copy.store, "ckpt");
  reshard(source, {"out"}, {.rule = over_ranks(2), .writers = 2},
          {store_, device_, tasks_, trace_, progress_});
  std::vector<std::string> names;
  for (const auto& file : read_integrity(read_all(store_, "out/integrity.json", 1U << 20U)).files) {
    names.push_back(file.name);
    EXPECT_EQ(file.digest, sha256_of(read_all(store_, "out/" + file.name, 1U << 30U))) << file.name;
  }
  EXPECT_THAT(names, ElementsAre(".metadata", "__0_0.distcp", "__0_1.distcp", "__1_0.distcp",
                                 "__1_1.distcp", "meta.pt"));
}

TEST_F(Reshard, TakesAFileOfOneTensorThatWasSavedWithoutChecksums) {
  Bytes file = read_all(test::data_store(), "torch_save_2.15.0/tensor.pt", 1U << 20U);
  const Bytes entry = to_bytes("PK\x01\x02");
  for (auto at = file.begin();; ++at) {
    at = std::search(at, file.end(), entry.begin(), entry.end());
    if (at == file.end()) break;
    std::fill_n(at + 16, 4, std::byte{0});
  }
  write_durably(store_, "one.pt", file);
  Checkpoint source = Checkpoint::open_any(store_, "one.pt");
  const auto report = reshard(source, {"out"}, {}, {store_, device_, tasks_, trace_, progress_});
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_THAT(report.notes[0].message, ::testing::HasSubstr("checksums switched off"));
}

TEST_F(Reshard, CarriesAlongAUsersOwnCommonFile) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  const Bytes pickle = to_bytes("\x80\x02}.");
  for (const Bytes& content : {to_bytes("notes"), Bytes(), write_bytes_item(List{1}), pickle}) {
    write_durably(copy.store, "ckpt/common.pt", content);
    Checkpoint source = Checkpoint::open(copy.store, "ckpt");
    const auto report = reshard(source, {"out"}, {}, {store_, device_, tasks_, trace_, progress_});
    EXPECT_THAT(report.carried, ElementsAre("common.pt"));
    EXPECT_EQ(read_all(store_, "out/common.pt", 1U << 20U), content);
  }
}

TEST_F(Reshard, LeavesOutWhatIsNoFile) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  ASSERT_EQ(::mkfifo((copy.path("ckpt") / "pipe").c_str(), 0600), 0);
  write_durably(copy.store, "ckpt/empty", {});
  Checkpoint source = Checkpoint::open(copy.store, "ckpt");
  const auto report = reshard(source, {"out"}, {}, {store_, device_, tasks_, trace_, progress_});
  EXPECT_THAT(report.carried, ElementsAre("empty"));
  EXPECT_THAT(report.left_out, ElementsAre(::testing::StartsWith("pipe (open: this is")));
  EXPECT_FALSE(store_.stat("out/pipe"));
}

/// Users trust OUT as much as IN. So if OUT's manifest is truncated, a reshard of OUT must refuse
/// it. It must neither copy the manifest nor treat it as a file that the user added.
TEST_F(Reshard, RefusesAManifestThatCantBeRead) {
  run("torch_2.15.0/plain", {.rule = over_ranks(2), .writers = 2});
  Bytes cut = write_integrity({{{"__0_0.distcp", {}}}});
  cut.resize(cut.size() - 10);
  for (const Bytes& manifest : {cut, Bytes(), to_bytes("{\"files\": {}}")}) {
    write_durably(store_, "out/integrity.json", manifest);
    EXPECT_FALSE(verify(store_, "out", PayloadCheck::kRead, progress_).whole());
    Checkpoint source = Checkpoint::open(store_, "out");
    const auto refused = [](auto work) {
      const auto error = contracts::error_of(work);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), Code::kTornFile);
      EXPECT_THAT(error->what(), ::testing::HasSubstr("out/integrity.json"));
    };
    refused([&] { reshard(source, {"new"}, {}, {store_, device_, tasks_, trace_, progress_}); });
    refused([&] { diff(source, source, device_, {}, progress_); });
    EXPECT_FALSE(store_.stat("new"));
  }
}

/// Throws an exception at one of the steps that a command reports, which ends the command.
class EndsAt final : public Progress {
 public:
  explicit EndsAt(int step) : left_(step) {}
  void advance(std::string_view what, std::uint64_t /*done*/, std::uint64_t /*total*/) override {
    names_.emplace_back(what);
    if (left_-- == 0) throw std::runtime_error("enough");
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  int left_;
  std::vector<std::string> names_;
};

TEST_F(Reshard, LeavesNothingWhereverProgressEndsIt) {
  const std::string fixture = "torch_2.15.0/same_content_a";
  for (int step = 0;; ++step) {
    EndsAt ends(step);
    Checkpoint source = Checkpoint::open(test::data_store(), fixture);
    try {
      reshard(source, {"out"}, {.rule = over_ranks(2)}, {store_, device_, tasks_, trace_, ends});
    } catch (const std::runtime_error& enough) {
      ASSERT_STREQ(enough.what(), "enough");
      ASSERT_THAT(store_.list(""), IsEmpty()) << "ended at step " << step;
      continue;
    }
    EXPECT_EQ(against(fixture).different(), 0U);
    const auto told = [&](const std::string& path) {
      return std::ranges::count_if(ends.names(),
                                   [&](const std::string& name) { return name.ends_with(path); });
    };
    // This file is reported when it is written and when it is read.
    EXPECT_GE(told("__0_1.distcp"), 2);
    EXPECT_EQ(told("__0_0.distcp"), 1);
    break;
  }
}

/// Fails to write some files of a checkpoint. The file 1 is not begun before a file has failed.
class FailingFiles final : public PassingStore {
 public:
  FailingFiles(Store& inner, std::set<std::string> failing)
      : PassingStore(inner), failing_(std::move(failing)) {}

  std::unique_ptr<WriteFile> create(const std::string& path) override {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name == kOther) {
      begun_ = true;
      begun_.notify_all();
    }
    if (failing_.contains(name)) return std::make_unique<File>(*this, name);
    if (name == kOther) failed_.wait(false);
    return inner().create(path);
  }
  bool failed() const { return failed_; }

  static constexpr std::string_view kOther = "__1_0.distcp";

 private:
  class File final : public WriteFile {
   public:
    File(FailingFiles& store, std::string name) : store_(store), name_(std::move(name)) {
      if (store_.failing_.size() > 1 && name_ != kOther) store_.failed_.wait(false);
    }
    void write_at(std::uint64_t /*offset*/, ByteSpan /*bytes*/) override {
      store_.begun_.wait(false);
      store_.failed_ = true;
      store_.failed_.notify_all();
      throw Error(Code::kIo, "the disk is gone", {.file = name_});
    }
    void sync() override {}
    void close() override {}

   private:
    FailingFiles& store_;
    std::string name_;
  };

  std::set<std::string> failing_;
  std::atomic<bool> begun_ = false;  // the file 1
  std::atomic<bool> failed_ = false;
};

/// Counts the steps after a failure, and takes time for each of them.
class SlowAfter final : public Progress {
 public:
  explicit SlowAfter(const FailingFiles& store) : store_(store) {}
  void advance(std::string_view /*what*/, std::uint64_t /*done*/,
               std::uint64_t /*total*/) override {
    if (!store_.failed()) return;
    ++steps;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  int steps = 0;

 private:
  const FailingFiles& store_;
};

TEST_F(Reshard, StopsSoonAfterAnErrorAndTellsTheFirstInOrder) {
  const std::string fixture = "torch_2.15.0/same_content_a";
  // Writer 0 has one tensor, and writer 1 each element of the others by itself.
  const BoxRuleFor boxes_for = [](const Catalog& catalog) -> BoxRule {
    return [&catalog](std::uint32_t t) {
      const Dims shape = logical_shape(catalog.tensors[t]);
      if (t == 0) return std::vector<OwnedBox>{{Box::whole(shape), 0}};
      std::vector<OwnedBox> boxes;
      for (std::int64_t i = 0; i < volume(shape); ++i) {
        boxes.push_back({{index_at(i, shape), Dims::filled(shape.size(), 1)}, 1});
      }
      return boxes;
    };
  };
  struct Told {
    std::string file;
    int steps;
  };
  const auto told = [&](const std::set<std::string>& failing) -> Told {
    FailingFiles store(store_, failing);
    SlowAfter progress(store);
    ThreadTasks tasks(2);
    Checkpoint source = Checkpoint::open(test::data_store(), fixture);
    const auto error = contracts::error_of([&] {
      reshard(source, {"out"}, {.writers = 2, .boxes_for = boxes_for},
              {store, device_, tasks, trace_, progress});
    });
    EXPECT_THAT(store_.list(""), IsEmpty());
    return {error ? error->place().file : "", progress.steps};
  };
  const Told one = told({"__0_0.distcp"});
  EXPECT_EQ(one.file, "__0_0.distcp");
  EXPECT_LT(one.steps, 20);
  EXPECT_EQ(told({"__0_0.distcp", "__1_0.distcp"}).file, "__0_0.distcp");
}

class Replaces final : public Progress {
 public:
  explicit Replaces(Store& store) : store_(store) {}
  void advance(std::string_view, std::uint64_t, std::uint64_t) override {
    write_durably(store_, "in/.metadata", as_bytes("of another save"));
  }

 private:
  Store& store_;
};

/// Flips a bit of the first element of a tensor.
void flip_in(Store& store, Checkpoint checkpoint, const std::string& key) {
  const StoredTensor& tensor = *checkpoint.catalog().tensor(key);
  const StoredChunk& chunk = tensor.chunks.at(0);
  const auto at = chunk.range.offset + checkpoint.tensor_item(tensor, chunk).data_offset;
  const std::string path = checkpoint.path_of(chunk.file);
  Bytes bytes = read_all(store, path, 1U << 30U);
  bytes[at] ^= std::byte{1};
  write_durably(store, path, bytes);
}

TEST_F(Reshard, SaysReplacedAndNotDamagedOfASourceThatIsBoth) {
  Checkpoint fixture = Checkpoint::open(test::data_store(), "torch_2.15.0/same_content_a");
  reshard(fixture, {"in"}, {}, {store_, device_, tasks_, trace_, progress_});
  flip_in(store_, Checkpoint::open(store_, "in"), fixture.catalog().tensors[0].key);
  const auto code_with = [&](Progress& progress) {
    Checkpoint source = Checkpoint::open(store_, "in");
    return contracts::code_of([&] {
      reshard(source, {"out"}, {}, {store_, device_, tasks_, trace_, progress});
    });
  };
  EXPECT_EQ(code_with(progress_), Code::kChecksum);
  Replaces replaces(store_);
  EXPECT_EQ(code_with(replaces), Code::kStaleMetadata);
}

TEST_F(Reshard, RefusesWhatWasReplacedWhileItWasRead) {
  Checkpoint fixture = Checkpoint::open(test::data_store(), "torch_2.15.0/same_content_a");
  reshard(fixture, {"in"}, {}, {store_, device_, tasks_, trace_, progress_});
  Checkpoint source = Checkpoint::open(store_, "in");
  Replaces replaces(store_);
  const auto code = contracts::code_of([&] {
    reshard(source, {"out"}, {}, {store_, device_, tasks_, trace_, replaces});
  });
  EXPECT_EQ(code, Code::kStaleMetadata);
  EXPECT_FALSE(store_.stat("out"));
}

TEST_F(Reshard, SaysBeforeItWritesThatThereIsTooLittleSpace) {
  class FullStore final : public PassingStore {
   public:
    using PassingStore::PassingStore;
    std::optional<std::uint64_t> free_bytes(const std::string&) override { return 1000; }
  };
  FullStore store(store_);
  Checkpoint source = Checkpoint::open(test::data_store(), "torch_2.15.0/plain");
  const auto code = contracts::code_of([&] {
    reshard(source, {"out"}, {}, {store, device_, tasks_, trace_, progress_});
  });
  EXPECT_EQ(code, Code::kNoSpace);
  EXPECT_TRUE(store_.list("").empty());
}

TEST_F(Reshard, AsksForAtLeastTheSpaceThatItTakes) {
  class NarrowStore final : public PassingStore {
   public:
    NarrowStore(Store& inner, std::uint64_t free) : PassingStore(inner), free_(free) {}
    std::optional<std::uint64_t> free_bytes(const std::string&) override { return free_; }

   private:
    std::uint64_t free_;
  };
  const ReshardOptions cut{.rule = over_ranks(4), .writers = 4};
  run("torch_2.15.0/plain", cut);
  std::uint64_t taken = 0;
  for (const Entry& entry : store_.list("out")) taken += entry.size;
  ASSERT_GT(taken, 0U);
  NarrowStore store(store_, taken - 1);
  Checkpoint source = Checkpoint::open(test::data_store(), "torch_2.15.0/plain");
  const auto code = contracts::code_of([&] {
    reshard(source, {"again"}, cut, {store, device_, tasks_, trace_, progress_});
  });
  EXPECT_EQ(code, Code::kNoSpace);
  EXPECT_FALSE(store_.stat("again"));
}

TEST(PlanReshard, TilesEachTensorAndSpreadsWholeOnes) {
  Catalog catalog{.files = {"f"}};
  for (const char* key : {"a", "b", "c"}) {
    StoredTensor tensor{.key = key, .shape = {7, 3}};
    tensor.chunks.push_back({Box::whole(tensor.shape), 0, {}});
    catalog.tensors.push_back(tensor);
  }
  for (std::int64_t ranks = 1; ranks <= 9; ++ranks) {
    std::vector<std::vector<Box>> boxes(catalog.tensors.size());
    for (const auto& share : plan_reshard(catalog, over_ranks(ranks), 2)) {
      for (const auto& part : share.parts) boxes[part.tensor].push_back(part.box);
    }
    for (const auto& of_tensor : boxes) EXPECT_FALSE(prove_cover({7, 3}, of_tensor)) << ranks;
  }
  const auto whole = plan_reshard(catalog, {}, 3);
  for (const auto& share : whole) EXPECT_EQ(share.parts.size(), 1U);
}

TEST(PlanReshard, KeepsStoredBoxesInTheirOrderWhateverTheOrderOfTheChunks) {
  Catalog catalog{.files = {"f"}};
  StoredTensor tensor{.key = "w", .shape = {3, 2}};
  for (const std::int64_t row : {2, 0, 1}) tensor.chunks.push_back({{{row, 0}, {1, 2}}, 0, {}});
  catalog.tensors.push_back(tensor);
  const auto shares = plan_reshard(catalog, {}, 2);
  ASSERT_EQ(shares[0].parts.size(), 2U);
  ASSERT_EQ(shares[1].parts.size(), 1U);
  EXPECT_EQ(shares[0].parts[0].box, (Box{{0, 0}, {1, 2}}));
  EXPECT_EQ(shares[1].parts[0].box, (Box{{1, 0}, {1, 2}}));
  EXPECT_EQ(shares[0].parts[1].box, (Box{{2, 0}, {1, 2}}));
}

TEST(PlanReshard, RefusesWhatHasNoMeaning) {
  Catalog catalog{.files = {"f"}};
  catalog.tensors.push_back({.key = "w", .shape = {4}, .chunks = {{{{0}, {4}}, 0, {}}}});
  EXPECT_EQ(contracts::code_of([&] { plan_reshard(catalog, {}, 0); }), Code::kUsage);
  const CutRule second = [](const std::string&, const Dims&) { return Cut{1, 2}; };
  EXPECT_EQ(contracts::code_of([&] { plan_reshard(catalog, second, 1); }), Code::kUsage);
}

}  // namespace
}  // namespace reprise
