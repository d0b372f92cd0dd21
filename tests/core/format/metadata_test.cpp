#include "core/format/metadata.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/format/metadata_tables.hpp"
#include "core/format/rank_tables.hpp"
#include "core/geometry/folded_shape.hpp"
#include "tests/core/format/items.hpp"
#include "tests/core/format/pickles.hpp"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Metadata read(const Bytes& bytes) {
  const std::vector<ByteSpan> files{bytes};
  const std::vector<std::string> names{".metadata"};
  return read_metadata(files, names);
}

/// Reads the directory's files whose names end in ".metadata", in the order of these names.
Metadata read_directory(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".metadata")) names.push_back(name);
  }
  std::ranges::sort(names);
  std::vector<Bytes> contents;
  for (const auto& name : names) {
    contents.push_back(test_file(fs::relative(directory / name, REPRISE_TEST_DATA).string()));
  }
  const std::vector<ByteSpan> spans(contents.begin(), contents.end());
  return read_metadata(spans, names);
}

/// Returns the directories of real checkpoints. Each comes with the description that torch wrote.
std::vector<std::pair<fs::path, Json>> fixtures() {
  std::vector<std::pair<fs::path, Json>> found;
  for (const auto& entry : fs::recursive_directory_iterator(REPRISE_TEST_DATA)) {
    const std::string path = entry.path().string();
    const std::string suffix = ".expected.json";
    if (!path.ends_with(suffix)) continue;
    fs::path directory = path.substr(0, path.size() - suffix.size());
    if (fs::exists(directory / "iter_0000010")) directory /= "iter_0000010";
    const Json expected = Json::parse(std::ifstream(path));
    if (expected.contains("tensors")) found.emplace_back(directory, expected);
  }
  std::ranges::sort(found, {}, [](const auto& f) { return f.first; });
  return found;
}

void expect_same_catalog(const Catalog& a, const Catalog& b) {
  EXPECT_EQ(a.files.size(), b.files.size());
  const auto file = [](const Catalog& c, FileIndex i) {
    return i == kNoFile ? std::string("none") : c.files.at(i);
  };
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].key, b.tensors[i].key);
    EXPECT_EQ(a.tensors[i].dtype, b.tensors[i].dtype);
    EXPECT_EQ(a.tensors[i].shape, b.tensors[i].shape);
    EXPECT_EQ(a.tensors[i].original_shape, b.tensors[i].original_shape);
    ASSERT_EQ(a.tensors[i].chunks.size(), b.tensors[i].chunks.size());
    for (std::size_t c = 0; c < a.tensors[i].chunks.size(); ++c) {
      const StoredChunk& left = a.tensors[i].chunks[c];
      const StoredChunk& right = b.tensors[i].chunks[c];
      EXPECT_EQ(left.box, right.box) << a.tensors[i].key;
      EXPECT_EQ(left.range, right.range) << a.tensors[i].key;
      EXPECT_EQ(file(a, left.file), file(b, right.file)) << a.tensors[i].key;
    }
  }
  ASSERT_EQ(a.objects.size(), b.objects.size());
  for (std::size_t i = 0; i < a.objects.size(); ++i) {
    EXPECT_EQ(a.objects[i].key, b.objects[i].key);
    EXPECT_EQ(a.objects[i].range, b.objects[i].range);
    EXPECT_EQ(file(a, a.objects[i].file), file(b, b.objects[i].file));
  }
}

TEST(Metadata, says_of_each_real_checkpoint_what_torch_says) {
  const auto all = fixtures();
  ASSERT_GE(all.size(), 16U);
  for (const auto& [directory, expected] : all) {
    SCOPED_TRACE(directory.string());
    const Metadata metadata = read_directory(directory);
    const Json& tensors = expected.at("tensors");
    std::set<std::string> names;  // counts a tensor once even if each rank stored it separately
    for (const StoredTensor& tensor : metadata.catalog.tensors) names.emplace(name_of(tensor));
    EXPECT_EQ(names.size(), tensors.size());
    for (const auto& [key, wanted] : tensors.items()) {
      const StoredTensor* tensor = metadata.catalog.tensor(key);
      if (tensor == nullptr) tensor = metadata.catalog.tensor(key + own_suffix(0));
      ASSERT_NE(tensor, nullptr) << key;
      EXPECT_EQ(name_of(tensor->dtype), wanted.at("dtype").get<std::string>()) << key;
      const auto shape = wanted.at("shape").get<std::vector<std::int64_t>>();
      EXPECT_EQ(tensor->shape, Dims(shape)) << key;
      EXPECT_EQ(tensor->chunks.size(), wanted.at("chunks").get<std::size_t>()) << key;
      for (const StoredChunk& chunk : tensor->chunks) {
        ASSERT_NE(chunk.file, kNoFile) << key;
        const auto bytes = fs::file_size(directory / metadata.catalog.files.at(chunk.file));
        EXPECT_TRUE(chunk.range.fits(bytes)) << key;
      }
    }
    std::set<std::string> objects;
    for (const auto& [label, wanted] : expected.at("objects").items()) {
      if (label.starts_with("common.pt ")) continue;   // the file common.pt has that object
      constexpr std::string_view kOfRank = " (rank ";  // label of an object in one rank's metadata
      const auto of_rank = label.find(kOfRank);
      std::string key = label.substr(0, of_rank);
      if (of_rank != std::string::npos) {
        key += own_suffix(std::stoi(label.substr(of_rank + kOfRank.size())));
      }
      objects.insert(key);
      const StoredObject* object = metadata.catalog.object(key);
      ASSERT_NE(object, nullptr) << key;
      EXPECT_NE(object->file, kNoFile) << key;
    }
    EXPECT_EQ(metadata.catalog.objects.size(), objects.size());
    const int minor = std::stoi(expected.at("torch").get<std::string>().substr(2));
    EXPECT_EQ(metadata.version, minor >= 9 ? "1.0.0" : "");
  }
}

