#include "core/format/bytes_item.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "core/base/hash.hpp"
#include "core/format/pickle/pickle_reader.hpp"
#include "core/format/pickle/pickle_writer.hpp"
#include "core/format/torch_records.hpp"
#include "core/format/whole_value.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "core/format/zip/crc32.hpp"

namespace reprise {

namespace {

/// Throws if a record is valid but too large to hold in memory.
void check_size(const Record& record) {
  if (record.size <= kBytesItemMax) return;
  throw Error(Code::kUnsupported, "record '" + record.name + "' has " +
                                      std::to_string(record.size) + " bytes; at most " +
                                      std::to_string(kBytesItemMax) + " are interpreted");
}

/// Supplies the storages of an archive. Reads each storage only once, even if tensors use them
/// alternately. Records do not overlap, so all storages together are no larger than the item.
class ArchiveStorages final : public StorageSource {
 public:
  explicit ArchiveStorages(Archive& archive) : archive_(archive) {}

  /// True if the record is a storage that was read with storage().
  bool was_read(std::string_view record) const {
    constexpr std::string_view kStorages = "data/";
    return record.starts_with(kStorages) && read_.contains(record.substr(kStorages.size()));
  }

  std::optional<ByteSpan> storage(std::string_view key) override {
    if (const auto known = read_.find(key); known != read_.end()) return known->second;
    const Record* record = archive_.find("data/" + std::string(key));
    if (record == nullptr) return std::nullopt;
    check_size(*record);
    return read_.emplace(key, archive_.read(*record, kBytesItemMax)).first->second;
  }

 private:
  Archive& archive_;
  std::map<std::string, Bytes, std::less<>> read_;
};

BytesItem opaque(std::string because) { return {.opaque_because = std::move(because)}; }

/// True for records that only say how an item was written.
bool says_how_written(std::string_view record) {
  constexpr std::array<std::string_view, 7> kNames = {"data.pkl",
                                                      "version",
                                                      "byteorder",
                                                      ".format_version",
                                                      ".storage_alignment",
                                                      ".data/version",
                                                      ".data/serialization_id"};
  return std::ranges::find(kNames, record) != kNames.end();
}

/// Describes content of the archive that the value does not include; empty if there is none.
std::string left_out_of(const Archive& archive, const ArchiveStorages& storages,
                        std::uint64_t after_pickle) {
  if (after_pickle != 0) return std::to_string(after_pickle) + " bytes after the pickle";
  for (const Record& each : archive.records()) {
    if (says_how_written(each.name) || storages.was_read(each.name)) continue;
    return "the record '" + each.name + "', to which nothing refers";
  }
  return "";
}

WholeValue read_archive(Archive& archive) {
  check_torch_records(archive);
  const Record& record = archive.at("data.pkl");
  check_size(record);
  const Bytes pickle = archive.read(record, kBytesItemMax);
  ArchiveStorages storages(archive);
  // Big-endian storages stay unread, because the size of their elements is known only to the reader
  // of the pickle.
  StorageSource* usable = byte_order_of(archive) == ByteOrder::kLittle ? &storages : nullptr;
  BytesItem item;
  std::size_t end = pickle.size();
  try {
    PickledValue read = decode_value(
        pickle, pickle_at(archive.source(), archive.content_range(record).offset), usable, end);
    item.opaque_because = std::move(read.reason);
    item.unlisted_names = std::move(read.unlisted_names);
    if (!read.opaque) item.value = std::move(read.value);
  } catch (const Error& error) {
    if (error.code() != Code::kUnsupported) throw;
    item.opaque_because = error.message();  // the item's checksums are still checked
  }
  item.prefix = archive.prefix();
  for (const Record& each : archive.records()) {
    if (!archive.checksum_matches(each)) item.checksum_mismatches.push_back(each.name);
  }
  return {std::move(item), left_out_of(archive, storages, pickle.size() - end)};
}

}  // namespace

BytesItem read_bytes_item(ItemSource& source) { return read_whole_item(source).item; }

WholeValue read_whole_item(ItemSource& source) {
  try {
    Archive archive(source);
    return read_archive(archive);
  } catch (const Error& error) {
    if (error.code() == Code::kUnsupported) return {opaque(error.message()), ""};
    throw;
  }
}

WholeValue read_whole_pickle(ItemSource& source) {
  const Bytes bytes = read_range(source, {0, source.size()});
  std::size_t end = 0;
  PickledValue read = decode_value(bytes, pickle_at(source, 0), nullptr, end);
  if (read.opaque) return {opaque(std::move(read.reason)), ""};
  const std::uint64_t rest = bytes.size() - end;
  return {{.value = std::move(read.value), .opaque_because = {}},
          rest == 0 ? "" : std::to_string(rest) + " bytes after the pickle"};
}

BytesItem read_bytes_item(ByteSpan bytes, const ErrorPlace& place) {
  SpanSource source(bytes, place);
  return read_bytes_item(source);
}

Bytes write_bytes_item(const Value& value, std::string_view prefix) {
  std::vector<ByteSpan> storages;
  const Bytes pickle = encode_value(value, &storages);
  ArchiveWriter out(prefix);
  add_leading_records(out, pickle);
  Crc32 contents;
  for (std::size_t n = 0; n < storages.size(); ++n) {
    contents.update(storages[n]);
    out.add("data/" + std::to_string(n), storages[n]);
  }
  add_trailing_records(out, hash_of(ByteSpan(pickle)), contents.value());
  return out.take();
}

Bytes write_bytes_item_of(ByteSpan pickle) {
  ArchiveWriter out("archive");
  add_leading_records(out, pickle);
  add_trailing_records(out, hash_of(pickle), Crc32().value());
  return out.take();
}

}  // namespace reprise
