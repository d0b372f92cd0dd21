#include "core/format/bytes_item.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/format/common_state.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "tests/core/format/items.hpp"
#include "tests/core/format/pickles.hpp"

namespace reprise {
namespace {

using test::error_of;
using test::SpoiledItem;
using namespace std::string_literals;

// Returns a value of each kind that the common state can hold, including a tensor.
Dict sample() {
  const TensorValue tensor{DType::kInt16, {2}, to_bytes("abcd")};
  return {{"int", 5},
          {"big", std::int64_t{1} << 40},
          {"float", 0.1},
          {"none", NoneType{}},
          {"true", true},
          {"text", "ключ"},
          {"bytes", to_bytes(std::string_view("\0\xff", 2))},
          {"list", List{1, 2, List{}}},
          {"tuple", Tuple{{1, "x"}}},
          {"tensor", tensor},
          {3, Dict{{"nested", TensorValue{DType::kFloat32, {}, Bytes(4, std::byte{63})}}}}};
}

TEST(BytesItem, reads_the_items_of_torch_1_13) {
  const BytesItem five = read_bytes_item(test::test_file("vectors/b_int.bin"));
  ASSERT_TRUE(five.value.has_value()) << five.opaque_because;
  EXPECT_EQ(*five.value, Value(5));
  EXPECT_EQ(five.prefix, "archive");
  const BytesItem dict = read_bytes_item(test::test_file("vectors/b_dict.bin"));
  ASSERT_TRUE(dict.value.has_value()) << dict.opaque_because;
  EXPECT_NE(dict.value->as<Dict>(), nullptr);
}

TEST(BytesItem, reads_what_it_writes_storages_included) {
  const Value value = sample();
  const Bytes bytes = write_bytes_item(value);
  const BytesItem item = read_bytes_item(bytes);
  ASSERT_TRUE(item.value.has_value()) << item.opaque_because;
  EXPECT_EQ(*item.value, value);
  EXPECT_TRUE(item.checksum_mismatches.empty());
  SpanSource source(bytes);
  Archive archive(source);
  EXPECT_NE(archive.find("data/0"), nullptr);
  EXPECT_NE(archive.find("data/1"), nullptr);
  EXPECT_EQ(archive.find("data/2"), nullptr);
  EXPECT_EQ(write_bytes_item(value), bytes);
}

TEST(BytesItem, refuses_what_torch_cannot_have_written) {
  Bytes first_byte_flipped = write_bytes_item(sample());
  first_byte_flipped[0] ^= std::byte{1};
  for (const Bytes& bytes :
       {Bytes{}, to_bytes("x"), to_bytes("{\"hello\": 1}"), to_bytes("\x80\x02K\x05."),
        to_bytes("PK\5\6"), to_bytes(std::string(60, 'a')), Bytes(1261), first_byte_flipped}) {
    const Error error = error_of([&] { read_bytes_item(bytes, {.file = "f", .offset = 7000}); });
    EXPECT_EQ(error.code(), Code::kTornFile) << as_text(bytes).substr(0, 20);
    EXPECT_EQ(error.place().file, "f");
    EXPECT_EQ(error.place().offset, 7000U);
  }
}

TEST(BytesItem, keeps_the_stream_of_torch_before_1_6_as_opaque) {
  const std::string_view legacy(
      "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e..........", 25);
  EXPECT_NE(read_bytes_item(as_bytes(legacy)).opaque_because.find("1.6"), std::string::npos);
}

TEST(BytesItem, keeps_compressed_records_as_opaque) {
  SpoiledItem item{write_bytes_item(sample())};
  item.put(item.entry(0) + 10, short{8});
  item.put(item.local(0) + 8, short{8});
  const BytesItem read = read_bytes_item(item.bytes);
  EXPECT_FALSE(read.value.has_value());
  EXPECT_NE(read.opaque_because.find("compressed"), std::string::npos);
}

// Returns an item whose data.pkl is this pickle.
Bytes item_with_pickle(std::string_view pickle) {
  ArchiveWriter writer("archive");
  writer.add("data.pkl", as_bytes(pickle));
  writer.add("version", as_bytes("3\n"));
  writer.finish();
  return writer.take();
}

TEST(BytesItem, of_a_version_that_nobody_has_written_is_not_read) {
  const auto of_version = [](std::string_view version) {
    ArchiveWriter writer("archive");
    writer.add("data.pkl", test::pickle("K\7"));
    writer.add("version", as_bytes(version));
    writer.finish();
    return read_bytes_item(writer.take());
  };
  for (const std::string_view version : {"1\n", "3\n", "10\n"}) {
    EXPECT_TRUE(of_version(version).value.has_value()) << version;
  }
  for (const std::string_view version : {"0\n", "11\n"}) {
    const BytesItem item = of_version(version);
    EXPECT_FALSE(item.value.has_value()) << version;
    EXPECT_NE(item.opaque_because.find("version"), std::string::npos) << item.opaque_because;
  }
  EXPECT_THROW(of_version("x\n"), Error);
}

/// Makes a list of `tensors` tensors with one element each. The tensors use the storages "0" and
/// "1" in turn. Each storage has `elements` floats.
Bytes item_of_shared_storages(int tensors, std::uint32_t elements) {
  const auto tensor = [&](const std::string& key) {
    return test::global("torch._utils", "_rebuild_tensor_v2") + "((" + test::text("storage") +
           test::global("torch", "FloatStorage") + test::text(key) + test::text("cpu") + "J" +
           test::le(elements) + "tQK\0K\1\x85K\1\x85\x89"s +
           test::global("collections", "OrderedDict") + ")RtR";
  };
  std::string list = "](" + tensor("0") + "q\1" + tensor("1") + "q\2";
  for (int i = 2; i < tensors; ++i) list += i % 2 == 0 ? "h\1" : "h\2";
  ArchiveWriter writer("archive");
  writer.add("data.pkl", test::pickle(list + "e"));
  writer.add("data/0", Bytes(4U * elements));
  writer.add("data/1", Bytes(4U * elements));
  writer.add("version", as_bytes("3\n"));
  writer.finish();
  return writer.take();
}

TEST(BytesItem, reads_a_storage_once_however_many_tensors_share_it) {
  const Bytes bytes = item_of_shared_storages(2000, 20000);
  test::CountingSource source(bytes);
  const BytesItem item = read_bytes_item(source);
  ASSERT_TRUE(item.value.has_value()) << item.opaque_because;
  ASSERT_EQ(item.value->as<List>()->size(), 2000U);
  EXPECT_EQ(item.value->as<List>()->back(), Value(TensorValue{DType::kFloat32, {1}, Bytes(4)}));
  EXPECT_LT(source.bytes_read, 2 * bytes.size());
}

/// Makes an item with one tensor. Its storage has `elements` floats 0, 1, 2, ..., and `view` gives
/// its offset, sizes and strides.
BytesItem item_of_view(std::uint32_t elements, const std::string& view) {
  Bytes storage;
  for (std::uint32_t i = 0; i < elements; ++i) append_le(storage, static_cast<float>(i));
  ArchiveWriter writer("archive");
  writer.add("data.pkl",
             test::pickle(test::global("torch._utils", "_rebuild_tensor_v2") + "((" +
                          test::text("storage") + test::global("torch", "FloatStorage") +
                          test::text("0") + test::text("cpu") + "J" + test::le(elements) + "tQ" +
                          view + "\x89" + test::global("collections", "OrderedDict") + ")RtR"));
  writer.add("data/0", storage);
  writer.add("version", as_bytes("3\n"));
  writer.finish();
  return read_bytes_item(writer.take());
}

TEST(BytesItem, reads_tensors_whose_elements_share_a_place) {
  const auto floats = [](const BytesItem& item) {
    std::vector<float> values;
    if (!item.value || item.value->as<TensorValue>() == nullptr) return values;
    const Bytes& data = item.value->as<TensorValue>()->data;
    values.resize(data.size() / sizeof(float));
    std::memcpy(values.data(), data.data(), data.size());
    return values;
  };
  // The views are t[1:2].expand(4), then as_strided((2, 3), (1, 1)), then expand(2, 3) of a column.
  EXPECT_EQ(floats(item_of_view(3, "K\1K\4\x85K\0\x85"s)), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(floats(item_of_view(4, "K\0K\2K\3\x86K\1K\1\x86"s)),
            (std::vector<float>{0, 1, 2, 1, 2, 3}));
  EXPECT_EQ(floats(item_of_view(2, "K\0K\2K\3\x86K\1K\0\x86"s)),
            (std::vector<float>{0, 0, 0, 1, 1, 1}));
}

TEST(BytesItem, keeps_an_expanded_tensor_of_very_many_elements_as_bytes) {
  for (const std::string& view :
       {"K\0J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86K\0K\0\x86"s, "K\0J\xff\xff\xff\x7f\x85K\0\x85"s,
        "K\0J\0\0\x20\0\x85K\0\x85"s}) {
    const BytesItem item = item_of_view(1, view);
    EXPECT_FALSE(item.value.has_value());
    EXPECT_NE(item.opaque_because.find("larger"), std::string::npos) << item.opaque_because;
  }
}

TEST(BytesItem, takes_an_expanded_tensor_of_4_times_its_storage_plus_1_mib) {
  const auto floats_in = [](std::uint32_t elements) {
    const BytesItem item = item_of_view(1, "K\0J"s + test::le(elements) + "\x85K\0\x85"s);
    if (!item.value) return std::size_t{0};
    return item.value->as<TensorValue>()->data.size() / sizeof(float);
  };
  constexpr std::uint32_t kMost = (1U << 18U) + 4;
  EXPECT_EQ(floats_in(kMost), kMost);
  EXPECT_EQ(floats_in(kMost + 1), 0U);
}

TEST(BytesItem, reads_a_call_of_bytes_without_arguments_as_no_bytes) {
  for (const std::string module : {"builtins", "__builtin__"}) {
    const PickledValue read = test::decode(test::global(module, "bytes") + ")R");
    EXPECT_FALSE(read.opaque) << read.reason;
    EXPECT_EQ(read.value, Value(Bytes{})) << read.value;
  }
}

/// An item with one record of zeros, which is larger than the reader's limit for content in memory.
class LargeSource final : public ItemSource {
 public:
  LargeSource() : ItemSource({}) {
    ArchiveWriter out("archive");
    out.begin("data.pkl", kBytesItemMax + 1);
    head_ = out.take();
    out.end(0);
    out.add("version", as_bytes("3\n"));
    out.finish();
    tail_ = out.take();
  }
  std::uint64_t size() const override { return head_.size() + kBytesItemMax + 1 + tail_.size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    const std::uint64_t tail = size() - tail_.size();
    if (offset >= head_.size() && offset + out.size() <= tail) {
      std::ranges::fill(out, std::byte{0});
      return;
    }
    for (std::byte& byte : out) {
      byte = offset < head_.size() ? head_[offset]
             : offset < tail       ? std::byte{0}
                                   : tail_[offset - tail];
      ++offset;
    }
  }

 private:
  Bytes head_;
  Bytes tail_;
};

TEST(BytesItem, keeps_a_pickle_beyond_2_GiB_as_bytes) {
  LargeSource source;
  const BytesItem item = read_bytes_item(source);
  EXPECT_FALSE(item.value.has_value());
  EXPECT_NE(item.opaque_because.find("2147483649 bytes"), std::string::npos) << item.opaque_because;
}

TEST(BytesItem, lists_unlisted_names_and_keeps_the_item_opaque) {
  const BytesItem item =
      read_bytes_item(item_with_pickle("\x80\x02"
                                       "csome.module\nthing\n."));
  EXPECT_FALSE(item.value.has_value());
  EXPECT_EQ(item.unlisted_names, (std::vector<std::string>{"some.module.thing"}));
  EXPECT_NE(item.opaque_because, "");
}

TEST(BytesItem, refuses_names_of_the_system_and_broken_pickles) {
  const Bytes hostile = item_with_pickle(
      "\x80\x02"
      "cos\nsystem\nX\x04\0\0\0trueR.");
  EXPECT_EQ(error_of([&] { read_bytes_item(hostile); }).code(), Code::kRefusedName);
  const Bytes broken = item_with_pickle("\x80\x02K");
  const Error error = error_of([&] { read_bytes_item(broken, {.file = "f", .offset = 7000}); });
  EXPECT_EQ(error.code(), Code::kTornFile);
  EXPECT_EQ(error.place().file, "f");
  EXPECT_GE(error.place().offset.value_or(0), 7000U + 64U);
}

TEST(BytesItem, tells_which_records_differ_from_their_checksums) {
  SpoiledItem item{write_bytes_item(sample())};
  item.put_text(item.place_of("abcd"), "abcx");
  const BytesItem read = read_bytes_item(item.bytes);
  ASSERT_TRUE(read.value.has_value());
  EXPECT_EQ(read.checksum_mismatches, (std::vector<std::string>{"data/0"}));
}

TEST(BytesItem, refuses_every_truncation) {
  const Bytes item = write_bytes_item(sample());
  for (std::size_t size = 4; size < item.size(); ++size) {
    const Error error = error_of([&] { read_bytes_item(ByteSpan(item).first(size)); });
    EXPECT_EQ(error.code(), Code::kTornFile) << size << ": " << error.what();
  }
}

TEST(BytesItem, lets_no_changed_byte_pass_in_silence) {
  const Value value = Dict{{"lr", 0.25}, {"t", TensorValue{DType::kInt16, {2}, to_bytes("abcd")}}};
  const Bytes whole = write_bytes_item(value);
  std::size_t refused = 0;
  std::size_t told = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes item = whole;
      item[at] ^= static_cast<std::byte>(1U << bit);
      BytesItem read;
      try {
        read = read_bytes_item(item);
      } catch (const Error&) {
        ++refused;
        continue;
      }
      if (!read.value || !read.checksum_mismatches.empty()) {
        ++told;
        continue;
      }
      ASSERT_EQ(*read.value, value) << at << " bit " << bit;
    }
  }
  EXPECT_GT(refused, 2000U);
  EXPECT_GT(told, 500U);
}

TEST(BytesItem, reads_every_object_of_every_real_checkpoint) {
  std::size_t objects = 0;
  for (const std::string& path : test::payload_files()) {
    const Bytes payload = test::test_file(path);
    for (const ByteSpan bytes : test::items_in(payload)) {
      const BytesItem item = read_bytes_item(bytes);
      // All tensor items must have values, too, except lazily conjugated or negated ones.
      EXPECT_TRUE(item.value.has_value() ||
                  item.opaque_because.find("resolve it") != std::string::npos)
          << path << ": " << item.opaque_because;
      EXPECT_TRUE(item.checksum_mismatches.empty()) << path;
      if (item.value && item.value->as<TensorValue>() == nullptr) ++objects;
    }
  }
  EXPECT_GT(objects, 80U);
}

TEST(BytesItem, reads_and_rewrites_every_kind_of_object_from_torch) {
  std::size_t values = 0;
  std::vector<std::string> opaque;
  const std::filesystem::path root = REPRISE_TEST_DATA;
  for (const auto& entry : std::filesystem::directory_iterator(root / "torch_2.15.0/objects")) {
    if (entry.path().extension() != ".pt") continue;
    const std::string name = entry.path().stem().string();
    const BytesItem item = read_bytes_item(test::test_file("torch_2.15.0/objects/" + name + ".pt"));
    if (!item.value) {
      EXPECT_NE(item.opaque_because, "") << name;
      opaque.push_back(name);
      continue;
    }
    ++values;
    const BytesItem again = read_bytes_item(write_bytes_item(*item.value));
    ASSERT_TRUE(again.value.has_value()) << name << ": " << again.opaque_because;
    EXPECT_EQ(*again.value, *item.value) << name;
  }
  EXPECT_GT(values, 35U);
  std::ranges::sort(opaque);
  EXPECT_EQ(opaque, (std::vector<std::string>{"foreign_class", "legacy_stream"}));
}

const std::string kSpellings = "torch_2.15.0/spellings";

std::vector<std::string> spelled(const char* verdict) {
  const Bytes text = test::test_file(kSpellings + ".expected.json");
  return nlohmann::json::parse(as_text(text)).at(verdict).get<std::vector<std::string>>();
}

Value side_of(const std::string& pair, char side) {
  const BytesItem item =
      read_bytes_item(test::test_file(kSpellings + "/" + pair + "." + side + ".pt"));
  EXPECT_TRUE(item.value.has_value()) << pair << side << ": " << item.opaque_because;
  return item.value.value_or(NoneType{});
}

TEST(BytesItem, objects_that_torch_saved_are_equal_however_they_are_spelled) {
  const auto pairs = spelled("same");
  EXPECT_GE(pairs.size(), 13U);
  for (const auto& pair : pairs) {
    const Value a = side_of(pair, 'a');
    const Value b = side_of(pair, 'b');
    EXPECT_EQ(a, b) << pair;
    EXPECT_EQ(hash_of(a), hash_of(b)) << pair;
    EXPECT_TRUE(differences(a, b, 1).empty()) << pair;
  }
}

TEST(BytesItem, objects_from_torch_differ_by_type_order_bits_and_gradient) {
  const auto pairs = spelled("different");
  EXPECT_GE(pairs.size(), 17U);
  for (const auto& pair : pairs) {
    const Value a = side_of(pair, 'a');
    const Value b = side_of(pair, 'b');
    EXPECT_FALSE(a == b) << pair;
    EXPECT_NE(hash_of(a), hash_of(b)) << pair;
    EXPECT_FALSE(differences(a, b, 1).empty()) << pair;
  }
}

TEST(BytesItem, parameters_and_tensors_with_attributes_keep_their_type) {
  for (const char* verdict : {"same", "different"}) {
    for (const auto& pair : spelled(verdict)) {
      for (const char side : {'a', 'b'}) {
        const Value value = side_of(pair, side);
        const BytesItem again = read_bytes_item(write_bytes_item(value));
        ASSERT_TRUE(again.value.has_value()) << pair << side << ": " << again.opaque_because;
        EXPECT_EQ(*again.value, value) << pair << side;
      }
    }
  }
}

TEST(CommonState, reads_what_it_writes_as_file_and_as_object) {
  const Dict state = sample();
  const BytesItem file = read_common_file(write_common_file(state));
  ASSERT_TRUE(file.value.has_value());
  EXPECT_EQ(*file.value, Value(state));
  EXPECT_EQ(file.prefix, "common");
  const BytesItem object = read_common_object(write_bytes_item(List{Value(state)}));
  ASSERT_TRUE(object.value.has_value());
  EXPECT_EQ(*object.value, Value(state));
  EXPECT_EQ(object.prefix, "archive");
}

TEST(CommonState, refuses_what_is_no_dict) {
  const auto file = [](const Value& value) {
    return error_of([&] { read_common_file(write_bytes_item(value)); }).code();
  };
  const auto object = [](const Value& value) {
    return error_of([&] { read_common_object(write_bytes_item(value)); }).code();
  };
  EXPECT_EQ(file(List{sample()}), Code::kTornFile);
  EXPECT_EQ(file(5), Code::kTornFile);
  EXPECT_EQ(object(sample()), Code::kTornFile);
  EXPECT_EQ(object(List{}), Code::kTornFile);
  EXPECT_EQ(object(List{sample(), sample()}), Code::kTornFile);
  EXPECT_EQ(object(List(1, Value(List{}))), Code::kTornFile);
}

}  // namespace
}  // namespace reprise
