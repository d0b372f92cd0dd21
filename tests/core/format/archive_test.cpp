#include "core/format/zip/archive.hpp"

#include <gtest/gtest.h>

#include <zip.h>
#include <algorithm>

#include <functional>

#include "core/format/zip/archive_writer.hpp"
#include "core/format/zip/crc32.hpp"
#include "tests/core/format/items.hpp"

namespace reprise {
namespace {

using test::error_of;
using test::SpoiledItem;

// An item of 1577 bytes with seven records: the tensor [0, 1, ... 8] of shape [3, 3].
Bytes real_item() { return test::test_file("torch_2.15.0/file_per_item/__0_0.distcp"); }

std::vector<std::string> record_names(ByteSpan item) {
  SpanSource source(item);
  const Archive archive(source);
  std::vector<std::string> names;
  for (const Record& record : archive.records()) names.push_back(record.name);
  return names;
}

// Makes an archive with one record. The record's entry in the central directory has an extra field.
Bytes item_with_directory_extra(std::string_view extra) {
  ArchiveWriter writer("archive");
  writer.add("data.pkl", as_bytes("pickle"));
  writer.finish();
  SpoiledItem item{writer.take()};
  const std::size_t entry = item.entry(0);
  const auto length = static_cast<std::uint16_t>(extra.size());
  item.put(entry + 30, length);
  item.put(item.wide_locator() + 8, std::uint64_t{item.wide_end_record() + length});
  item.set_directory(entry, 46 + 16 + length);
  const Bytes bytes = to_bytes(extra);
  item.bytes.insert(item.bytes.begin() + static_cast<std::ptrdiff_t>(entry + 46 + 16),
                    bytes.begin(), bytes.end());
  return item.bytes;
}

// Opens the item and each of its records.
void read_all_records(ByteSpan item) {
  SpanSource source(item, {.file = "payload", .offset = 5000});
  Archive archive(source);
  for (const Record& record : archive.records()) archive.read(record, 1 << 20);
}

TEST(Archive, lists_the_records_of_a_torch_2_15_item_in_order) {
  const std::vector<std::string> expected = {
      "data.pkl", ".format_version", ".storage_alignment",    "byteorder",
      "data/0",   "version",         ".data/serialization_id"};
  EXPECT_EQ(record_names(real_item()), expected);
}

TEST(Archive, lists_the_records_of_a_torch_1_13_item) {
  EXPECT_EQ(record_names(test::test_file("vectors/t_f32.bin")),
            (std::vector<std::string>{"data.pkl", "data/0", "version"}));
  EXPECT_EQ(record_names(test::test_file("vectors/two.bin")),
            (std::vector<std::string>{"data.pkl", "data/0", "data/1", "version"}));
}

TEST(Archive, reads_contents_at_multiples_of_64_with_their_checksums) {
  const Bytes item = real_item();
  SpanSource source(item);
  Archive archive(source);
  EXPECT_EQ(archive.prefix(), "archive");
  for (const Record& record : archive.records()) {
    EXPECT_EQ(archive.content_range(record).offset % 64, 0U) << record.name;
    EXPECT_TRUE(archive.checksum_matches(record)) << record.name;
  }
  EXPECT_EQ(as_text(archive.read(archive.at("version"), 10)), "3\n");
}

TEST(Archive, reads_every_item_of_every_real_checkpoint) {
  std::size_t items = 0;
  for (const std::string& path : test::payload_files()) {
    const Bytes payload = test::test_file(path);
    for (const ByteSpan item : test::items_in(payload)) {
      SpanSource source(item);
      Archive archive(source);
      for (const Record& record : archive.records()) {
        EXPECT_TRUE(archive.checksum_matches(record)) << path << ' ' << record.name;
      }
      ++items;
    }
  }
  EXPECT_GT(items, 300U);
}

TEST(Archive, needs_one_read_for_a_small_item_and_two_for_a_large_one) {
  ArchiveWriter writer("archive");
  writer.add("data.pkl", as_bytes("pickle"));
  writer.add("data/0", Bytes(100000));
  writer.add("version", as_bytes("3\n"));
  writer.finish();
  const Bytes large = writer.take();
  const Bytes small = real_item();
  ArchiveWriter of_7_kib("archive");
  of_7_kib.add("data.pkl", as_bytes("pickle"));
  of_7_kib.add("data/0", Bytes(6000));
  of_7_kib.add("version", as_bytes("3\n"));
  of_7_kib.finish();
  for (const auto& [item, reads] :
       {std::pair{small, 1U}, std::pair{of_7_kib.take(), 1U}, std::pair{large, 2U}}) {
    test::CountingSource source(item);
    Archive archive(source);
    archive.read(archive.at("data.pkl"), 1000);
    archive.read(archive.at("version"), 1000);
    archive.content_range(archive.at("data/0"));
    EXPECT_EQ(source.reads, reads);
    EXPECT_LE(source.bytes_read, 8192U);
  }
}

TEST(Archive, reads_a_directory_larger_than_a_window_and_an_end_comment) {
  ArchiveWriter writer("archive");
  for (int n = 0; n < 1000; ++n) writer.add("data/" + std::to_string(n), Bytes(100));
  writer.finish();
  Bytes item = writer.take();
  const auto with_comment = [&item](std::uint16_t length) {
    Bytes longer = item;
    longer[longer.size() - 2] = static_cast<std::byte>(length & 0xffU);
    longer[longer.size() - 1] = static_cast<std::byte>(length >> 8U);
    longer.resize(longer.size() + length, std::byte{'c'});
    return longer;
  };
  EXPECT_EQ(record_names(with_comment(4074)).size(), 1000U);
  for (const int length : {4075, 10000, 65535}) {  // PyTorch's reader may not find the end
    const Bytes bytes = with_comment(static_cast<std::uint16_t>(length));
    EXPECT_EQ(error_of([&] { record_names(bytes); }).code(), Code::kTornFile) << length;
  }
}

TEST(Archive, of_torchscript_is_refused) {
  ArchiveWriter writer("archive");
  writer.add("data.pkl", Bytes(3));
  writer.add("constants.pkl", Bytes(3));
  writer.finish();
  const Bytes bytes = writer.take();
  const Error error = error_of([&] { record_names(bytes); });
  EXPECT_EQ(error.code(), Code::kTornFile);
  EXPECT_NE(error.message().find("TorchScript"), std::string::npos) << error.message();
}

struct Spoiling {
  const char* what;
  std::function<void(SpoiledItem&)> change;
  Code code;
  const char* words;
};

class RefusedArchive : public testing::TestWithParam<Spoiling> {};

TEST_P(RefusedArchive, is_refused_with_file_and_offset) {
  SpoiledItem item{real_item()};
  GetParam().change(item);
  const Error error = error_of([&] { read_all_records(item.bytes); });
  EXPECT_EQ(error.code(), GetParam().code) << error.what();
  EXPECT_NE(error.message().find(GetParam().words), std::string::npos) << error.what();
  EXPECT_EQ(error.place().file, "payload");
  ASSERT_TRUE(error.place().offset.has_value());
  EXPECT_GE(*error.place().offset, 5000U);
  EXPECT_LE(*error.place().offset, 5000U + item.bytes.size());
}

const Spoiling kSpoilings[] = {
    {"nothing_at_all", [](SpoiledItem& item) { item.bytes.clear(); }, Code::kTornFile, "too short"},
    {"zeros", [](SpoiledItem& item) { item.bytes.assign(5000, std::byte{0}); }, Code::kTornFile,
     "does not begin"},
    {"torch_before_1_6",
     [](SpoiledItem& item) {
       item.put_text(0, std::string_view("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
                                         "\x2e",
                                         15));
     },
     Code::kUnsupported, "before 1.6"},
    {"cut_in_half", [](SpoiledItem& item) { item.bytes.resize(item.bytes.size() / 2); },
     Code::kTornFile, "no end record"},
    {"end_counts_differ", [](SpoiledItem& item) { item.put(item.end_record() + 8, short{6}); },
     Code::kTornFile, "contradicts"},
    {"several_disks", [](SpoiledItem& item) { item.put(item.end_record() + 4, short{1}); },
     Code::kUnsupported, "several disks"},
    {"end_records_disagree", [](SpoiledItem& item) { item.put(item.end_record() + 12, 17); },
     Code::kTornFile, "disagree"},
    {"wide_end_outside",
     [](SpoiledItem& item) { item.put(item.wide_locator() + 8, std::uint64_t{1} << 63U); },
     Code::kExtentMismatch, "ZIP64 end record"},
    {"wide_end_garbled", [](SpoiledItem& item) { item.put(item.wide_end_record(), 1); },
     Code::kTornFile, "ZIP64 end record"},
    {"directory_outside",
     [](SpoiledItem& item) { item.set_directory(std::uint64_t{1} << 40U, 500); },
     Code::kExtentMismatch, "directory"},
    {"directory_of_2_to_the_62",
     [](SpoiledItem& item) { item.set_directory(0, std::uint64_t{1} << 62U); },
     Code::kExtentMismatch, "directory"},
    {"huge_count", [](SpoiledItem& item) { item.set_count(std::uint64_t{1} << 60U); }, Code::kLimit,
     "claims"},
    {"one_record_too_many", [](SpoiledItem& item) { item.set_count(8); }, Code::kTornFile,
     "missing or garbled"},
    {"one_record_too_few", [](SpoiledItem& item) { item.set_count(6); }, Code::kTornFile,
     "longer than its records"},
    {"no_records",
     [](SpoiledItem& item) {
       item.set_directory(item.directory(), 0);
       item.set_count(0);
     },
     Code::kExtentMismatch, "directory"},
    {"deflate",
     [](SpoiledItem& item) {
       item.put(item.entry(4) + 10, short{8});
       item.put(item.local(4) + 8, short{8});
     },
     Code::kUnsupported, "compressed"},
    {"encrypted",
     [](SpoiledItem& item) {
       item.put(item.entry(4) + 8, short{1});
       item.put(item.local(4) + 6, short{1});
     },
     Code::kUnsupported, "encrypted"},
    {"deflate_by_the_directory_alone",
     [](SpoiledItem& item) { item.put(item.entry(4) + 10, short{8}); }, Code::kTornFile,
     "not by its own header"},
    {"encrypted_by_the_directory_alone",
     [](SpoiledItem& item) { item.put(item.entry(4) + 8, short{1}); }, Code::kTornFile,
     "not by its own header"},
    {"method_of_no_meaning", [](SpoiledItem& item) { item.put(item.entry(4) + 10, short{4}); },
     Code::kTornFile, "method 4"},
    {"masked_headers", [](SpoiledItem& item) { item.put(item.entry(4) + 8, short{0x2808}); },
     Code::kTornFile, "no reader"},
    {"a_patch", [](SpoiledItem& item) { item.put(item.entry(4) + 8, short{0x0828}); },
     Code::kTornFile, "no reader"},
    {"version_of_a_later_zip", [](SpoiledItem& item) { item.put(item.entry(4) + 6, short{64}); },
     Code::kTornFile, "no reader"},
    {"marked_as_a_directory", [](SpoiledItem& item) { item.put(item.entry(4) + 38, 0x10); },
     Code::kTornFile, "directory"},
    {"disk_of_a_record", [](SpoiledItem& item) { item.put(item.entry(4) + 34, short{1}); },
     Code::kTornFile, "contradicts"},
    {"disk_of_the_locator", [](SpoiledItem& item) { item.put(item.wide_locator() + 4, 1); },
     Code::kTornFile, "other disks"},
    {"disks_of_the_locator", [](SpoiledItem& item) { item.put(item.wide_locator() + 16, 0); },
     Code::kTornFile, "other disks"},
    {"locator_garbled", [](SpoiledItem& item) { item.put(item.wide_locator(), 1); },
     Code::kExtentMismatch, "directory"},
    {"wide_end_where_the_first_record_is",
     [](SpoiledItem& item) {
       item.bytes.erase(item.bytes.begin(),
                        item.bytes.begin() + static_cast<std::ptrdiff_t>(item.wide_end_record()));
       item.put_text(0, "PK\3\4");
       item.put(item.wide_locator() + 8, std::uint64_t{0});
     },
     Code::kTornFile, "end record is garbled"},
    {"wide_end_too_short",
     [](SpoiledItem& item) { item.put(item.wide_end_record() + 4, std::uint64_t{43}); },
     Code::kTornFile, "ZIP64 end record"},
    {"disk_of_the_wide_end", [](SpoiledItem& item) { item.put(item.wide_end_record() + 16, 1); },
     Code::kTornFile, "ZIP64 end record"},
    {"disk_of_the_directory", [](SpoiledItem& item) { item.put(item.wide_end_record() + 20, 1); },
     Code::kTornFile, "ZIP64 end record"},
    {"name_in_another_case",
     [](SpoiledItem& item) { item.put_text(item.entry(3) + 46 + 8, "ByteOrder"); }, Code::kTornFile,
     "should be named 'byteorder'"},
    {"two_end_records_and_a_false_comment",
     [](SpoiledItem& item) {
       const Bytes end(item.bytes.end() - 22, item.bytes.end());
       append(item.bytes, end);
       item.put(item.bytes.size() - 2, short{7});
     },
     Code::kTornFile, "comment"},
    {"end_record_in_a_comment",
     [](SpoiledItem& item) {
       item.put(item.bytes.size() - 2, short{4});
       append(item.bytes, as_bytes("PK\5\6"));
     },
     Code::kTornFile, "last end record"},
    {"bytes_before_the_archive",
     [](SpoiledItem& item) {
       const Bytes before(item.bytes.begin(), item.bytes.begin() + 64);
       item.bytes.insert(item.bytes.begin(), before.begin(), before.end());
     },
     Code::kExtentMismatch, "locator"},
    {"two_sizes", [](SpoiledItem& item) { item.put(item.entry(4) + 20, 35); }, Code::kTornFile,
     "contradicts"},
    {"too_large",
     [](SpoiledItem& item) {
       item.put(item.entry(4) + 20, 500);
       item.put(item.entry(4) + 24, 500);
     },
     Code::kExtentMismatch, "overlaps"},
    {"three_gigabytes",
     [](SpoiledItem& item) {
       item.put(item.entry(4) + 20, 3000000000U);
       item.put(item.entry(4) + 24, 3000000000U);
     },
     Code::kExtentMismatch, "overlaps"},
    {"into_the_next_by_the_local_padding",
     [](SpoiledItem& item) { item.put(item.local(4) + 28, short{200}); }, Code::kExtentMismatch,
     "overlaps"},
    {"header_in_the_directory",
     [](SpoiledItem& item) { item.put(item.entry(4) + 42, static_cast<int>(item.directory())); },
     Code::kExtentMismatch, "overlaps"},
    {"two_records_in_one_place",
     [](SpoiledItem& item) { item.put(item.entry(4) + 42, static_cast<int>(item.local(3))); },
     Code::kExtentMismatch, "overlaps"},
    {"no_wide_field",
     [](SpoiledItem& item) {
       item.put(item.entry(4) + 20, 0xffffffffU);
       item.put(item.entry(4) + 24, 0xffffffffU);
     },
     Code::kTornFile, "extra field"},
    {"name_beyond_the_directory",
     [](SpoiledItem& item) { item.put(item.entry(6) + 28, short{30000}); }, Code::kTornFile,
     "extends beyond the archive's directory"},
    {"name_goes_up", [](SpoiledItem& item) { item.put_text(item.entry(4) + 46 + 8, "../etc"); },
     Code::kTornFile, "name"},
    {"name_without_folder",
     [](SpoiledItem& item) { item.put_text(item.entry(0) + 46, "archiveXdata.pkl"); },
     Code::kTornFile, "name"},
    {"name_under_another_folder",
     [](SpoiledItem& item) { item.put_text(item.entry(4) + 46, "archivX/data/0"); },
     Code::kTornFile, "one archive for all"},
    {"local_header_garbled", [](SpoiledItem& item) { item.put(item.local(4), 1); }, Code::kTornFile,
     "local header"},
    {"local_header_has_another_name",
     [](SpoiledItem& item) { item.put_text(item.local(4) + 30, "archive/data/1"); },
     Code::kTornFile, "local header"},
    {"first_byte_wrong", [](SpoiledItem& item) { item.put_text(0, "Q"); }, Code::kTornFile,
     "does not begin"},
};

INSTANTIATE_TEST_SUITE_P(Table, RefusedArchive, testing::ValuesIn(kSpoilings),
                         [](const auto& row) { return std::string(row.param.what); });

TEST(Archive, refuses_an_ambiguous_extra_field) {
  using namespace std::string_literals;
  EXPECT_EQ(record_names(item_with_directory_extra("UT\1\0x"s)).size(), 1U);
  EXPECT_EQ(record_names(item_with_directory_extra("\1\0\0\0"s)).size(), 1U);
  for (const std::string& extra : {"\1\0\0\0\1\0\0\0"s, "up\1\0x"s, "UT\2\0x"s, "abc"s}) {
    const Bytes item = item_with_directory_extra(extra);
    const Error error = error_of([&] { record_names(item); });
    EXPECT_EQ(error.code(), Code::kTornFile) << error.what();
    EXPECT_NE(error.message().find("extra field"), std::string::npos) << error.what();
  }
}

TEST(Archive, refuses_a_name_that_occurs_twice) {
  ArchiveWriter writer("archive");
  writer.add("data/0", as_bytes("a"));
  writer.add("data/0", as_bytes("b"));
  writer.finish();
  const Bytes item = writer.take();
  const Error error = error_of([&] { read_all_records(item); });
  EXPECT_EQ(error.code(), Code::kTornFile) << error.what();
}

TEST(Archive, reads_4096_records_and_refuses_more) {
  for (const int count : {4096, 4097}) {
    ArchiveWriter writer("archive");
    for (int n = 0; n < count; ++n) writer.add(std::to_string(n), {});
    writer.finish();
    const Bytes item = writer.take();
    if (count == 4096) {
      EXPECT_EQ(record_names(item).size(), 4096U);
    } else {
      EXPECT_EQ(error_of([&] { record_names(item); }).code(), Code::kLimit);
    }
  }
}

TEST(Archive, refuses_a_record_above_the_callers_limit_before_reading_it) {
  const Bytes item = real_item();
  SpanSource source(item);
  Archive archive(source);
  EXPECT_EQ(error_of([&] { archive.read(archive.at("data/0"), 35); }).code(), Code::kLimit);
  EXPECT_EQ(archive.read(archive.at("data/0"), 36).size(), 36U);
}

TEST(Archive, finds_changed_content_by_its_checksum_but_still_reads_it) {
  SpoiledItem item{real_item()};
  SpanSource clean(item.bytes);
  const std::uint64_t at = Archive(clean).content_range(Archive(clean).at("data/0")).offset;
  item.bytes[at] ^= std::byte{1};
  SpanSource source(item.bytes);
  Archive archive(source);
  EXPECT_TRUE(archive.checksum_matches(archive.at("data.pkl")));
  EXPECT_EQ(archive.read(archive.at("data/0"), 100)[0], std::byte{1});
  EXPECT_FALSE(archive.checksum_matches(archive.at("data/0")));
}

TEST(Archive, patches_of_missing_checksums_are_sorted_and_restore_the_item) {
  const Bytes whole = real_item();
  SpoiledItem item{whole};
  for (std::size_t n = 0; n < 7; ++n) item.put(item.entry(n) + 16, std::uint32_t{0});
  SpanSource source(item.bytes);
  const auto patches = Archive(source).missing_checksums();
  EXPECT_TRUE(std::ranges::is_sorted(patches, {}, &Archive::Patch::offset));
  EXPECT_EQ(patches.size(), 14U)
      << "one in the directory and one behind the content, of each record";
  for (const auto& patch : patches) item.put(patch.offset, patch.value);
  EXPECT_EQ(item.bytes, whole);
}

TEST(Archive, refuses_every_truncation) {
  const Bytes item = real_item();
  for (std::size_t size = 0; size < item.size(); ++size) {
    const Error error = error_of([&] { record_names(ByteSpan(item).first(size)); });
    EXPECT_EQ(error.code(), Code::kTornFile) << size << ": " << error.what();
  }
}

TEST(ArchiveWriter, writes_what_libzip_finds_consistent) {
  ArchiveWriter writer("archive");
  const Bytes content(1000, std::byte{7});
  writer.add("data.pkl", as_bytes("pickle"));
  writer.add("data/0", content);
  writer.add("data/1", {});
  writer.add("version", as_bytes("3\n"));
  writer.finish();
  const Bytes item = writer.take();

  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(item.data(), item.size(), 0, &error);
  ASSERT_NE(source, nullptr);
  zip_t* archive = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
  ASSERT_NE(archive, nullptr) << zip_error_strerror(&error);
  ASSERT_EQ(zip_get_num_entries(archive, 0), 4);
  EXPECT_STREQ(zip_get_name(archive, 1, 0), "archive/data/0");
  zip_file_t* file = zip_fopen_index(archive, 1, 0);
  ASSERT_NE(file, nullptr);
  Bytes read(content.size());
  EXPECT_EQ(zip_fread(file, read.data(), read.size()), static_cast<zip_int64_t>(read.size()));
  EXPECT_EQ(read, content);
  // libzip compares the checksum only when it reaches the end of the file.
  EXPECT_EQ(zip_fread(file, read.data(), 1), 0);
  zip_fclose(file);
  zip_discard(archive);
}

TEST(Crc32, is_that_of_zip_in_one_piece_or_many) {
  EXPECT_EQ(crc32_of({}), 0U);
  EXPECT_EQ(crc32_of(as_bytes("123456789")), 0xcbf43926U);
  EXPECT_EQ(Crc32().update(as_bytes("1234")).update(as_bytes("56789")).value(), 0xcbf43926U);
}

TEST(Crc32, of_pieces_in_any_order_is_that_of_the_whole) {
  Bytes bytes(100000);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i * 2654435761U >> 13U);
  const ByteSpan all(bytes);
  for (const std::size_t piece : {1U, 4U, 7U, 4096U, 65536U, 100000U}) {
    std::vector<std::size_t> begins;
    for (std::size_t at = 0; at < bytes.size(); at += piece) begins.push_back(at);
    const auto crc_of = [&] {
      ScatteredCrc32 crc(bytes.size());
      for (const std::size_t at : begins) {
        crc.add(at, all.subspan(at, std::min(piece, bytes.size() - at)));
      }
      EXPECT_EQ(crc.seen(), bytes.size());
      return crc.value();
    };
    EXPECT_EQ(crc_of(), crc32_of(bytes)) << piece;
    std::ranges::reverse(begins);
    EXPECT_EQ(crc_of(), crc32_of(bytes)) << piece;
    const auto odd = [piece](std::size_t at) { return at / piece % 2 == 1; };
    std::stable_partition(begins.begin(), begins.end(), odd);
    EXPECT_EQ(crc_of(), crc32_of(bytes)) << piece;
  }
  EXPECT_EQ(ScatteredCrc32(0).value(), 0U);
}

TEST(Crc32, of_filled_memory_is_known_once_each_byte_was_added) {
  Bytes bytes(5'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 11 >> 2U);
  const ByteSpan all(bytes);
  FilledCrc32 filled(all);
  ScatteredCrc32 stored(20'000);
  for (const std::size_t at : {1'000U, 0U, 3'000U, 2'000U, 4'000U}) {
    EXPECT_EQ(filled.value(), std::nullopt);
    filled.add(all.subspan(at, 1'000), stored.add(3 * at, all.subspan(at, 1'000)));
  }
  EXPECT_EQ(filled.value(), crc32_of(all));
}

TEST(Crc32, of_what_two_counted_is_that_of_the_whole) {
  Bytes bytes(10'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 >> 3U);
  const ByteSpan all(bytes);
  for (const std::size_t cut : {0U, 1U, 4096U, 9999U, 10'000U}) {
    EXPECT_EQ(crc32_joined(crc32_of(all.first(cut)), crc32_of(all.subspan(cut)), 10'000 - cut),
              crc32_of(all));
    ScatteredCrc32 first(bytes.size());
    ScatteredCrc32 second(bytes.size());
    for (std::size_t at = 0; at < bytes.size(); at += 500) {
      (at / 500 % 3 == 0 ? first : second).add(at, all.subspan(at, 500));
    }
    first.add(second);
    EXPECT_EQ(first.seen(), bytes.size());
    EXPECT_EQ(first.value(), crc32_of(all));
  }
}

}  // namespace
}  // namespace reprise
