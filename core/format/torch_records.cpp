#include "core/format/torch_records.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "core/base/check.hpp"
#include "core/base/utf8.hpp"

namespace reprise {

namespace {

constexpr std::uint64_t kWordBytesMax = 64;
constexpr int kVersionMin = 1;
constexpr int kVersionMax = 10;
constexpr std::string_view kWrittenVersion = "3\n";
constexpr std::string_view kSerializationId = ".data/serialization_id";

void put_digits(std::uint64_t value, MutableByteSpan out) {
  for (std::size_t at = out.size(); at-- > 0; value /= 10) {
    out[at] = static_cast<std::byte>('0' + value % 10);
  }
}

void check_archive_version(Archive& archive) {
  const Record* record = archive.find(".data/version");
  if (record == nullptr) record = &archive.at("version");
  const Bytes bytes = archive.read(*record, kWordBytesMax);
  std::string_view text = as_text(bytes);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  int version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc{} || end != text.data() + text.size()) {
    archive.source().fail(Code::kTornFile, "the record 'version' does not hold a number",
                          record->header_offset);
  }
  if (version < kVersionMin || version > kVersionMax) {
    archive.source().fail(Code::kUnsupported,
                          "archive version " + std::to_string(version) + "; versions " +
                              std::to_string(kVersionMin) + " to " + std::to_string(kVersionMax) +
                              " are supported",
                          record->header_offset);
  }
}

/// torch reads this record as a number, and the one after as text, and fails if they are none.
void check_alignment(Archive& archive) {
  const Record* record = archive.find(".storage_alignment");
  if (record == nullptr) return;
  const Bytes bytes = archive.read(*record, kWordBytesMax);
  const std::string_view text = as_text(bytes);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!text.empty() && std::ranges::all_of(text, is_digit)) return;
  archive.source().fail(Code::kTornFile, "the record '.storage_alignment' does not hold a number",
                        record->header_offset);
}
void check_serialization_id(Archive& archive) {
  constexpr std::uint64_t kIdBytesMax = 4096;
  const Record* record = archive.find(kSerializationId);
  if (record == nullptr || is_utf8(as_text(archive.read(*record, kIdBytesMax)))) return;
  archive.source().fail(Code::kTornFile, "the record '.data/serialization_id' is not UTF-8",
                        record->header_offset);
}

}  // namespace

void check_torch_records(Archive& archive) {
  check_archive_version(archive);
  check_alignment(archive);
  check_serialization_id(archive);
}

ByteOrder byte_order_of(Archive& archive) {
  const Record* record = archive.find("byteorder");
  if (record == nullptr) return ByteOrder::kLittle;
  const Bytes bytes = archive.read(*record, kWordBytesMax);
  if (as_text(bytes) == "little") return ByteOrder::kLittle;
  if (as_text(bytes) == "big") return ByteOrder::kBig;
  archive.source().fail(Code::kTornFile, "a byte order that is neither 'little' nor 'big'",
                        record->header_offset);
}

PickleSource pickle_at(const ItemSource& source, std::uint64_t offset) {
  ErrorPlace place = source.place_at(offset);
  return {.file = std::move(place.file),
          .offset = place.offset.value_or(0),
          .key = std::move(place.key)};
}

void add_leading_records(ArchiveWriter& out, ByteSpan pickle) {
  out.add("data.pkl", pickle);
  out.add(".format_version", as_bytes("1"));
  out.add(".storage_alignment", as_bytes(std::to_string(kStorageAlignment)));
  out.add("byteorder", as_bytes("little"));
}

void begin_serialization_id(ArchiveWriter& out) {
  out.add("version", as_bytes(kWrittenVersion));
  out.begin(kSerializationId, kSerializationIdBytes);
}

void write_serialization_id(std::uint64_t pickle_hash, std::uint32_t contents_crc,
                            MutableByteSpan out) {
  CHECK(out.size() == kSerializationIdBytes, out.size());
  put_digits(pickle_hash, out.first(kSerializationIdBytes / 2));
  put_digits(contents_crc, out.last(kSerializationIdBytes / 2));
}

void add_trailing_records(ArchiveWriter& out, std::uint64_t pickle_hash,
                          std::uint32_t contents_crc) {
  std::array<std::byte, kSerializationIdBytes> id{};
  write_serialization_id(pickle_hash, contents_crc, id);
  out.add("version", as_bytes(kWrittenVersion));
  out.add(kSerializationId, id);
  out.finish();
}

}  // namespace reprise