TEST(Metadata, written_and_read_again_says_the_same_and_is_written_the_same) {
  for (const auto& [directory, expected] : fixtures()) {
    SCOPED_TRACE(directory.string());
    const Metadata first = read_directory(directory);
    const Bytes written = write_metadata(first);
    const Metadata second = read(written);
    expect_same_catalog(first.catalog, second.catalog);
    EXPECT_EQ(first.save_id, second.save_id);
    EXPECT_EQ(first.checkpoint_id, second.checkpoint_id);
    EXPECT_FALSE(second.has_local_plans);
    EXPECT_EQ(second.planner_data.size(),
              first.catalog.tensors.size() + first.catalog.objects.size());
    for (const PlannerEntry& entry : first.planner_data) {
      const auto same = std::ranges::find(second.planner_data, entry.key, &PlannerEntry::key);
      ASSERT_NE(same, second.planner_data.end()) << entry.key;
      EXPECT_EQ(same->path, entry.path) << entry.key;
    }
    EXPECT_EQ(write_metadata(second), written);
  }
}

TEST(Metadata, reads_the_classes_of_torch_2_4_to_2_13) {
  for (const std::string name : {"md241.bin", "md280.bin", "md291.bin", "md2130.bin"}) {
    SCOPED_TRACE(name);
    const Metadata metadata = read(test_file("vectors/" + name));
    EXPECT_NE(metadata.catalog.tensor("model.w"), nullptr);
    EXPECT_NE(metadata.catalog.object("extra"), nullptr);
    EXPECT_EQ(metadata.version, name == "md291.bin" || name == "md2130.bin" ? "1.0.0" : "");
  }
}

TEST(Metadata, reads_protocols_2_and_4_and_the_least_that_torch_needs) {
  for (const std::string name : {"ck_p4", "ck_p2", "ck_min"}) {
    SCOPED_TRACE(name);
    const Metadata metadata = read(test_file("vectors/" + name + "/.metadata"));
    const StoredTensor* w = metadata.catalog.tensor("model.w");
    ASSERT_NE(w, nullptr);
    EXPECT_EQ(w->dtype, DType::kFloat32);
    EXPECT_EQ(w->shape, (Dims{4, 6}));
    EXPECT_EQ(w->chunks.size(), 2U);
    ASSERT_NE(metadata.catalog.tensor("step"), nullptr);
    EXPECT_EQ(metadata.catalog.tensor("step")->shape, Dims{});
    EXPECT_NE(metadata.catalog.object("extra"), nullptr);
  }
}

TEST(Metadata, says_the_same_whatever_the_protocol) {
  const std::string folder = "torch_2.15.0/objects/metadata_p";
  const Metadata first = read(test_file(folder + "4.bin"));
  EXPECT_FALSE(first.catalog.tensors.empty());
  for (const std::string protocol : {"2", "3", "5"}) {
    SCOPED_TRACE(protocol);
    expect_same_catalog(first.catalog, read(test_file(folder + protocol + ".bin")).catalog);
  }
}

TEST(Metadata, notes_megatrons_plans_without_keeping_them) {
  bool seen = false;
  for (const auto& [directory, expected] : fixtures()) {
    if (directory.string().find("mcore_") == std::string::npos) continue;
    seen = true;
    EXPECT_TRUE(read_directory(directory).has_local_plans) << directory;
  }
  EXPECT_TRUE(seen);
}

Metadata small() {
  Metadata metadata;
  metadata.catalog.files = {"__0_0.distcp"};
  metadata.catalog.tensors = {{"w",
                               DType::kBFloat16,
                               {2, 3},
                               {{{{0, 0}, {1, 3}}, 0, {0, 100}}, {{{1, 0}, {1, 3}}, 0, {100, 90}}},
                               {}}};
  metadata.catalog.objects = {{"extra", 0, {190, 10}}};
  metadata.checkpoint_id = "/data/x";
  metadata.save_id = "id";
  return metadata;
}

/// Encodes `metadata`, replaces the bytes `from` by the bytes `to`, and returns the error that
/// reading the result gives.
Error error_after(const Metadata& metadata, const std::string& from, const std::string& to) {
  const Bytes written = write_metadata(metadata);
  std::string bytes(as_text(written));
  const std::size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  bytes.replace(at, from.size(), to);
  return error_of([&] { read(to_bytes(bytes)); });
}

TEST(Metadata, storage_paths_that_leave_the_directory_are_refused) {
  const std::vector<std::string> paths{
      "../../x.distcp", "/etc/x.distcp", "a/../x", "a\\..\\x", "./x", "a//b", "a/", "x\0y"s, ""};
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    Metadata metadata = small();
    metadata.catalog.files = {path};
    const Error error = error_of([&] { read(write_metadata(metadata)); });
    EXPECT_EQ(error.code(), Code::kPathEscape);
    EXPECT_EQ(error.place().file, ".metadata");
    EXPECT_TRUE(error.place().offset.has_value());
  }
  Metadata nested = small();
  nested.catalog.files = {"parts/__0_0.distcp"};
  EXPECT_EQ(read(write_metadata(nested)).catalog.files, nested.catalog.files);
}

TEST(Metadata, keys_may_be_called_like_attributes_and_files) {
  Metadata metadata = small();
  const StoredTensor form = metadata.catalog.tensors.front();
  metadata.catalog.tensors.clear();
  for (const char* key : {"chunks", "offset", "properties", "relative_path", "size", "torch"}) {
    metadata.catalog.tensors.push_back(form);
    metadata.catalog.tensors.back().key = key;
  }
  metadata.catalog.objects.front().key = metadata.catalog.files.front();
  metadata.planner_data = {{"not a key", {"fqn"}},
                           {"size", {"a", 3, "size"}},
                           {"fqn", {"size"}},
                           {"size", {"once more"}}};
  const Metadata back = read(write_metadata(metadata));
  ASSERT_EQ(back.catalog.tensors.size(), metadata.catalog.tensors.size());
  for (std::size_t i = 0; i < back.catalog.tensors.size(); ++i) {
    EXPECT_EQ(back.catalog.tensors[i].key, metadata.catalog.tensors[i].key);
    EXPECT_EQ(back.catalog.tensors[i].chunks, form.chunks);
  }
  EXPECT_EQ(back.catalog.objects.front().key, metadata.catalog.files.front());
  const std::vector<PathStep> path = {"a", std::int64_t{3}, "size"};
  ASSERT_EQ(back.planner_data.size(), 7U);  // an entry for each key, that of "size" first
  EXPECT_EQ(back.planner_data[0].key, "size");
  EXPECT_EQ(back.planner_data[0].path, path);
  EXPECT_EQ(back.planner_data[1].path, std::vector<PathStep>{"chunks"});
}

