#include "core/format/bytes_item.hpp"

#include <functional>
#include <map>
#include <utility>

#include "core/base/hash.hpp"
#include "core/format/archive.hpp"
#include "core/format/archive_writer.hpp"
#include "core/format/crc32.hpp"
#include "core/format/pickle_reader.hpp"
#include "core/format/pickle_writer.hpp"
#include "core/format/torch_records.hpp"

namespace reprise {

namespace {

/// Reads each storage once, however many tensors take turns with it: records don't overlap, so all
/// of them together are no larger than the item.
class ArchiveStorages final : public StorageSource {
 public:
  explicit ArchiveStorages(Archive& archive) : archive_(archive) {}

  std::optional<ByteSpan> storage(std::string_view key) override {
    if (const auto known = read_.find(key); known != read_.end()) return known->second;
    const Record* record = archive_.find("data/" + std::string(key));
    if (record == nullptr) return std::nullopt;
    return read_.emplace(key, archive_.read(*record, kBytesItemMax)).first->second;
  }

 private:
  Archive& archive_;
  std::map<std::string, Bytes, std::less<>> read_;
};

BytesItem opaque(std::string because) { return {.opaque_because = std::move(because)}; }

BytesItem read_archive(Archive& archive) {
  check_version(archive);
  const Record& record = archive.at("data.pkl");
  const Bytes pickle = archive.read(record, kBytesItemMax);
  ArchiveStorages storages(archive);
  // The elements' sizes are known to the pickle's reader alone, so big-endian ones stay as they
  // are.
  StorageSource* usable = byte_order_of(archive) == ByteOrder::kLittle ? &storages : nullptr;
  BytesItem item;
  try {
    PickledValue read = decode_value(
        pickle, pickle_at(archive.source(), archive.content_range(record).offset), usable);
    item.opaque_because = std::move(read.reason);
    item.unlisted_names = std::move(read.unlisted_names);
    if (!read.opaque) item.value = std::move(read.value);
  } catch (const Error& error) {
    if (error.code() != Code::kUnsupported) throw;
    item.opaque_because = error.message();  // its checksums are compared all the same
  }
  item.prefix = archive.prefix();
  for (const Record& each : archive.records()) {
    if (!archive.checksum_matches(each)) item.checksum_mismatches.push_back(each.name);
  }
  return item;
}

}  // namespace

BytesItem read_bytes_item(ItemSource& source) {
  try {
    Archive archive(source);
    return read_archive(archive);
  } catch (const Error& error) {
    if (error.code() == Code::kUnsupported) return opaque(error.message());
    throw;
  }
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

}  // namespace reprise
