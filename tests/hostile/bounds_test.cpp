// Tests that the cost of every reader stays within bounds, even if the input claims to be larger
// than it is. bounded.hpp defines the bounds. costs_test.cpp tests shared and repeated structures
// of several sizes.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>

#include <nlohmann/json.hpp>
#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/diff/diff.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/json_document.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tensor_item.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/ports/whole_file.hpp"
#include "core/reshard/reshard.hpp"
#include "core/verify/verify.hpp"
#include "core/verify/verify_catalog.hpp"
#include "core/verify/verify_objects.hpp"
#include "reprise/value.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/core/format/pickles.hpp"
#include "tests/hostile/bounded.hpp"
#include "tests/hostile/damage_effect.hpp"
#include "tests/hostile/memory_tree.hpp"

namespace reprise::test::bounds_test {
namespace {

/// Size of the inputs in bytes. It is so large that a quadratic cost would exceed the bounds.
constexpr std::size_t kSize = std::size_t{256} << 10U;

struct Row {
  std::string name;
  std::string body;
};

/// Returns nested tuples. Each tuple contains the next inner tuple twice.
std::string doubling(char get, int levels) {
  std::string body = "Nq\0"s;
  for (int i = 0; i < levels; ++i) {
    body += "0h"s + static_cast<char>(i) + get + static_cast<char>(i) + "\x86q"s +
            static_cast<char>(i + 1);
  }
  return body;
}

/// Returns nested dicts with keys of 200 characters. The innermost dict contains a list whose last
/// item is `last`.
std::string deep_and_wide(char last) {
  constexpr int kLevels = 150;
  std::string body = times(kLevels, "}" + text(std::string(200, 'k')));
  body += "](" + times(kSize - body.size(), "\x88") + "K"s + last + "e";
  return body + times(kLevels, "s");
}

std::vector<Row> pickles() {
  const std::string most8(8, '\xff');
  const std::string new_dict = global("collections", "OrderedDict") + "q\0"s;
  return {
      {"text of 2^64", "\x8d" + most8},
      {"bytes of 2^64", "\x8e" + most8},
      {"bytearray of 2^64", "\x96" + most8},
      {"frame of 2^64", "\x95" + most8 + "N"},
      {"text of 2^32", "X\xff\xff\xff\xff"},
      {"bytes of 2^32", "B\xff\xff\xff\xff"},
      {"integer of 2^32 bytes", "\x8b\xff\xff\xff\xff"},
      {"memo entry 2^32", "Nr\xff\xff\xff\xff"},
      {"memo entries in steps of the slack",
       each(kSize / 6,
            [](std::size_t i) { return "Nr" + le(static_cast<std::uint32_t>(i * 900)); })},
      {"memo entries, one each", "(" + times(kSize / 2, "N\x94") + "t"},
      {"marks", std::string(kSize, '(')},
      {"empty lists", "(" + std::string(kSize, ']') + "t"},
      {"empty dicts", "(" + std::string(kSize, '}') + "t"},
      {"lists in lists", std::string(kSize / 2, ']') + std::string(kSize / 2 - 1, 'a')},
      {"tuples in tuples", "N" + std::string(kSize, '\x85')},
      {"a tuple of None", "(" + std::string(kSize, 'N') + "t"},
      {"a list of None", "](" + std::string(kSize, 'N') + "e"},
      {"a list that is appended to one by one", "]" + times(kSize / 2, "Na")},
      {"a set of equal items", "\x8f(" + std::string(kSize, 'N') + "\x90"},
      {"a frozenset of numbers",
       "(" + each(kSize / 5, [](std::size_t i) { return "J" + le(static_cast<std::int32_t>(i)); }) +
           "\x91"},
      {"a dict with one key again and again", "}(" + times(kSize / 2, "N\x88") + "u"},
      {"a dict with one long key again and again", text(std::string(kSize / 8, 'k')) +
                                                       "q\0"
                                                       "0}("s +
                                                       times(kSize / 4, "h\0N"s) + "u"},
      {"a dict of numbers",
       "}(" +
           each(kSize / 6,
                [](std::size_t i) { return "J" + le(static_cast<std::int32_t>(i)) + "N"; }) +
           "u"},
      {"two lists appended to in turn",
       "]q\0"
       "0]q\1"
       "0("s +
           times(kSize / 8, "h\0Na0h\1Na0"s) + "t"},
      {"pairs doubled 100 times", doubling('h', 100)},
      {"a list that holds itself very often", "]q\0("s + times(kSize / 2, "h\0"s) + "e"},
      {"one wide tuple in a wide list", "(" + std::string(kSize / 2, 'N') +
                                            "tq\0"
                                            "0]("s +
                                            times(kSize / 4, "h\0"s) + "e"},
      {"one long text in a wide list", text(std::string(kSize / 2, 'x')) +
                                           "q\0"
                                           "0]("s +
                                           times(kSize / 4, "h\0"s) + "e"},
      {"one long integer in a wide list", "\x8b" + le(static_cast<std::uint32_t>(kSize / 2)) +
                                              std::string(kSize / 2, '\x11') +
                                              "q\0"
                                              "0]("s +
                                              times(kSize / 4, "h\0"s) + "e"},
      {"objects", new_dict + "0(" + times(kSize / 4, "h\0)\x81"s) + "t"},
      {"names outside of the list",
       "(" + each(kSize / 10, [](std::size_t i) { return global("m", std::to_string(i)); }) + "t"},
      {"one name outside of the list, loaded again",
       "(" + times(kSize / 6, global("m", "ab")) + "t"},
      {"nested dicts with long keys over a wide list", deep_and_wide('\1')},
  };
}

TEST(Bounds, values_of_pickles) {
  for (const Row& row : pickles()) {
    const Bytes bytes = pickle(row.body);
    expect_bounded(row.name, bytes.size(), [&] {
      const PickledValue read = decode(bytes);
      (void)hash_of(read.value);
      (void)to_string(read.value);
    });
  }
}

TEST(Bounds, comparisons_of_values) {
  for (const Row& row : pickles()) {
    const Bytes bytes = pickle("(" + row.body + "K\1t");
    const Bytes other = pickle("(" + row.body + "K\2t");
    expect_bounded(row.name, bytes.size() + other.size(), [&] {
      const Value a = decode(bytes).value;
      const Value b = decode(other).value;
      (void)(a == b);
      (void)differences(a, b, 10);
    });
  }
  const Bytes a = pickle(deep_and_wide('\1'));
  const Bytes b = pickle(deep_and_wide('\2'));
  expect_bounded("one difference at the end of what is deep and wide", a.size() + b.size(), [&] {
    const auto found = differences(decode(a).value, decode(b).value, 10);
    EXPECT_EQ(found.size(), 1U);
  });
}

// --- .metadata ---------------------------------------------------------------------------------

const std::string kClasses = "torch.distributed.checkpoint.metadata";

/// Returns the opcodes of an object of the class `name` with these attributes.
std::string object(const std::string& name, const std::string& attributes) {
  return global(kClasses, name) + ")\x81}(" + attributes + "ub";
}
std::string size_of_dims(const std::string& dims) {
  return global("torch", "Size") + "(" + dims + "t\x85R";
}
std::string properties() {
  return global(kClasses, "TensorProperties") + ")\x81(" + global("torch", "float32") + "NN" +
         global(kClasses, "_MEM_FORMAT_ENCODING") + "K\0\x85RNtb"s;
}
std::string chunk(const std::string& offset, const std::string& extent) {
  return object("ChunkStorageMetadata",
                text("offsets") + size_of_dims(offset) + text("sizes") + size_of_dims(extent));
}
std::string tensor(const std::string& shape, const std::string& chunks) {
  return object("TensorStorageMetadata", text("properties") + properties() + text("size") +
                                             size_of_dims(shape) + text("chunks") + "](" + chunks +
                                             "e");
}
std::string metadata(const std::string& keys, const std::string& more = "") {
  return object("Metadata", text("state_dict_metadata") + "}(" + keys + "u" + more);
}
std::string number(std::size_t value) { return "J" + le(static_cast<std::int32_t>(value)); }

/// Returns metadata of many objects. Each key consists of `begin`, a number and `end`.
std::string objects_named(const std::string& begin, const std::string& end) {
  return metadata(each(kSize / 120, [&begin, &end](std::size_t i) {
    return text(begin + std::to_string(i) + end) + object("BytesStorageMetadata", "");
  }));
}

std::vector<Row> metadata_pickles() {
  const std::string shared_chunk = chunk("K\0"s, "K\1") + "q\0"s;
  // A chunk that occurs many times in the list of chunks. Its state has many unused attributes.
  const std::string wide_chunk = global(kClasses, "ChunkStorageMetadata") + ")\x81}(" +
                                 times(kSize / 4, "NN") + text("offsets") + size_of_dims("K\0"s) +
                                 text("sizes") + size_of_dims("K\1") + "ubq\0"s;
  const std::string path = "](" + times(kSize / 4, "K\1") + "eq\0"s;
  const auto planner = [&](const std::string& one) {
    return text("planner_data") + "}(" + text("k") + one +
           each(kSize / 20, [](std::size_t i) { return text("k" + std::to_string(i)) + "h\0"s; }) +
           "u";
  };
  const auto grid_key = [](std::size_t i) {
    return text("o/shard_0_" + std::to_string(i + 1)) + object("BytesStorageMetadata", "");
  };
  return {
      {"a list of one chunk again and again",
       metadata(text("w") + tensor("K\1", shared_chunk + times(kSize / 2, "h\0"s)))},
      {"chunks of very many attributes",
       metadata(text("w") + tensor("K\1", wide_chunk + times(kSize / 8, "h\0"s)))},
      {"a long key of many chunks without storage",
       metadata(text(std::string(kSize / 2, 'k')) +
                tensor("K\1", shared_chunk + times(kSize / 32, "h\0"s)))},
      {"a key as long as may be, of many chunks without storage",
       metadata(text(std::string(4096, 'k')) + tensor("K\1", shared_chunk + times(300, "h\0"s)))},
      {"a path of numbers shared by many keys", metadata("", planner(path))},
      {"shards of one object in a thousand grids", metadata(each(kSize / 100, grid_key))},
      {"extents of 2^63",
       metadata(text("w") + tensor("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", shared_chunk))},
      {"a size of many dimensions", metadata(text("w") + tensor(times(kSize / 2, "K\1"), ""))},
      {"boxes that all overlap",
       metadata(text("w") + tensor(number(1 << 20) + number(1 << 20),
                                   each(kSize / 200,
                                        [](std::size_t i) {
                                          return chunk(number(i) + number(i),
                                                       number(1 << 19) + number(1 << 19));
                                        })))},
      {"rows against columns",
       metadata(text("w") +
                tensor(number(4096) + number(4096),
                       each(kSize / 200,
                            [](std::size_t i) {
                              return i % 2 == 0 ? chunk(number(i) + "K\0"s, "K\1" + number(4096))
                                                : chunk("K\0"s + number(i), number(4096) + "K\1");
                            })))},
      {"modules without number", objects_named("mimo.", ".optimizer.x")},
      {"modules with long chains", objects_named("mimo.", ".chained_63.optimizer.x")},
      {"parts of other modules", objects_named("mimo.", ".optimizer.mimo.a.63.param_groups")},
      {"data-parallel groups without number",
       objects_named("mimo.a.optimizer.distributed.dp_group_idx_", ".gbuf_idx_0")},
      {"modules by names alone", objects_named("optimizer.mimo.", ".63.grad_scaler")},
  };
}

TEST(Bounds, metadata_and_what_verify_says_of_it) {
  for (const Row& row : metadata_pickles()) {
    const Bytes bytes = pickle(row.body);
    expect_bounded(row.name, bytes.size(), [&] {
      const std::vector<ByteSpan> files{bytes};
      const std::vector<std::string> names{".metadata"};
      const Metadata read = read_metadata(files, names);
      (void)check_cover(read.catalog);
      (void)check_grids(read.catalog);
      (void)check_modules(modules_of(read.catalog));
    });
  }
}

TEST(Bounds, a_sparse_metadata_of_4_GiB_is_refused_before_it_is_read) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  write_durably(store, ".metadata", pickle(metadata("")));
  std::filesystem::resize_file(directory.path() + "/.metadata", std::uintmax_t{4} << 30U);
  expect_bounded("4 GiB", 0, [&] {
    const auto error = contracts::error_of([&] { Checkpoint::open(store, ""); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kLimit) << error->what();
    EXPECT_NE(error->place().file.find(".metadata"), std::string::npos);
  });
}

TEST(Bounds, common_state_beyond_2_GiB_is_not_supported_and_not_read) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  write_durably(store, ".metadata", pickle(metadata("")));
  write_durably(store, "common.pt", write_bytes_item(Dict{}));
  std::filesystem::resize_file(directory.path() + "/common.pt", std::uintmax_t{3} << 30U);
  expect_bounded("3 GiB", 0, [&] {
    Checkpoint checkpoint = Checkpoint::open(store, "");
    EXPECT_EQ(contracts::code_of([&] { (void)checkpoint.common(); }), Code::kUnsupported);
  });
}

// --- archives ----------------------------------------------------------------------------------

/// Returns a complete item with changed end records. According to them, the archive has this number
/// of records, and its directory has this size and offset. The two end records and the locator are
/// the last 98 bytes.
Bytes claiming(std::uint64_t records, std::uint64_t directory_bytes, std::uint64_t offset) {
  Bytes item = write_bytes_item(Dict{{"a", 1}});
  const auto put = [&item](std::size_t from_end, std::uint64_t value) {
    std::memcpy(item.data() + item.size() - from_end, &value, sizeof value);
  };
  constexpr std::size_t kWideEnd = 98;
  put(kWideEnd - 24, records);
  put(kWideEnd - 32, records);
  put(kWideEnd - 40, directory_bytes);
  put(kWideEnd - 48, offset);
  // In the short end record, 0xff bytes mean that the numbers are in the long one.
  std::fill_n(item.end() - 14, 12, std::byte{0xff});
  return item;
}

TEST(Bounds, archives_that_claim) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  struct Claim {
    const char* name;
    Bytes bytes;
  };
  for (const Claim& claim : {Claim{"2^64 records", claiming(kMost, 100, 0)},
                             Claim{"4096 records", claiming(4096, 100, 0)},
                             Claim{"a directory of 2^64 bytes", claiming(4, kMost, 0)},
                             Claim{"a directory at 2^64", claiming(4, 100, kMost)},
                             Claim{"a directory of 4 MiB", claiming(4, 4U << 20U, 0)}}) {
    expect_bounded(claim.name, claim.bytes.size(), [&] {
      const Error error = [&] {
        try {
          read_bytes_item(claim.bytes);
        } catch (const Error& refused) {
          return refused;
        }
        return Error(Code::kUsage, "nothing was refused");
      }();
      EXPECT_NE(error.code(), Code::kUsage);
      throw error;
    });
  }
}