TEST(Metadata, a_text_that_is_refused_is_named_by_its_place_in_the_file) {
  Metadata metadata = small();
  metadata.catalog.files = {"../../x.distcp"};
  const Bytes written = write_metadata(metadata);
  const Error error = error_of([&] { read(written); });
  EXPECT_EQ(error.place().offset, as_text(written).find("../../x.distcp")) << error.what();
}

TEST(Metadata, a_checkpoint_id_may_be_the_parts_of_a_path) {
  const Bytes written = write_metadata(small());
  const std::string id = "\x8c\7/data/x";
  const auto read_id = [&](const std::string& parts) {
    std::string bytes(as_text(written));
    const std::size_t at = bytes.find(id);
    EXPECT_NE(at, std::string::npos);
    bytes.replace(at, id.size(), global("pathlib", "PosixPath") + "(" + parts + "tR");
    return read(to_bytes(bytes)).checkpoint_id;
  };
  EXPECT_EQ(read_id(text("/") + text("data") + text("x")), "/data/x");
  EXPECT_EQ(read_id(text("data") + text("run") + text("x")), "data/run/x");
}

TEST(Metadata, what_does_not_fit_together_is_refused) {
  Metadata ranks = small();
  ranks.catalog.tensors[0].chunks[0].box = {{0}, {1}};
  EXPECT_EQ(error_of([&] { read(write_metadata(ranks)); }).code(), Code::kTornFile);
  Metadata negative = small();
  negative.catalog.tensors[0].chunks[0].box.offset[0] = -1;
  EXPECT_EQ(error_of([&] { read(write_metadata(negative)); }).code(), Code::kTornFile);
  Metadata huge = small();
  huge.catalog.tensors[0].shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_EQ(error_of([&] { read(write_metadata(huge)); }).code(), Code::kLimit);
  Metadata vast = small();  // 2^62 bytes, of 16 bytes per element: too large for an item
  vast.catalog.tensors[0] = {"w", DType::kComplex128, {std::int64_t{1} << 58}, {}, {}};
  EXPECT_EQ(error_of([&] { read(write_metadata(vast)); }).code(), Code::kLimit);
  --vast.catalog.tensors[0].shape[0];
  EXPECT_NO_THROW(read(write_metadata(vast)));
  Metadata twice = small();
  twice.catalog.objects.push_back(twice.catalog.objects.front());
  EXPECT_EQ(error_of([&] { read(write_metadata(twice)); }).code(), Code::kTornFile);
  Metadata both = small();
  both.catalog.objects[0].key = "w";
  EXPECT_EQ(error_of([&] { read(write_metadata(both)); }).code(), Code::kTornFile);
  EXPECT_EQ(error_after(small(), "bfloat16", "bits1x8!").code(), Code::kUnsupported);
  EXPECT_EQ(error_after(small(), "torch.strided", "torch.sparse_").code(), Code::kTornFile);
  EXPECT_EQ(error_of([] { read(pickle("]")); }).code(), Code::kTornFile);
}

TEST(Metadata, a_path_of_the_planner_may_be_a_list_and_nothing_else_is_one) {
  Metadata metadata = small();
  metadata.planner_data = {{"w", {0L, 1L, 2L, 3L}}};
  const Bytes written = write_metadata(metadata);
  const std::string tuple = "(K\0K\1K\2K\3t"s;
  std::string bytes(as_text(written));
  ASSERT_NE(bytes.find(tuple), std::string::npos);
  bytes.replace(bytes.find(tuple), tuple.size(), "](K\0K\1K\2K\3e"s);
  EXPECT_EQ(read(to_bytes(bytes)).planner_data.at(0).path, metadata.planner_data[0].path);
  for (const std::string& other : {"K\7"s, "N"s, "}"s, "\x8c\3abc"s}) {
    const Error error = error_after(metadata, tuple, other);
    EXPECT_EQ(error.code(), Code::kUnsupported) << error.what();
    EXPECT_NE(error.message().find("not a path"), std::string::npos) << error.what();
  }
}

TEST(Metadata, storage_meta_of_another_type_is_refused) {
  const Bytes written = write_metadata(small());
  const std::string key = "storage_meta";
  for (const std::string& other : {")"s, "}"s, "K\7"s, text("no object"),
                                   global("pathlib", "PosixPath") + "(" + text("a") + "tR",
                                   global("torch", "Size") + "((K\1ttR"s}) {
    std::string bytes(as_text(written));
    const std::size_t at = bytes.find(key);
    ASSERT_NE(at, std::string::npos);
    bytes.insert(at + key.size(), other + text("x"));
    const Error error = error_of([&] { read(to_bytes(bytes)); });
    EXPECT_EQ(error.code(), Code::kTornFile);
    EXPECT_NE(error.message().find("storage_meta is not a StorageMeta"), std::string::npos);
  }
}

TEST(Metadata, planner_data_that_is_no_dict_is_not_supported) {
  Metadata metadata = small();
  metadata.catalog.tensors.clear();
  metadata.catalog.objects.clear();
  const Bytes written = write_metadata(metadata);
  std::string bytes(as_text(written));
  const std::size_t at = bytes.find("}(u", bytes.find("planner_data"));
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 3, "](e");
  const Error error = error_of([&] { read(to_bytes(bytes)); });
  EXPECT_EQ(error.code(), Code::kUnsupported) << error.what();
}

/// A tensor of 9 dimensions, in two rows.
Metadata folded() {
  Metadata metadata = small();
  const Dims row = {1, 1, 1, 1, 1, 1, 1, 21 * 22};
  metadata.catalog.tensors = {{.key = "w",
                               .shape = {2, 1, 1, 1, 1, 1, 1, 21 * 22},
                               .chunks = {{{{0, 0, 0, 0, 0, 0, 0, 0}, row}, 0, {0, 100}},
                                          {{{1, 0, 0, 0, 0, 0, 0, 0}, row}, 0, {100, 90}}},
                               .original_shape = {},
                               .folded = {21, 22}}};
  return metadata;
}

