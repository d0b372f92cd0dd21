#include "core/format/pickle/pickle_writer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <filesystem>
#include <map>

#include "core/format/pickle/pickle_reader.hpp"
#include "core/format/zip/archive.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/core/format/items.hpp"
#include "tests/core/format/pickles.hpp"

namespace reprise::test {
namespace {

class Storages final : public StorageSource {
 public:
  explicit Storages(std::vector<ByteSpan> storages) : storages_(std::move(storages)) {}
  std::optional<ByteSpan> storage(std::string_view key) override {
    const auto index = static_cast<std::size_t>(std::stoul(std::string(key)));
    if (index >= storages_.size()) return std::nullopt;
    return storages_[index];
  }

 private:
  std::vector<ByteSpan> storages_;
};

Value written_and_read(const Value& value) {
  std::vector<ByteSpan> storages;
  const Bytes pickle = encode_value(value, &storages);
  Storages source(storages);
  PickledValue read = decode_value(pickle, {"round.pkl"}, &source);
  EXPECT_FALSE(read.opaque) << read.reason;
  return std::move(read.value);
}

Bytes record_of(ByteSpan item, std::string_view name) {
  SpanSource source(item);
  Archive archive(source);
  return archive.read(archive.at(name), 1U << 20U);
}

Dims drawn_shape() {
  Dims shape;
  const int rank = *rc::gen::inRange(0, 5);
  for (int d = 0; d < rank; ++d) shape.push_back(*rc::gen::inRange(0, 4));
  return shape;
}

Bytes drawn_bytes(std::size_t size) {
  Bytes bytes(size);
  for (auto& b : bytes) b = static_cast<std::byte>(*rc::gen::inRange(0, 256));
  return bytes;
}

/// Generates text of arbitrary code points. Some texts are long.
std::string drawn_text() {
  std::string text;
  const int length = *rc::gen::inRange(0, 90);
  for (int i = 0; i < length; ++i) {
    text += *rc::gen::element<std::string>("a", "Z", "\n", "\xc3\xa9", "\xe2\x82\xac",
                                           "\xf0\x9f\x99\x82", std::string(1, '\0'));
  }
  return text;
}

Value drawn_value(int depth);

List drawn_list(int depth) {
  List list;
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) list.push_back(drawn_value(depth - 1));
  return list;
}

Dict drawn_dict(int depth) {
  Dict dict;
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) {
    Value key = i % 2 == 0 ? Value(std::int64_t{i} << 30) : Value("key" + std::to_string(i));
    dict.emplace_back(std::move(key), drawn_value(depth - 1));
  }
  return dict;
}

Value drawn_leaf() {
  switch (*rc::gen::inRange(0, 8)) {
    case 0:
      return NoneType{};
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
    case 4:
      return drawn_text();
    case 5:
      return drawn_bytes(static_cast<std::size_t>(*rc::gen::inRange(0, 300)));
    case 6: {
      TensorValue tensor;
      const auto all = all_dtypes();
      tensor.dtype =
          all[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(all.size())))];
      tensor.shape = drawn_shape();
      tensor.data =
          drawn_bytes(static_cast<std::size_t>(volume(tensor.shape)) * size_of(tensor.dtype));
      return tensor;
    }
    default: {
      BigInt big{drawn_bytes(20)};
      big.digits.back() = std::byte{0x41};  // so that the number has no shorter form
      return big;
    }
  }
}

Value drawn_value(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 0 ? 12 : 5);
  switch (kind) {
    case 5:
      return drawn_list(depth);
    case 6:
      return Tuple{drawn_list(depth)};
    case 7:
      return drawn_dict(depth);
    case 8:
      return Set{{1, "two", Tuple{{3}}}, *rc::gen::arbitrary<bool>()};
    case 9:
      return Name{"torch", "bfloat16"};
    case 10: {
      Object object{{"argparse", "Namespace"}, Object::How::kNew};
      object.state = {drawn_dict(depth)};
      return object;
    }
    case 11: {
      Object object{{"collections", "defaultdict"}, Object::How::kCall};
      object.args = {Name{"builtins", "list"}};
      object.dict_items = drawn_dict(depth);
      return object;
    }
    default:
      return drawn_leaf();
  }
}