TEST(Bounds, archives_of_random_bytes_behind_a_sound_head) {
  Bytes item = write_bytes_item(Dict{{"a", 1}});
  item.resize(kSize, std::byte{'P'});
  for (std::size_t i = 600; i + 4 < item.size(); i += 4) {
    std::memcpy(item.data() + i, "PK\5\6", 4);  // many end records instead of one
  }
  expect_bounded("end records everywhere", item.size(), [&] { read_bytes_item(item); });
}

/// Makes an archive of `records` records that all claim the same long content. If `nested` is true,
/// each record has its own header; the headers follow one another, and the content of every record
/// extends to the directory. Otherwise, all directory entries point to one header.
Bytes sharing_archive(std::size_t records, bool nested) {
  const auto header = [](const std::string& name) {
    return "PK\3\4" + std::string(22, '\0') + le(static_cast<std::uint16_t>(name.size())) +
           "\0\0"s + name;
  };
  const auto name_of = [](std::size_t i) { return "a/data/" + std::to_string(10000 + i); };
  const std::size_t step = header(name_of(0)).size();
  std::string bytes;
  for (std::size_t i = 0; i < (nested ? records : 1); ++i) bytes += header(name_of(i));
  bytes += std::string(kSize, 'x');
  const std::size_t directory = bytes.size();
  for (std::size_t i = 0; i < records; ++i) {
    const std::size_t at = nested ? i * step : 0;
    const std::string size = le(static_cast<std::uint32_t>(directory - at - step));
    bytes += "PK\1\2" + std::string(16, '\0') + size + size +
             le(static_cast<std::uint16_t>(name_of(i).size())) + std::string(12, '\0') +
             le(static_cast<std::uint32_t>(at)) + name_of(i);
  }
  const auto count = le(static_cast<std::uint16_t>(records));
  const std::size_t length = bytes.size() - directory;
  bytes += "PK\5\6\0\0\0\0"s + count + count + le(static_cast<std::uint32_t>(length)) +
           le(static_cast<std::uint32_t>(directory)) + "\0\0"s;
  return to_bytes(bytes);
}