TEST(Metadata, more_than_eight_dimensions_are_folded) {
  const Metadata metadata = read(write_metadata(folded()));
  const StoredTensor& tensor = metadata.catalog.tensors.at(0);
  const StoredTensor expected = folded().catalog.tensors.at(0);
  EXPECT_EQ(tensor.shape, expected.shape);
  EXPECT_EQ(tensor.folded, expected.folded);
  EXPECT_EQ(tensor.chunks, expected.chunks);
  EXPECT_TRUE(metadata.notes.empty());
  EXPECT_EQ(shape_text(all_extents(tensor)), "[2, 1, 1, 1, 1, 1, 1, 21, 22]");
}

TEST(Metadata, a_flattened_tensor_of_more_than_8_dimensions_is_unsupported) {
  Metadata metadata = folded();
  metadata.catalog.tensors[0].original_shape = {2, 21 * 22};
  const Error error = error_of([&] { read(write_metadata(metadata)); });
  EXPECT_EQ(error.code(), Code::kUnsupported) << error.what();
  EXPECT_NE(error.message().find("tensor w is stored flattened"), std::string::npos);
}

TEST(Metadata, ranks_that_fold_differently_disagree_on_the_shape) {
  const auto of_rank = [](std::int64_t row, const FoldedExtents& last) {
    Metadata metadata = folded();
    StoredTensor& tensor = metadata.catalog.tensors[0];
    tensor.folded = last;
    tensor.chunks = {tensor.chunks[static_cast<std::size_t>(row)]};
    return write_metadata(metadata);
  };
  const std::vector<std::string> names{"__0.metadata", "__1.metadata"};
  const auto code = [&](const FoldedExtents& second) {
    const std::vector<Bytes> files{of_rank(0, {21, 22}), of_rank(1, second)};
    const std::vector<ByteSpan> spans(files.begin(), files.end());
    try {
      read_metadata(spans, names);
      return std::string("read");
    } catch (const Error& error) {
      return std::string(name_of(error.code()));
    }
  };
  EXPECT_EQ(code({21, 22}), "read");
  EXPECT_EQ(code({22, 21}), "SHAPE_DRIFT");
}

TEST(Metadata, a_cut_along_a_folded_dimension_is_not_supported) {
  const auto changed = [](const std::string& after, const std::string& from,
                          const std::string& to) {
    const Bytes written = write_metadata(folded());
    std::string bytes(as_text(written));
    const std::size_t at = bytes.find(from, bytes.find(after));
    EXPECT_NE(at, std::string::npos) << from;
    bytes.replace(at, from.size(), to);
    return to_bytes(bytes);
  };
  const auto code = [](const Bytes& bytes) { return error_of([&] { read(bytes); }).code(); };
  EXPECT_EQ(code(changed("sizes", "K\x15K\x16", "K\x15K\x0b")), Code::kUnsupported);
  EXPECT_EQ(code(changed("offsets", "K\0K\0t"s, "K\0K\1t"s)), Code::kUnsupported);
  EXPECT_EQ(code(changed("sizes", "K\x15K\x16", "K\x15K\x16K\1")), Code::kTornFile);
  EXPECT_EQ(code(changed("size", "K\x15K\x16", "K\x15")), Code::kTornFile);
  std::string many;
  for (int i = 0; i < 57; ++i) many += "K\1";
  EXPECT_EQ(code(changed("size", "K\x15K\x16", many + "K\x15")), Code::kUnsupported);
  const std::string large = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f";
  EXPECT_EQ(code(changed("size", "K\x15K\x16", large + large)), Code::kLimit);
  // Storage for a chunk that starts elsewhere belongs to none.
  const Metadata elsewhere = read(changed("MetadataIndex", "K\0K\0t"s, "K\0K\1t"s));
  EXPECT_EQ(elsewhere.catalog.tensors.at(0).chunks.at(0).file, kNoFile);
  EXPECT_FALSE(elsewhere.notes.empty());
}

TEST(Metadata, a_memory_format_that_torch_does_not_know_is_refused) {
  const Bytes real = test::test_file("torch_2.15.0/file_per_item/.metadata");
  const std::size_t name = as_text(real).find("_MEM_FORMAT_ENCODING");
  const std::size_t number = as_text(real).find(std::string_view("K\0", 2), name) + 1;
  ASSERT_LT(number, name + 40);
  for (const int value : {1, 2, 3, 4, 255}) {
    Bytes changed = real;
    changed[number] = static_cast<std::byte>(value);
    if (value <= 2) {
      EXPECT_NO_THROW(read(changed)) << value;
    } else {
      EXPECT_EQ(error_of([&] { read(changed); }).code(), Code::kTornFile) << value;
    }
  }
}

TEST(Metadata, a_chunk_without_storage_is_kept_and_the_reverse_is_noted) {
  Metadata metadata = small();
  metadata.catalog.tensors[0].chunks[1].file = kNoFile;
  metadata.catalog.objects[0].file = kNoFile;
  const Metadata again = read(write_metadata(metadata));
  EXPECT_EQ(again.catalog.tensors[0].chunks[1].file, kNoFile);
  EXPECT_EQ(again.catalog.objects[0].file, kNoFile);
  EXPECT_TRUE(again.notes.empty());
  const Bytes written = write_metadata(small());
  std::string bytes(as_text(written));
  const std::string index = "\x8c\6offset";
  ASSERT_NE(bytes.find(index), std::string::npos);
  bytes.replace(bytes.find(index), index.size(), "\x8c\6offzet");
  const Error error = error_of([&] { read(to_bytes(bytes)); });
  EXPECT_EQ(error.code(), Code::kTornFile) << error.what();  // _StorageInfo must have an "offset"
}

TEST(Metadata, empty_chunks_may_start_where_others_do) {
  Metadata metadata = small();
  metadata.catalog.tensors[0].chunks = {{{{0, 0}, {2, 3}}, 0, {0, 100}},
                                        {{{0, 0}, {0, 3}}, 0, {0, 100}},
                                        {{{2, 0}, {0, 3}}, 0, {100, 90}}};
  const Metadata again = read(write_metadata(metadata));
  expect_same_catalog(metadata.catalog, again.catalog);
  EXPECT_EQ(again.notes.size(), 1U);
}

