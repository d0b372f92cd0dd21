#include "core/format/tensor_item.hpp"

#include <gtest/gtest.h>
#include <zip.h>

#include <algorithm>
#include <functional>

#include "core/format/zip/archive.hpp"
#include "core/format/zip/crc32.hpp"
#include "tests/core/format/items.hpp"

namespace reprise {
namespace {

using test::error_of;
using test::SpoiledItem;

constexpr std::size_t kIdentityDigits = 40;

Bytes real_item() { return test::test_file("torch_2.15.0/file_per_item/__0_0.distcp"); }

TensorItem read_item(ByteSpan item) {
  SpanSource source(item, {.file = "payload", .offset = 5000});
  return read_tensor_item(source);
}

// True if all records have correct checksums, including records that the tensor does not need.
// False if a record can't be read.
bool has_its_checksums(ByteSpan item) try {
  SpanSource source(item);
  Archive archive(source);
  return std::ranges::all_of(archive.records(), [&archive](const Record& record) {
    return archive.checksum_matches(record);
  });
} catch (const Error&) {
  return false;
}

// Makes an item of a row-major tensor with these elements.
Bytes item_of(DType dtype, const Dims& size, ByteSpan elements) {
  const TensorItemLayout layout(dtype, size);
  Bytes item = layout.head();
  append(item, elements);
  append(item, layout.tail(crc32_of(elements)));
  return item;
}

Bytes counting_bytes(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t n = 0; n < count; ++n) bytes[n] = static_cast<std::byte>(n * 7 + 1);
  return bytes;
}

// Returns the elements in row-major order, by the formula that defines strides and offset.
Bytes elements_of(const TensorItem& item, ByteSpan bytes) {
  const std::size_t element = size_of(item.dtype);
  Bytes out;
  for (std::int64_t n = 0; n < volume(item.size); ++n) {
    const Dims index = index_at(n, item.size);
    std::int64_t place = item.storage_offset;
    for (std::size_t d = 0; d < index.size(); ++d) place += index[d] * item.strides[d];
    append(out,
           bytes.subspan(item.data_offset + static_cast<std::uint64_t>(place) * element, element));
  }
  return out;
}

TEST(TensorItem, reads_a_torch_2_15_item) {
  const Bytes bytes = real_item();
  const TensorItem item = read_item(bytes);
  EXPECT_EQ(item.dtype, DType::kFloat32);
  EXPECT_EQ(item.size, (Dims{3, 3}));
  EXPECT_EQ(item.strides, (Dims{3, 1}));
  EXPECT_EQ(item.storage_offset, 0);
  EXPECT_EQ(item.data_bytes, 36U);
  EXPECT_EQ(item.data_offset % 64, 0U);
  EXPECT_TRUE(item.contiguous());
  EXPECT_FALSE(item.byteswap);
  EXPECT_TRUE(has_its_checksums(bytes));
  EXPECT_EQ(crc32_of(ByteSpan(bytes).subspan(item.data_offset, item.data_bytes)), item.crc);
}

struct OldItem {
  const char* file;
  DType dtype;
  Dims size;
  Dims strides;
};

TEST(TensorItem, reads_the_items_of_torch_1_13) {
  const OldItem rows[] = {
      {"vectors/t_f32.bin", DType::kFloat32, {2, 3}, {3, 1}},
      {"vectors/t_bool.bin", DType::kBool, {2}, {1}},
      {"vectors/t_c64.bin", DType::kComplex64, {2}, {1}},
      {"vectors/t_0d.bin", DType::kInt64, {}, {}},
      {"vectors/t_empty.bin", DType::kFloat32, {0, 7}, {7, 1}},
      {"vectors/t_T.bin", DType::kFloat32, {6, 4}, {1, 6}},
  };
  for (const OldItem& row : rows) {
    const TensorItem item = read_item(test::test_file(row.file));
    EXPECT_EQ(item.dtype, row.dtype) << row.file;
    EXPECT_EQ(item.size, row.size) << row.file;
    EXPECT_EQ(item.strides, row.strides) << row.file;
  }
}

TEST(TensorItem, knows_row_major_from_other_orders) {
  TensorItem item{.size = {2, 3}, .strides = {3, 1}};
  EXPECT_TRUE(item.contiguous());
  item.strides = {1, 2};
  EXPECT_FALSE(item.contiguous());
  item.strides = {4, 1};
  EXPECT_FALSE(item.contiguous());
  item = {.size = {1, 3}, .strides = {99, 1}};
  EXPECT_TRUE(item.contiguous());
  item.storage_offset = 1;
  EXPECT_FALSE(item.contiguous());
  EXPECT_TRUE((TensorItem{.size = {}, .strides = {}}).contiguous());
}

// Compares the item with the one that PyTorch wrote. Ignores the bytes that depend on the
// serialization id.
void expect_same_but_identity(const Bytes& written, ByteSpan real, const std::string& what) {
  ASSERT_EQ(written.size(), real.size()) << what;
  const std::string_view name = ".data/serialization_id";
  const std::size_t header = as_text(real).find(name);
  ASSERT_NE(header, std::string_view::npos);
  const std::size_t extra = load_le<std::uint16_t>(real.subspan(header - 10));
  // Bytes that depend on the serialization id: the id's digits, and the checksum of these digits in
  // the descriptor and in the directory.
  const std::size_t content = header + name.size() + extra;
  const std::size_t entry = as_text(real).find(name, content) - std::size_t{46 + 8};
  for (std::size_t n = 0; n < real.size(); ++n) {
    const bool digits = n >= content && n < content + kIdentityDigits;
    const bool crc = n >= content + kIdentityDigits + 4 && n < content + kIdentityDigits + 8;
    const bool central = n >= entry + 16 && n < entry + 20;
    if (digits || crc || central) continue;
    ASSERT_EQ(written[n], real[n]) << what << ", byte " << n;
  }
}

TEST(TensorItem, matches_torch_2_15_to_the_byte_except_the_identity) {
  std::size_t compared = 0;
  for (const std::string& path : test::payload_files()) {
    // Files in other folders have older records or were written by hand.
    if (!path.starts_with("torch_2.15.0/") && !path.starts_with("mcore_0.16.1")) continue;
    const Bytes payload = test::test_file(path);
    for (const ByteSpan bytes : test::items_in(payload)) {
      TensorItem item;
      try {
        item = read_item(bytes);
      } catch (const Error&) {
        continue;  // this item is an object, not a tensor
      }
      if (item.flips.any()) continue;  // the writer never writes lazy views
      if (item.strides != contiguous_strides(item.size)) continue;
      const ByteSpan elements = bytes.subspan(item.data_offset, item.data_bytes);
      expect_same_but_identity(item_of(item.dtype, item.size, elements), bytes, path);
      ++compared;
    }
  }
  EXPECT_GT(compared, 200U);
}

TEST(TensorItem, of_every_dtype_and_shape_reads_back) {
  for (const DType dtype : all_dtypes()) {
    for (const Dims& size : {Dims{}, Dims{0}, Dims{1}, Dims{5}, Dims{3, 4}, Dims{2, 0, 3},
                             Dims{1, 1, 1, 1, 2}, Dims{2, 1, 2, 1, 2, 1, 2, 1}, Dims{300, 70}}) {
      const auto count = static_cast<std::size_t>(volume(size)) * size_of(dtype);
      const Bytes elements = counting_bytes(count);
      const Bytes bytes = item_of(dtype, size, elements);
      EXPECT_EQ(bytes.size(), TensorItemLayout(dtype, size).length());
      const TensorItem item = read_item(bytes);
      EXPECT_EQ(item.dtype, dtype);
      EXPECT_EQ(item.size, size);
      EXPECT_EQ(item.strides, contiguous_strides(size));
      EXPECT_EQ(item.data_bytes, count);
      EXPECT_EQ(item.crc, crc32_of(elements));
      EXPECT_TRUE(item.contiguous());
      EXPECT_TRUE(has_its_checksums(bytes));
      EXPECT_EQ(elements_of(item, bytes), elements);
    }
  }
}

TEST(TensorItem, equal_content_gives_equal_bytes) {
  const Bytes elements = counting_bytes(24);
  EXPECT_EQ(item_of(DType::kFloat32, {2, 3}, elements), item_of(DType::kFloat32, {2, 3}, elements));
}

TEST(TensorItem, written_by_us_is_consistent_to_libzip) {
  const Bytes item = item_of(DType::kInt16, {100}, counting_bytes(200));
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(item.data(), item.size(), 0, &error);
  ASSERT_NE(source, nullptr);
  zip_t* archive = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
  ASSERT_NE(archive, nullptr) << zip_error_strerror(&error);
  EXPECT_EQ(zip_get_num_entries(archive, 0), 7);
  zip_discard(archive);
}

// An item whose elements are all zero. The zeros are not stored, so that the item can be huge.
class SparseItem final : public ItemSource {
 public:
  explicit SparseItem(const TensorItemLayout& layout)
      : head_(layout.head()), tail_(layout.tail(0x12345678)), length_(layout.length()) {}