RC_GTEST_PROP(PickleWriter, what_is_written_is_read_again, ()) {
  const Value value = drawn_value(4);
  RC_ASSERT(written_and_read(value) == value);
}

TEST(PickleWriter, integers_take_the_form_that_python_gives_them) {
  const std::vector<std::pair<std::int64_t, std::string>> rows{
      {0, "K\0"s},
      {255, "K\xff"},
      {256, "M\0\1"s},
      {65535, "M\xff\xff"},
      {65536, "J\0\0\1\0"s},
      {-1, "J\xff\xff\xff\xff"},
      {-2147483648, "J\0\0\0\x80"s},
      {2147483647, "J\xff\xff\xff\x7f"},
      {2147483648, "\x8a\5\0\0\0\x80\0"s},
      {-2147483649, "\x8a\5\xff\xff\xff\x7f\xff"},
      {INT64_MAX, "\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f"},
      {INT64_MIN, "\x8a\x8\0\0\0\0\0\0\0\x80"s}};
  for (const auto& [value, body] : rows) {
    EXPECT_EQ(encode_value(value, nullptr), pickle(body)) << value;
    EXPECT_EQ(decode(body).value, Value(value)) << value;
  }
}

// Python drops bytes that only repeat the sign.
TEST(PickleReader, an_integer_of_more_bytes_than_it_needs_is_the_same_integer) {
  const std::string behind = "N0N0";  // pushes None and pops it, twice
  const auto padded = [&](char digit, char sign, std::size_t size) {
    std::string digits(size, sign);
    digits[0] = digit;
    return decode("\x8a"s + static_cast<char>(size) + digits + behind).value;
  };
  for (std::size_t size = 1; size < 12; ++size) {
    EXPECT_EQ(padded('\5', '\0', size), Value(5)) << size;
    EXPECT_EQ(padded('\xfb', '\xff', size), Value(-5)) << size;
  }
  const Value above = decode("\x8a\x9\0\0\0\0\0\0\0\x80\0"s + behind).value;
  ASSERT_NE(above.as<BigInt>(), nullptr);
  EXPECT_EQ(above.as<BigInt>()->digits.size(), 9U);
  const Value below = decode("\x8a\x9\xff\xff\xff\xff\xff\xff\xff\x7f\xff"s + behind).value;
  ASSERT_NE(below.as<BigInt>(), nullptr);
  EXPECT_EQ(below.as<BigInt>()->digits.size(), 9U);
}

TEST(PickleWriter, an_int_is_torchs_bytes) {
  const Bytes item = test_file("vectors/b_int.bin");
  EXPECT_EQ(encode_value(5, nullptr), record_of(item, "data.pkl"));
}

// For contiguous tensors the writer must produce the same bytes as torch.save of torch 2.15.
TEST(PickleWriter, tensor_pickles_are_torchs_bytes) {
  std::map<DType, int> compared;
  for (const std::string& path : payload_files()) {
    const Bytes payload = test_file(path);
    for (const ByteSpan item : items_in(payload)) {
      const Bytes real = record_of(item, "data.pkl");
      if (as_text(real).find("_rebuild_tensor_v") > 20) continue;  // no tensor at the item's root
      TensorDescription tensor;
      try {
        tensor = decode_tensor(real, {path});
      } catch (const Error& error) {
        const bool expected = error.message().find("flag") != std::string::npos ||
                              error.message().find("holds no tensor") != std::string::npos;
        EXPECT_TRUE(expected) << error.what();
        continue;
      }
      const bool plain = !tensor.requires_grad && !tensor.flips.any() &&
                         tensor.strides == contiguous_strides(tensor.shape) &&
                         tensor.storage_elements == volume(tensor.shape);
      if (!plain) continue;
      EXPECT_EQ(as_text(encode_tensor_pickle(tensor.dtype, tensor.shape)), as_text(real)) << path;
      ++compared[tensor.dtype];
    }
  }
  EXPECT_GE(compared.size(), 20U);
}