TEST(Bounds, archives_of_records_that_share_their_bytes) {
  EXPECT_NO_THROW({
    const Bytes sound = sharing_archive(1, false);
    SpanSource source(sound);
    const Archive archive(source);
  });
  for (const bool nested : {false, true}) {
    const Bytes bytes = sharing_archive(2000, nested);
    expect_bounded(nested ? "records in records" : "records in one place", bytes.size(), [&] {
      SpanSource source(bytes);
      ChecksumTally tally;
      const auto read = [&] { tally.add(source, "w"); };
      EXPECT_EQ(contracts::code_of(read), Code::kExtentMismatch);
      read();
    });
  }
}

// --- items of one file --------------------------------------------------------------------------

struct Silent final : Trace, Progress {
  void event(const TraceEvent&) override {}
  void advance(std::string_view, std::uint64_t, std::uint64_t) override {}
};

/// Makes a tree with a checkpoint of `tensors` tensors. The metadata of all tensors refers to one
/// large item.
MemoryTree sharing_tree(std::size_t tensors) {
  const Dims shape = {std::int64_t{4} << 20U};
  const TensorItemLayout layout(DType::kUInt8, shape);
  Bytes file = layout.head();
  file.resize(file.size() + layout.data_bytes());
  const std::uint32_t crc = crc32_of(ByteSpan(file).subspan(layout.data_offset()));
  append(file, layout.tail(crc));
  Metadata metadata;
  metadata.catalog.files = {"__0_0.distcp"};
  for (std::size_t i = 0; i < tensors; ++i) {
    metadata.catalog.tensors.push_back({.key = "w" + std::to_string(100000 + i),
                                        .dtype = DType::kUInt8,
                                        .shape = shape,
                                        .chunks = {{Box::whole(shape), 0, {0, file.size()}}},
                                        .original_shape = {}});
  }
  MemoryTree tree;
  tree.files["ckpt/__0_0.distcp"] = std::move(file);
  tree.files["ckpt/.metadata"] = write_metadata(metadata);
  return tree;
}