  std::uint64_t size() const override { return length_; }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    for (std::byte& byte : out) byte = at(offset++);
  }

 private:
  std::byte at(std::uint64_t offset) const {
    if (offset < head_.size()) return head_[offset];
    const std::uint64_t tail = length_ - tail_.size();
    return offset < tail ? std::byte{0} : tail_[offset - tail];
  }

  Bytes head_;
  Bytes tail_;
  std::uint64_t length_;
};

TEST(TensorItem, of_more_than_4_gib_is_written_and_read_without_its_elements) {
  const std::int64_t four_gib = std::int64_t{1} << 32;
  // Tries sizes just below the limit of the narrow form, at the limit, and above it. For one of
  // these sizes, only the records after the elements lie beyond the limit.
  for (const std::int64_t bytes : {four_gib - 2000, four_gib - 2, four_gib - 1, four_gib,
                                   four_gib + 5, std::int64_t{1} << 45}) {
    const TensorItemLayout layout(DType::kUInt8, {bytes});
    EXPECT_EQ(layout.length(), layout.head().size() + layout.data_bytes() + layout.tail(0).size());
    SparseItem source(layout);
    const TensorItem item = read_tensor_item(source);
    EXPECT_EQ(item.size, Dims{bytes});
    EXPECT_EQ(item.data_bytes, static_cast<std::uint64_t>(bytes));
    EXPECT_EQ(item.data_offset, layout.data_offset());
    EXPECT_EQ(item.data_offset % 64, 0U);
    EXPECT_EQ(item.crc, 0x12345678U);
    Archive archive(source);
    EXPECT_TRUE(archive.checksum_matches(archive.at("data.pkl")));
    EXPECT_EQ(archive.content_range(archive.at("version")).offset % 64, 0U);
  }
}