TEST(PickleReader, tensor_items_of_torch_1_13_say_what_they_hold) {
  for (const std::string name :
       {"t_f32", "t_0d", "t_T", "t_bf16_req", "t_bool", "t_c64", "t_empty", "t_view", "t_param"}) {
    SCOPED_TRACE(name);
    const Bytes item = test_file("vectors/" + name + ".bin");
    const TensorDescription tensor = decode_tensor(record_of(item, "data.pkl"), {name});
    const Bytes storage = record_of(item, "data/" + tensor.storage_key);
    EXPECT_EQ(storage.size(), static_cast<std::size_t>(tensor.storage_bytes()));
    EXPECT_EQ(gather(tensor, storage, {name}).size(),
              static_cast<std::size_t>(volume(tensor.shape)) * size_of(tensor.dtype));
    EXPECT_EQ(tensor.strides == contiguous_strides(tensor.shape),
              name != std::string("t_T") && name != std::string("t_view"))
        << tensor.shape << tensor.strides;
    EXPECT_EQ(tensor.dtype == DType::kBFloat16, name == std::string("t_bf16_req"));
  }
}

/// Makes the data.pkl of a float32 tensor, opcode by opcode.
Bytes tensor_pickle(const std::string& elements, const std::string& rest) {
  return pickle(global("torch._utils", "_rebuild_tensor_v2") + "((" + text("storage") +
                global("torch", "FloatStorage") + text("0") + text("cpu") + elements + "tQ" + rest +
                "\x89" + global("collections", "OrderedDict") + ")RtR");
}

TEST(PickleReader, views_are_gathered_and_must_stay_in_their_storage) {
  Bytes storage;
  for (int i = 0; i < 6; ++i) append_le(storage, static_cast<float>(i));
  const Bytes transposed = tensor_pickle("K\6"s, "K\0K\3K\2\x86K\1K\3\x86"s);
  const Bytes data = gather(decode_tensor(transposed, {"t"}), storage, {"t"});
  std::vector<float> values(6);
  std::memcpy(values.data(), data.data(), data.size());
  EXPECT_EQ(values, (std::vector<float>{0, 3, 1, 4, 2, 5}));
  const auto code = [](const std::string& elements, const std::string& rest) {
    return error_of([&] { decode_tensor(tensor_pickle(elements, rest), {"t"}); }).code();
  };
  EXPECT_EQ(code("K\6"s, "K\1K\6\x85K\1\x85"s), Code::kExtentMismatch);
  EXPECT_EQ(code("K\6"s, "K\1K\6\x85K\1\x85"s), Code::kExtentMismatch);
  EXPECT_EQ(code("K\6"s, "K\0K\2\x85J\xff\xff\xff\xff\x85"s), Code::kTornFile);
  EXPECT_EQ(code("J\xff\xff\xff\xff", "K\0))"s), Code::kTornFile);
  EXPECT_EQ(code("K\6"s, "K\0K\2\x85)"s), Code::kTornFile);
  const auto times = [](int count, const std::string& text) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  EXPECT_EQ(code("K\6"s, "K\0("s + times(9, "K\1"s) + "t)"), Code::kTornFile);
  const std::string ones = times(7, "K\1"s);
  // 6 elements as [2, 3] in dimensions 8 and 9, transposed; and 65 dimensions.
  EXPECT_EQ(code("K\6"s, "K\0("s + ones + "K\2K\3t(" + ones + "K\1K\2t"), Code::kUnsupported);
  // [1, 3, 5] that shares elements: 5 that are one, of each of 3.
  EXPECT_EQ(code("K\x0f"s, "K\0("s + ones + "K\3K\5t(" + ones + "K\1K\0t"s), Code::kUnsupported);
  EXPECT_EQ(code("K\6"s, "K\0("s + times(65, "K\1"s) + "t(" + times(65, "K\1"s) + "t"),
            Code::kUnsupported);
  EXPECT_EQ(code("\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f"s, "K\0))"s), Code::kLimit);
  const TensorDescription claim = decode_tensor(tensor_pickle("K\7"s, "K\0K\6\x85K\1\x85"s), {"t"});
  EXPECT_EQ(error_of([&] { gather(claim, storage, {"t"}); }).code(), Code::kExtentMismatch);
}