/// Returns operations, with their names, that read all items of the checkpoint in `tree`.
std::vector<std::pair<const char*, std::function<void()>>> readers_of(MemoryTree& tree) {
  return {{"diff",
           [&tree] {
             Checkpoint left = Checkpoint::open(tree, "ckpt");
             Checkpoint right = Checkpoint::open(tree, "ckpt");
             HostDevice device("node", 0);
             Silent silent;
             (void)diff(left, right, device, {}, silent);
           }},
          {"reshard",
           [&tree] {
             Checkpoint source = Checkpoint::open(tree, "ckpt");
             HostDevice device("node", 0);
             ThreadTasks tasks(1);
             Silent silent;
             (void)reshard(source, {"out"}, {}, {tree, device, tasks, silent, silent});
           }},
          {"load", [&tree] {
             const Checkpoint source = Checkpoint::open(tree, "ckpt");
             Bytes memory(std::size_t{4} << 20U);
             StateDict into;
             for (const auto& tensor : source.catalog().tensors) {
               TensorLeaf leaf;
               leaf.key = tensor.key;
               leaf.dtype = tensor.dtype;
               leaf.shape = tensor.shape;
               leaf.pieces = {contiguous_piece(Box::whole(leaf.shape))};
               leaf.data = memory.data();
               into.tensors.push_back(std::move(leaf));
             }
             load_alone(tree, "ckpt", into);
           }}};
}