struct WideItem {
  const char* file;
  std::int64_t elements;
};

TEST(TensorItem, of_about_4_gib_is_written_as_torch_2_15_writes_it) {
  const std::int64_t limit = (std::int64_t{1} << 32) - 1;
  for (const WideItem& row :
       {WideItem{"vectors/wide_below.bin", limit - 1}, WideItem{"vectors/wide_at.bin", limit},
        WideItem{"vectors/wide_over.bin", limit + 6}}) {
    const Bytes real = test::test_file(row.file);
    const TensorItemLayout layout(DType::kUInt8, {row.elements});
    const std::size_t entry = as_text(real).rfind("archive/data/0") - std::size_t{46};
    Bytes written = layout.head();
    append(written, layout.tail(load_le<std::uint32_t>(ByteSpan(real).subspan(entry + 16))));
    expect_same_but_identity(written, real, row.file);
  }
}

struct Spoiling {
  const char* what;
  std::function<void(SpoiledItem&)> change;
  Code code;
};

class RefusedTensor : public testing::TestWithParam<Spoiling> {};

TEST_P(RefusedTensor, is_refused_with_file_and_offset) {
  SpoiledItem item{real_item()};
  GetParam().change(item);
  const Error error = error_of([&] { read_item(item.bytes); });
  EXPECT_EQ(error.code(), GetParam().code) << error.what();
  EXPECT_EQ(error.place().file, "payload");
  ASSERT_TRUE(error.place().offset.has_value());
  EXPECT_GE(*error.place().offset, 5000U);
  EXPECT_LE(*error.place().offset, 5000U + item.bytes.size());
}

// Finds the view in the item's data.pkl: ... K\t t q\5 Q K\0 K\3 K\3 \x86 q\6 K\3 K\1 \x86 ...
// means a storage of 9 elements, offset 0, size (3, 3), strides (3, 1).
std::size_t view_in(const SpoiledItem& item) { return item.place_of("cpuq\x04K") + 6; }

const Spoiling kSpoilings[] = {
    {"storage_claims_more_than_its_record",
     [](SpoiledItem& item) { item.put_text(view_in(item), "\x0a"); }, Code::kExtentMismatch},
    {"view_begins_too_late", [](SpoiledItem& item) { item.put_text(view_in(item) + 6, "\x01"); },
     Code::kExtentMismatch},
    {"view_is_larger_than_its_storage",
     [](SpoiledItem& item) { item.put_text(view_in(item) + 8, "\x04"); }, Code::kExtentMismatch},
    {"strides_leave_the_storage",
     [](SpoiledItem& item) { item.put_text(view_in(item) + 15, "\x04"); }, Code::kExtentMismatch},
    {"expanded_beyond_what_is_stored",
     [](SpoiledItem& item) {
       item.put_text(view_in(item) + 8, "\x04");
       item.put_text(view_in(item) + 15, std::string_view("\0", 1));
     },
     Code::kUnsupported},
    {"names_a_storage_that_is_not_there",
     [](SpoiledItem& item) { item.put_text(item.place_of("0q\x03X"), "1"); }, Code::kTornFile},
    {"version_11", [](SpoiledItem& item) { item.put_text(item.place_of("3\nPK"), "99"); },
     Code::kUnsupported},
    {"version_0", [](SpoiledItem& item) { item.put_text(item.place_of("3\nPK"), "0\n"); },
     Code::kUnsupported},
    {"version_is_a_word", [](SpoiledItem& item) { item.put_text(item.place_of("3\nPK"), "x\n"); },
     Code::kTornFile},
    {"byte_order_is_neither",
     [](SpoiledItem& item) { item.put_text(item.place_of("little"), "middle"); }, Code::kTornFile},
    {"names_a_function_of_the_system",
     [](SpoiledItem& item) { item.put_text(item.place_of("ctorch._utils\n"), "cposix\nsystem\n"); },
     Code::kRefusedName},
};