TEST(PickleReader, the_last_of_more_than_eight_dimensions_are_folded) {
  const Dims shape = {2, 1, 1, 1, 1, 1, 1, 12};
  for (const FoldedExtents& folded : {FoldedExtents{3, 4}, {12, 1}, {1, 12, 1}, {3, 1, 2, 2}}) {
    const Bytes pickle = encode_tensor_pickle(DType::kFloat32, shape, folded);
    const TensorDescription read = decode_tensor(pickle, {"t"});
    EXPECT_EQ(read.shape, shape);
    EXPECT_EQ(read.folded, folded);
    EXPECT_EQ(read.strides, contiguous_strides(shape));
  }
  const Bytes none = encode_tensor_pickle(DType::kFloat32, {0, 1, 1, 1, 1, 1, 1, 0}, {0, 3});
  EXPECT_EQ(decode_tensor(none, {"t"}).folded, (FoldedExtents{0, 3}));
}

// Reads every bytes item and every common.pt of the real checkpoints, writes it, and reads it
// again.
TEST(PickleReader, real_values_survive_being_written) {
  int values = 0;
  const auto check = [&values](ByteSpan item, const std::string& path) {
    SpanSource source(item);
    Archive archive(source);
    std::map<std::string, Bytes> records;
    for (const Record& record : archive.records()) {
      records[record.name] = archive.read(record, 1U << 24U);
    }
    std::vector<ByteSpan> storages;
    for (int i = 0; records.contains("data/" + std::to_string(i)); ++i) {
      storages.emplace_back(records["data/" + std::to_string(i)]);
    }
    Storages known(storages);
    PickledValue read;
    try {
      read = decode_value(records.at("data.pkl"), {path}, &known);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
      return;
    }
    EXPECT_FALSE(read.opaque) << path << ": " << read.reason;
    if (read.opaque) return;
    EXPECT_EQ(written_and_read(read.value), read.value) << path;
    ++values;
  };
  for (const std::string& path : payload_files()) {
    if (path.find("plain_odd") != std::string::npos) continue;  // holds lazy tensors
    const Bytes payload = test_file(path);
    for (const ByteSpan item : items_in(payload)) check(item, path);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(REPRISE_TEST_DATA)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".pt" || stem == "legacy_stream" || stem == "foreign_class") {
      continue;
    }
    const std::string path = std::filesystem::relative(entry.path(), REPRISE_TEST_DATA).string();
    // Others are checkpoints by themselves, not items of one.
    if (!path.starts_with("torch_2") && !path.starts_with("mcore_")) continue;
    check(test_file(path), path);
  }
  EXPECT_GT(values, 100);
}

TEST(PickleReader, a_class_of_somebody_else_makes_an_item_opaque) {
  const Bytes item = test_file("torch_2.15.0/objects/foreign_class.pt");
  const PickledValue read = decode_value(record_of(item, "data.pkl"), {"foreign"}, nullptr);
  EXPECT_TRUE(read.opaque);
  EXPECT_FALSE(read.unlisted_names.empty());
}

TEST(PickleReader, the_rerun_machines_objects_are_interpreted) {
  const Bytes item = test_file("torch_2.15.0/objects/rerun_objects.pt");
  const PickledValue read = decode_value(record_of(item, "data.pkl"), {"rerun"}, nullptr);
  EXPECT_FALSE(read.opaque) << read.reason;
  const std::string shown = to_string(read.value, 100000);
  EXPECT_NE(shown.find("Caller"), std::string::npos) << shown;
  EXPECT_NE(shown.find("RerunMode"), std::string::npos) << shown;
}

TEST(PickleWriter, refuses_text_that_its_reader_would_not_take) {
  for (const std::string& text : {std::string("a\xff"), std::string(100, '\x80')}) {
    const auto error = contracts::error_of([&] { encode_value(Dict{{"name", text}}, nullptr); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kUnsupported);
  }
  EXPECT_EQ(written_and_read("\xed\xa0\x80"), Value("\xed\xa0\x80"));  // a surrogate
}

}  // namespace
}  // namespace reprise::test