TEST(Metadata, order_of_keys_and_traits_of_tensors_are_kept) {
  Metadata metadata;
  metadata.catalog.files = {"__0_0.distcp"};
  for (const char* key : {"a", "b", "c"}) {
    metadata.catalog.tensors.push_back(
        {.key = key, .shape = {2, 3}, .chunks = {{Box::whole({2, 3}), 0, {0, 100}}}});
  }
  metadata.catalog.objects = {{"o", 0, {100, 10}, 1}};
  metadata.catalog.tensors[0].place = 3;
  metadata.catalog.tensors[1].place = 0;
  metadata.catalog.tensors[2].place = 2;
  metadata.catalog.tensors[0].traits = {
      .requires_grad = true, .memory_format = 1, .pin_memory = true, .strides = {{1, 2}}};
  metadata.planner_data = {{"c", {"c"}}, {"a", {"a"}}};
  metadata.write_strides = true;
  const Metadata again = read(write_metadata(metadata));
  EXPECT_FALSE(again.write_strides);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again.catalog.tensors[i].place, metadata.catalog.tensors[i].place);
    EXPECT_EQ(again.catalog.tensors[i].traits, metadata.catalog.tensors[i].traits);
  }
  EXPECT_EQ(again.catalog.objects[0].place, 1U);
  ASSERT_EQ(again.planner_data.size(), 4U);
  EXPECT_EQ(again.planner_data[0].key, "c");
  EXPECT_EQ(again.planner_data[1].key, "a");
  EXPECT_EQ(again.planner_data[2].key, "b");
}

TEST(Metadata, strides_are_written_only_on_request) {
  Metadata metadata = small();
  for (StoredTensor& tensor : metadata.catalog.tensors) tensor.traits.strides = {{7, 1}};
  const auto strides_after = [&metadata] {
    return read(write_metadata(metadata)).catalog.tensors[0].traits.strides;
  };
  EXPECT_EQ(strides_after(), std::nullopt);
  metadata.write_strides = true;
  EXPECT_EQ(strides_after(), (std::vector<std::int64_t>{7, 1}));
}

TEST(Metadata, surrogates_in_keys_are_kept_bit_for_bit) {
  Metadata metadata;
  metadata.catalog.files = {"__0_0.distcp"};
  const std::string key = "a\xed\xa0\x80z";  // 'a\ud800z' as Python pickles it
  metadata.catalog.objects = {{key, 0, {0, 10}}};
  const Metadata again = read(write_metadata(metadata));
  EXPECT_EQ(again.catalog.objects[0].key, key);
  EXPECT_EQ(std::get<std::string>(again.planner_data[0].path[0]), key);
}

TEST(Metadata, the_shape_before_flattening_is_kept) {
  Metadata metadata = small();
  metadata.catalog.tensors[0] = {
      "exp_avg", DType::kFloat32, {2, 1, 12}, {{{{0, 0, 3}, {1, 1, 6}}, 0, {0, 100}}}, {4, 6}};
  const Metadata again = read(write_metadata(metadata));
  EXPECT_EQ(again.catalog.tensors[0].original_shape, (Dims{4, 6}));
}

TEST(Metadata, files_of_several_ranks_are_merged_and_must_agree) {
  Metadata first = small();
  first.catalog.tensors[0].chunks.resize(1);
  Metadata second = small();
  second.catalog.files = {"__1_0.distcp"};
  second.catalog.tensors[0].chunks.erase(second.catalog.tensors[0].chunks.begin());
  const Bytes one = write_metadata(first);
  const Bytes two = write_metadata(second);
  const std::vector<std::string> names{"__0.metadata", "__1.metadata"};
  const Metadata merged = read_metadata(std::vector<ByteSpan>{one, two}, names);
  ASSERT_EQ(merged.catalog.tensors.size(), 1U);
  ASSERT_EQ(merged.catalog.tensors[0].chunks.size(), 2U);
  EXPECT_EQ(merged.catalog.files.at(merged.catalog.tensors[0].chunks[1].file), "__1_0.distcp");
  EXPECT_EQ(merged.catalog.objects.size(), 2U) << "each rank has its own";
  EXPECT_EQ(merged.ranks, (std::vector<std::int32_t>{0, 1}));
  second.catalog.tensors[0].dtype = DType::kFloat32;
  const Bytes other_type = write_metadata(second);
  const Error error = error_of([&] {
    read_metadata(std::vector<ByteSpan>{one, other_type}, names);
  });
  EXPECT_EQ(error.code(), Code::kDtypeDrift);
  EXPECT_EQ(error.place().file, "__0.metadata to __1.metadata");
  second.catalog.tensors[0].shape = {2, 4};
  const Bytes other_shape = write_metadata(second);
  EXPECT_EQ(error_of([&] {
              read_metadata(std::vector<ByteSpan>{one, other_shape}, names);
            }).code(),
            Code::kShapeDrift);
}

TEST(Metadata, the_file_of_a_rank_has_what_that_rank_knows_and_nothing_else) {
  Metadata metadata = small();
  metadata.ranks = {0, 1};
  metadata.catalog.tensors[0].known_by.ranks = {0};
  metadata.catalog.objects[0].known_by.ranks = {1};
  const auto files = metadata_files(metadata);
  ASSERT_EQ(files.size(), 2U);
  const auto catalog_of = [](const MetadataFile& file) {
    return read_metadata(std::vector<ByteSpan>{file.content}, std::vector{file.name}).catalog;
  };
  EXPECT_EQ(files[0].name, "__0.metadata");
  EXPECT_EQ(catalog_of(files[0]).tensors.size(), 1U);
  EXPECT_EQ(catalog_of(files[0]).objects.size(), 0U);
  EXPECT_EQ(files[1].name, "__1.metadata");
  EXPECT_EQ(catalog_of(files[1]).tensors.size(), 0U);
  EXPECT_EQ(catalog_of(files[1]).objects.size(), 1U);
}

TEST(Metadata, a_rank_sees_its_own_items_under_plain_keys_and_no_others) {
  Metadata metadata = small();
  StoredTensor own = metadata.catalog.tensors[0];
  for (const std::int32_t rank : {0, 1}) {
    own.key = "v@rank" + std::to_string(rank);
    own.shape = {2, 3 + rank};
    own.known_by = {.ranks = {rank}, .own = true};
    metadata.catalog.tensors.insert(metadata.catalog.tensors.begin() + rank, own);
  }
  for (const std::int32_t rank : {0, 1}) {
    const auto tensors = seen_by(metadata, rank).catalog.tensors;
    ASSERT_EQ(tensors.size(), 2U);
    EXPECT_EQ(tensors[0].key, "v");
    EXPECT_EQ(tensors[0].shape, (Dims{2, 3 + rank}));
    EXPECT_EQ(tensors[1].key, "w");
  }
}