INSTANTIATE_TEST_SUITE_P(Table, RefusedTensor, testing::ValuesIn(kSpoilings),
                         [](const auto& row) { return std::string(row.param.what); });

TEST(TensorItem, may_be_expanded_as_far_as_torch_stores_it) {
  SpoiledItem item{real_item()};
  EXPECT_FALSE(read_item(item.bytes).overlaps);
  item.put_text(view_in(item) + 15, std::string_view("\0", 1));  // strides (0, 1)
  EXPECT_TRUE(read_item(item.bytes).overlaps);
  item.put_text(view_in(item) + 15, "\x02");  // strides (2, 1)
  EXPECT_TRUE(read_item(item.bytes).overlaps);
}

TEST(TensorItem, has_to_have_its_records) {
  for (const std::string_view missing : {"data.pkl", "data/0", "version"}) {
    ArchiveWriter writer("archive");
    const Bytes real = real_item();
    SpanSource source(real);
    Archive archive(source);
    for (const Record& record : archive.records()) {
      if (record.name != missing) writer.add(record.name, archive.read(record, 1000));
    }
    writer.finish();
    const Bytes item = writer.take();
    EXPECT_EQ(error_of([&] { read_item(item); }).code(), Code::kTornFile) << missing;
  }
}

TEST(TensorItem, of_a_big_endian_machine_is_marked) {
  ArchiveWriter writer("archive");
  const Bytes real = real_item();
  SpanSource source(real);
  Archive archive(source);
  for (const Record& record : archive.records()) {
    writer.add(record.name,
               record.name == "byteorder" ? to_bytes("big") : archive.read(record, 1000));
  }
  writer.finish();
  const Bytes item = writer.take();
  EXPECT_TRUE(read_item(item).byteswap);
}

TEST(TensorItem, refuses_every_truncation) {
  const Bytes item = real_item();
  for (std::size_t size = 0; size < item.size(); ++size) {
    const Error error = error_of([&] { read_item(ByteSpan(item).first(size)); });
    EXPECT_EQ(error.code(), Code::kTornFile) << size << ": " << error.what();
  }
}

// Changes each byte of an item to eleven other values: eight have one bit flipped, one is all
// zeros, one is all ones, and one is different from these. If a change alters the tensor, the
// reader must refuse the item or report a wrong checksum.
TEST(TensorItem, lets_no_changed_byte_pass_in_silence) {
  const Bytes real = real_item();
  const TensorItem expected = read_item(real);
  const Bytes expected_elements = elements_of(expected, real);
  std::size_t refused = 0;
  std::size_t told_by_checksum = 0;
  std::size_t same = 0;
  for (std::size_t at = 0; at < real.size(); ++at) {
    for (int change = 0; change < 11; ++change) {
      Bytes item = real;
      const auto value = std::to_integer<unsigned>(real[at]);
      const unsigned changed = change < 8    ? value ^ (1U << static_cast<unsigned>(change))
                               : change == 8 ? 0U
                               : change == 9 ? 0xffU
                                             : value + 1;
      item[at] = static_cast<std::byte>(changed);
      TensorItem read;
      try {
        read = read_item(item);
      } catch (const Error& error) {
        ASSERT_NE(error.code(), Code::kUsage);
        ++refused;
        continue;
      }
      if (!has_its_checksums(item)) {
        ++told_by_checksum;
        continue;
      }
      ++same;
      ASSERT_EQ(read.dtype, expected.dtype) << at;
      ASSERT_EQ(read.size, expected.size) << at;
      ASSERT_FALSE(read.byteswap) << at;
      ASSERT_EQ(elements_of(read, item), expected_elements) << at;
    }
  }
  EXPECT_GT(refused, 3000U);
  EXPECT_GT(told_by_checksum, 500U);
  // Other changes go unnoticed, for example those to padding, times or attributes. They do not
  // affect the tensor.
  EXPECT_LT(same, real.size() * 11 * 7 / 10);
}

}  // namespace
}  // namespace reprise