TEST(Bounds, tensors_that_share_one_large_item) {
  MemoryTree one = sharing_tree(1);
  Silent silent;
  EXPECT_TRUE(verify(one, "ckpt", PayloadCheck::kRead, silent).whole());
  MemoryTree tree = sharing_tree(5000);
  for (const auto& [name, read] : readers_of(tree)) {
    expect_bounded(name, tree.bytes(), [&, &read = read] {
      const auto error = contracts::error_of(read);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), Code::kExtentMismatch) << error->what();
      EXPECT_EQ(error->place().file, "ckpt/__0_0.distcp");
      EXPECT_EQ(error->place().offset, 0U);
      EXPECT_EQ(error->place().key.substr(0, 2), "w1");
      throw Error(*error);
    });
  }
  expect_bounded("verify", tree.bytes(),
                 [&] { EXPECT_FALSE(verify(tree, "ckpt", PayloadCheck::kRead, silent).whole()); });
}

TEST(Bounds, a_tensor_too_large_for_any_item_is_refused) {
  Metadata metadata;
  metadata.catalog.files = {"__0_0.distcp"};
  const Dims shape = {std::int64_t{1} << 58U};
  constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max();
  metadata.catalog.tensors = {{.key = "w",
                               .dtype = DType::kComplex128,
                               .shape = shape,
                               .chunks = {{Box::whole(shape), 0, {0, kMostBytes}}},
                               .original_shape = {}}};
  MemoryTree tree;
  tree.files["ckpt/__0_0.distcp"] = Bytes(1000);
  tree.files["ckpt/.metadata"] = write_metadata(metadata);
  Bytes memory(16);
  TensorLeaf leaf;
  leaf.key = "w";
  leaf.dtype = DType::kComplex128;
  leaf.shape = shape;
  leaf.pieces = {contiguous_piece(Box{{0}, {1}})};
  leaf.data = memory.data();
  StateDict into;
  into.tensors.push_back(leaf);
  const auto error = contracts::error_of([&] { load_alone(tree, "ckpt", into); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kLimit) << error->what();
}

TEST(Bounds, documents_of_json) {
  const std::string keys = each(kSize / 12, [](std::size_t i) {
    return (i == 0 ? "" : ",") + ("\"" + std::to_string(i)) + "\":0";
  });
  for (const Row& row : {Row{"brackets", times(kSize, "[")}, Row{"keys", "{" + keys + "}"},
                         Row{"zeros", R"({"a":[)" + times(kSize / 2, "0,") + "0]}"},
                         Row{"a number too large", R"({"a":1e999})"}}) {
    const Bytes bytes = to_bytes(row.body);
    expect_bounded(row.name, bytes.size(),
                   [&] { parse_json_object(bytes, {}, std::uint64_t{1} << 30U); });
  }
}

}  // namespace
}  // namespace reprise::test::bounds_test