/// Makes the tables of one tensor "w" with 8 elements. Each pair gives a chunk's first element and
/// the number of its file (-1: none).
MetadataTables tables_with(const std::vector<std::pair<std::int64_t, int>>& chunks) {
  StoredTensor tensor{"w", DType::kFloat32, {8}, {}, {}};
  for (const auto& [begin, file] : chunks) {
    tensor.chunks.push_back(
        {{{begin}, {1}}, file < 0 ? kNoFile : static_cast<FileIndex>(file), {}});
  }
  MetadataTables tables;
  tables.tensors.push_back(std::move(tensor));
  return tables;
}

TEST(Metadata, pieces_of_several_ranks_are_grouped_into_copies) {
  using Chunks = std::vector<std::pair<std::int64_t, int>>;
  struct Row {
    std::vector<Chunks> ranks;
    std::vector<Chunks> copies;
  };
  const std::vector<Row> rows = {
      {{{{3, 0}, {1, 0}}, {{2, 1}, {0, 1}}}, {{{3, 0}, {1, 0}, {2, 1}, {0, 1}}}},
      {{{{1, 0}}, {{1, 1}}, {{1, 2}, {0, 2}}}, {{{1, 0}}, {{1, 1}}, {{1, 2}, {0, 2}}}},
      {{{{1, 0}}, {{1, 1}}, {{0, 2}}, {{0, 3}}}, {{{1, 0}, {0, 2}}, {{1, 1}, {0, 3}}}},
      {{{{1, -1}}, {{1, -1}, {2, 1}}, {{1, 2}}, {{1, 3}}}, {{{1, 2}, {2, 1}}, {{1, 3}}}},
      {{{}, {{1, 1}}, {}, {{1, 3}}}, {{{1, 1}}, {{1, 3}}}},
      {{{{1, -1}}, {{1, -1}}}, {{{1, -1}}}},
      // One file has the same chunk twice. Both entries are kept, and verify judges them.
      {{{{1, 0}, {1, 0}}, {{1, 1}}}, {{{1, 0}, {1, 0}}, {{1, 1}}}},
      {{{}, {{1, 1}, {1, 1}}}, {{{1, 1}, {1, 1}}}},
  };
  for (const Row& row : rows) {
    std::vector<MetadataTables> tables;
    for (const Chunks& rank : row.ranks) {
      tables.push_back(tables_with(rank));
      tables.back().rank = static_cast<std::int32_t>(tables.size() - 1);
    }
    const Metadata merged = merge_rank_tables(std::move(tables), {}, {});
    ASSERT_EQ(merged.catalog.tensors.size(), row.copies.size()) << "row " << &row - rows.data();
    for (std::size_t i = 0; i < row.copies.size(); ++i) {
      EXPECT_EQ(merged.catalog.tensors[i].chunks, tables_with(row.copies[i]).tensors[0].chunks)
          << "row " << &row - rows.data();
    }
  }
}

/// Ranks that have `shards` parts of a tensor, each part on `replicas` ranks.
struct Replicated {
  std::int32_t replicas;
  std::int32_t shards;
  bool neighbours;  ///< true if the ranks with the same part follow each other

  Metadata saved() const {
    FileNames names;
    std::vector<MetadataTables> tables;
    for (std::int32_t rank = 0; rank < replicas * shards; ++rank) {
      const std::int64_t shard = neighbours ? rank / replicas : rank % shards;
      const FileIndex file = names.add("__" + std::to_string(rank) + "_0.distcp");
      StoredTensor tensor{"w", DType::kFloat32, {shards}, {{{{shard}, {1}}, file, {0, 100}}}, {}};
      tables.push_back({.rank = rank, .tensors = {std::move(tensor)}});
    }
    return merge_rank_tables(std::move(tables), std::move(names), {});
  }
};

/// Says, for each tensor, which ranks know it and where its chunks are.
std::vector<std::string> copies_in(const Metadata& metadata) {
  std::vector<std::string> lines;
  for (const StoredTensor& tensor : metadata.catalog.tensors) {
    std::string line = tensor.key + " of";
    for (const std::int32_t rank : tensor.known_by.ranks) line += " " + std::to_string(rank);
    for (const StoredChunk& chunk : tensor.chunks) {
      line += ", " + to_string(chunk.box) + " in " + metadata.catalog.files.at(chunk.file);
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(Metadata, replicas_stay_apart_when_they_are_written_and_read) {
  for (const std::int32_t replicas : {1, 2, 3, 4, 150}) {
    for (const std::int32_t shards : {1, 2, 3}) {
      for (const bool neighbours : {true, false}) {
        const Metadata saved = Replicated{replicas, shards, neighbours}.saved();
        ASSERT_EQ(saved.catalog.tensors.size(), static_cast<std::size_t>(replicas));
        for (const StoredTensor& tensor : saved.catalog.tensors) {
          EXPECT_EQ(tensor.chunks.size(), static_cast<std::size_t>(shards)) << tensor.key;
        }
        const auto files = metadata_files(saved);
        std::vector<ByteSpan> contents;
        std::vector<std::string> names;
        for (const MetadataFile& file : files) {
          contents.push_back(file.content);
          names.push_back(file.name);
        }
        EXPECT_EQ(copies_in(read_metadata(contents, names)), copies_in(saved))
            << replicas << " x " << shards << (neighbours ? " neighbours" : "");
      }
    }
  }
}

TEST(Metadata, the_same_bytes_are_one_copy_only_if_all_agrees) {
  // Rank 2 refers to a byte range of rank 1's copy, but at another place or with another type.
  for (const auto& [begin, dtype] :
       {std::pair{std::int64_t{0}, DType::kFloat32}, std::pair{std::int64_t{1}, DType::kFloat32},
        std::pair{std::int64_t{0}, DType::kInt32}}) {
    std::vector<MetadataTables> tables;
    for (std::int32_t rank = 0; rank < 3; ++rank) {
      const bool last = rank == 2;
      StoredTensor tensor{"w", last ? dtype : DType::kFloat32, {2}, {}, {}};
      const FileIndex file = rank == 0 ? 0 : 1;
      for (const std::int64_t at : {0, 1}) {
        tensor.chunks.push_back({{{last ? (at + begin) % 2 : at}, {1}},
                                 file,
                                 {static_cast<std::uint64_t>(at) * 100, 100}});
      }
      tables.push_back({.rank = rank, .tensors = {std::move(tensor)}});
    }
    const Metadata merged = merge_rank_tables(std::move(tables), {}, {});
    const bool equal = begin == 0 && dtype == DType::kFloat32;
    EXPECT_EQ(merged.catalog.tensors.size(), equal ? 2U : 3U) << begin << ' ' << name_of(dtype);
  }
}

/// Returns the tables of a rank with an object `key` of its own.
MetadataTables tables_of_object(std::int32_t rank, const std::string& key) {
  MetadataTables tables;
  tables.rank = rank;
  tables.objects = {{key, static_cast<FileIndex>(rank), {0, 10}}};
  return tables;
}

TEST(Metadata, a_key_of_a_tensor_on_one_rank_and_an_object_on_another_fails) {
  auto tensor = tables_with({{0, 0}});
  tensor.rank = 0;
  const Error error = error_of([&] {
    merge_rank_tables({tensor, tables_of_object(1, "w")}, {}, {});
  });
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_EQ(error.place().key, "w");
}

TEST(Metadata, a_key_that_is_named_like_the_item_of_a_rank_is_not_supported) {
  MetadataTables first = tables_of_object(0, "rng");
  first.objects.push_back({"rng@rank1", 0, {10, 10}});
  const Error error = error_of([&] {
    merge_rank_tables({first, tables_of_object(1, "rng")}, {}, {});
  });
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_EQ(error.place().key, "rng@rank1");
}

TEST(Metadata, objects_of_several_ranks_are_one_if_they_are_the_same_bytes) {
  const auto merged = [](ByteRange second, FileIndex file) {
    MetadataTables one = tables_of_object(0, "rng");
    MetadataTables two = tables_of_object(1, "rng");
    two.objects[0].file = file;
    two.objects[0].range = second;
    return merge_rank_tables({one, two}, {}, {}).catalog.objects;
  };
  const auto same = merged({0, 10}, 0);
  ASSERT_EQ(same.size(), 1U);
  EXPECT_EQ(same[0].key, "rng");
  EXPECT_EQ(same[0].known_by.ranks, (std::vector<std::int32_t>{0, 1}));
  EXPECT_FALSE(same[0].known_by.own);
  for (const auto& [range, file] : std::vector<std::pair<ByteRange, FileIndex>>{
           {{0, 10}, 1}, {{10, 10}, 0}, {{0, 11}, 0}, {{0, 10}, kNoFile}}) {
    const auto apart = merged(range, file);
    ASSERT_EQ(apart.size(), 2U) << range.offset << ' ' << range.size << ' ' << file;
    EXPECT_EQ(apart[0].key, "rng@rank0");
    EXPECT_EQ(apart[1].key, "rng@rank1");
    EXPECT_TRUE(apart[1].known_by.own);
  }
}

TEST(Metadata, of_several_files_the_first_that_says_something_is_believed) {
  MetadataTables first = tables_of_object(0, "a");
  MetadataTables second = tables_of_object(1, "b");
  second.checkpoint_id = "/data/x";
  second.save_id = "id";
  second.version = "1.0.0";
  second.has_local_plans = true;
  MetadataTables third = tables_of_object(2, "c");
  third.checkpoint_id = third.save_id = third.version = "other";
  first.planner_data = {{"a", {std::string("a")}}};
  second.planner_data = {{"a", {std::string("other")}}, {"b", {std::string("b")}}};
  const Metadata merged = merge_rank_tables({first, second, third}, {}, {});
  EXPECT_EQ(merged.checkpoint_id, "/data/x");
  EXPECT_EQ(merged.save_id, "id");
  EXPECT_EQ(merged.version, "1.0.0");
  EXPECT_TRUE(merged.has_local_plans);
  ASSERT_EQ(merged.planner_data.size(), 2U);
  EXPECT_EQ(merged.planner_data[0].path, first.planner_data[0].path);
  EXPECT_EQ(merged.planner_data[1].key, "b");
  EXPECT_EQ(merged.catalog.objects[2].place, 2U) << "keys are counted through all files";
  EXPECT_FALSE(merge_rank_tables({first, third}, {}, {}).has_local_plans);
}

TEST(Metadata, files_of_thousands_of_ranks_merge_in_the_time_of_a_sort) {
  constexpr std::int64_t kRanks = 8192;
  std::vector<MetadataTables> ranks(kRanks);
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    ranks[static_cast<std::size_t>(rank)].rank = static_cast<std::int32_t>(rank);
    for (int i = 0; i < 8; ++i) {
      StoredTensor tensor{"w" + std::to_string(i), DType::kFloat32, {kRanks}, {}, {}};
      tensor.chunks.push_back({{{kRanks - 1 - rank}, {1}}, 0, {}});
      ranks[static_cast<std::size_t>(rank)].tensors.push_back(std::move(tensor));
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  const Metadata merged = merge_rank_tables(std::move(ranks), {}, {});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 5.0) << "sorting once per rank takes much longer";
  for (const StoredTensor& tensor : merged.catalog.tensors) {
    EXPECT_EQ(tensor.chunks.size(), static_cast<std::size_t>(kRanks));
  }
}

TEST(MetadataHostile, truncation_anywhere_is_refused) {
  for (const std::string name : {"vectors/md280.bin", "vectors/ck_p2/.metadata"}) {
    const Bytes whole = test_file(name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_EQ(error_of([&] { read(cut); }).code(), Code::kTornFile) << name << length;
    }
  }
}

TEST(MetadataHostile, any_byte_changed_is_read_or_refused_in_words) {
  std::size_t refused = 0;
  for (const std::string name : {"vectors/md280.bin", "vectors/ck_p2/.metadata"}) {
    const Bytes whole = test_file(name);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const unsigned flip : {0x01U, 0x04U, 0x20U, 0x80U, 0xffU}) {
        Bytes changed = whole;
        changed[i] ^= static_cast<std::byte>(flip);
        try {
          read(changed);
        } catch (const Error& error) {
          ++refused;
          EXPECT_FALSE(error.message().empty());
          EXPECT_EQ(error.place().file, ".metadata") << error.what();
        }
      }
    }
  }
  EXPECT_GT(refused, 1000U);
}

/// Returns opcodes that create an object with these attributes. Its class is `name` in
/// torch.distributed.checkpoint.metadata.
std::string object(const std::string& name, const std::string& attributes) {
  return global("torch.distributed.checkpoint.metadata", name) + ")\x81}(" + attributes + "ub";
}

/// Makes a `.metadata` in which all tensors refer to one list of `chunks` chunks in the memo.
Bytes sharing(int tensors, int chunks) {
  const std::string size = global("torch", "Size") + "K\2\x85\x85R";
  const std::string chunk =
      object("ChunkStorageMetadata", text("offsets") + size + text("sizes") + size);
  std::string list = "](";
  for (int i = 0; i < chunks; ++i) list += i == 0 ? chunk + "q\1" : "h\1";
  list += "eq\2";
  std::string keys;
  for (int i = 0; i < tensors; ++i) {
    const std::string properties =
        global("torch.distributed.checkpoint.metadata", "TensorProperties") + ")\x81(" +
        global("torch", "float32") + "NN" +
        global("torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING") + "K\0\x85RNtb"s;
    keys += text("t" + std::to_string(i)) +
            object("TensorStorageMetadata", text("properties") + properties + text("size") + size +
                                                text("chunks") + (i == 0 ? list : "h\2"));
  }
  return pickle(object("Metadata", text("state_dict_metadata") + "}(" + keys + "u"));
}

TEST(MetadataHostile, sharing_one_list_of_chunks_a_thousand_times_is_no_amplifier) {
  EXPECT_EQ(read(sharing(3, 5)).catalog.tensors.at(2).chunks.size(), 5U);
  const Error error = error_of([&] { read(sharing(1000, 1000)); });
  EXPECT_EQ(error.code(), Code::kLimit) << error.what();
}

/// Makes a `.metadata` whose storage entries all have the same long key, which names neither a
/// tensor nor an object. All are in the file `name`.
Bytes storage_of_a_stranger(int entries, std::size_t key_bytes,
                            const std::string& name = "__0_0.distcp") {
  std::string keys;  // enough keys that the reader uses a hash table
  for (int i = 0; i < 100; ++i)
    keys += text(std::to_string(i)) + object("BytesStorageMetadata", "");
  std::string storage;
  for (int i = 0; i < entries; ++i) {
    const std::string key = i == 0 ? text(std::string(key_bytes, 'k')) + "q\1" : "h\1";
    const std::string path = i == 0 ? text(name) + "q\2" : "h\2";
    storage +=
        object("MetadataIndex", text("fqn") + key + text("offset") + "N" + text("index") + "N") +
        global("torch.distributed.checkpoint.filesystem", "_StorageInfo") + ")\x81}(" +
        text("relative_path") + path + text("offset") + "K\0"s + text("length") + "K\1ub";
  }
  return pickle(object("Metadata", text("state_dict_metadata") + "}(" + keys + "u" +
                                       text("storage_data") + "}(" + storage + "u"));
}

TEST(MetadataHostile, a_long_unknown_key_is_not_hashed_at_each_lookup) {
  const Bytes file = storage_of_a_stranger(20000, 2U << 20U);
  const std::clock_t begin = std::clock();
  const Metadata metadata = read(file);
  const double cpu_seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_FALSE(metadata.notes.empty());
  EXPECT_LT(cpu_seconds, 2.5);  // hashing the key for each entry would take at least 7
}

TEST(MetadataHostile, a_file_name_that_is_too_long_is_refused) {
  EXPECT_NO_THROW(read(storage_of_a_stranger(2, 8, std::string(4096, 'p'))));
  const Error error = error_of([] { read(storage_of_a_stranger(2, 8, std::string(4097, 'p'))); });
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_NE(error.message().find("relative_path of 4097 bytes"), std::string::npos) << error.what();
}

TEST(Metadata, a_key_may_be_long) {
  const auto with_key = [](std::size_t bytes) {
    Metadata metadata;
    metadata.catalog.files = {"__0_0.distcp"};
    StoredTensor tensor;
    tensor.key = std::string(bytes, 'k');
    tensor.shape = {1};
    tensor.chunks.push_back({{{0}, {1}}, 0, {0, 1024}});
    metadata.catalog.tensors.push_back(tensor);
    return write_metadata(metadata);
  };
  EXPECT_EQ(read(with_key(16384)).catalog.tensors.at(0).key.size(), 16384U);
  const Error error = error_of([&] { read(with_key(16385)); });
  EXPECT_EQ(error.code(), Code::kUnsupported);
}

TEST(Metadata, a_hundred_thousand_chunks_are_read_as_written) {
  Metadata metadata;
  metadata.catalog.files = {"__0_0.distcp", "__1_0.distcp"};
  constexpr int kTensors = 100;
  constexpr int kChunks = 1000;
  for (int t = 0; t < kTensors; ++t) {
    StoredTensor tensor;
    tensor.key = "layer." + std::to_string(1000 + t);
    tensor.shape = {kChunks, 8};
    for (int c = 0; c < kChunks; ++c) {
      const auto offset = static_cast<std::uint64_t>(t * kChunks + c) << 16U;
      tensor.chunks.push_back({{{c, 0}, {1, 8}}, static_cast<FileIndex>(c % 2), {offset, 1577}});
    }
    metadata.catalog.tensors.push_back(std::move(tensor));
  }
  const Metadata again = read(write_metadata(metadata));
  ASSERT_EQ(again.catalog.tensors.size(), metadata.catalog.tensors.size());
  for (int t = 0; t < kTensors; ++t) {
    ASSERT_EQ(again.catalog.tensors[static_cast<std::size_t>(t)].chunks,
              metadata.catalog.tensors[static_cast<std::size_t>(t)].chunks);
  }
}

}  // namespace
}  // namespace reprise::test
