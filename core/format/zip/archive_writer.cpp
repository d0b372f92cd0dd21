#include "core/format/zip/archive_writer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/format/zip/zip_layout.hpp"

namespace reprise {

namespace {

// Size of the padding's header: the id 'FB' and a length field.
constexpr std::uint64_t kPaddingHeader = 4;
constexpr std::uint64_t kSpecVersion = 45;  // the first version with ZIP64
constexpr std::size_t kRoom = 1024;         // enough for a tensor item without the elements
constexpr std::uint16_t kMadeBy = 0x031e;   // the value in the ZIP64 end record that PyTorch writes

bool is_wide(std::uint64_t value) { return value >= zip::kSaturated32; }

std::uint32_t clipped(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min(value, zip::kSaturated32));
}

std::uint16_t flags_of(std::uint64_t size) {
  return size == 0 ? zip::kFlagUtf8
                   : static_cast<std::uint16_t>(zip::kFlagUtf8 | zip::kFlagDescriptor);
}

template <class T>
void append_zeros(Bytes& out, std::size_t count) {
  out.insert(out.end(), count * sizeof(T), std::byte{0});
}

// Returns the ZIP64 field of a record. It contains the two sizes if `size` does not fit into 32
// bits, and then the header offset if that does not fit. The field is empty if both fit.
Bytes wide_field(std::uint64_t size, std::uint64_t packed_size, std::uint64_t header_offset) {
  Bytes field;
  if (is_wide(size)) {
    append_le(field, size);
    append_le(field, packed_size);
  }
  if (is_wide(header_offset)) append_le(field, header_offset);
  if (field.empty()) return field;
  Bytes out;
  append_le(out, zip::kWideExtra);
  append_le(out, static_cast<std::uint16_t>(field.size()));
  append(out, field);
  return out;
}

}  // namespace

void ArchiveWriter::add(std::string_view name, ByteSpan content) {
  begin(name, content.size());
  append(pending_, content);
  end(crc32_of(content));
}

void ArchiveWriter::begin(std::string_view name, std::uint64_t size) {
  std::string full_name;
  full_name.reserve(prefix_.size() + 1 + name.size());
  full_name.append(prefix_).append(1, '/').append(name);
  const Entry& entry = entries_.emplace_back(Entry{std::move(full_name), position_, size});
  const std::size_t before = pending_.size();
  if (pending_.empty()) pending_.reserve(kRoom);
  // The packed size in this field is 0, as PyTorch writes it.
  const Bytes extra = wide_field(size, 0, entry.header_offset);
  const std::uint64_t unpadded =
      entry.header_offset + zip::kLocalBytes + entry.name.size() + extra.size() + kPaddingHeader;
  const std::uint64_t pad = (kStorageAlignment - unpadded % kStorageAlignment) % kStorageAlignment;

  append_le(pending_, zip::kLocalSignature);
  append_le(pending_, std::uint16_t{0});
  append_le(pending_, flags_of(size));
  append_le(pending_, zip::kMethodStored);
  append_zeros<std::uint32_t>(pending_, 4);  // time and date, checksum, sizes
  append_le(pending_, static_cast<std::uint16_t>(entry.name.size()));
  append_le(pending_, static_cast<std::uint16_t>(extra.size() + kPaddingHeader + pad));
  append(pending_, as_bytes(entry.name));
  append(pending_, extra);
  append_le(pending_, zip::kPaddingExtra);
  append_le(pending_, static_cast<std::uint16_t>(pad));
  pending_.insert(pending_.end(), pad, std::byte{'Z'});
  position_ += pending_.size() - before;
}

std::size_t ArchiveWriter::end(std::uint32_t crc) {
  CHECK(!entries_.empty());
  const std::size_t number = entries_.size() - 1;
  Entry& entry = entries_.back();
  entry.crc = crc;
  position_ += entry.size;
  if (entry.size == 0) return number;
  entry.places.descriptor = position_ + zip::kDescriptorCrcAt;
  const std::size_t before = pending_.size();
  if (pending_.empty()) pending_.reserve(kRoom);
  append_le(pending_, zip::kDescriptorSignature);
  append_le(pending_, crc);
  if (is_wide(entry.size) || is_wide(entry.header_offset)) {
    append_le(pending_, entry.size);
    append_le(pending_, entry.size);
  } else {
    append_le(pending_, clipped(entry.size));
    append_le(pending_, clipped(entry.size));
  }
  position_ += pending_.size() - before;
  return number;
}

void ArchiveWriter::append_central_header(const Entry& entry) {
  const Bytes extra = wide_field(entry.size, entry.size, entry.header_offset);
  append_le(pending_, zip::kCentralSignature);
  append_zeros<std::uint16_t>(pending_, 2);  // version made by, version needed
  append_le(pending_, flags_of(entry.size));
  append_le(pending_, zip::kMethodStored);
  append_zeros<std::uint16_t>(pending_, 2);  // time and date
  append_le(pending_, entry.crc);
  append_le(pending_, clipped(entry.size));
  append_le(pending_, clipped(entry.size));
  append_le(pending_, static_cast<std::uint16_t>(entry.name.size()));
  append_le(pending_, static_cast<std::uint16_t>(extra.size()));
  append_zeros<std::uint16_t>(pending_, 5);  // comment, disk, attributes
  append_le(pending_, clipped(entry.header_offset));
  append(pending_, as_bytes(entry.name));
  append(pending_, extra);
}

void ArchiveWriter::finish() {
  const std::uint64_t directory = position_;
  const std::uint64_t count = entries_.size();
  const std::size_t before = pending_.size();
  for (Entry& entry : entries_) {
    entry.places.directory = directory + (pending_.size() - before) + zip::kCentralCrcAt;
    append_central_header(entry);
  }
  const std::uint64_t directory_size = pending_.size() - before;
  const std::uint64_t wide_end = directory + directory_size;

  append_le(pending_, zip::kWideEndSignature);
  append_le(pending_, std::uint64_t{zip::kWideEndBytes - 12});
  append_le(pending_, kMadeBy);
  append_le(pending_, static_cast<std::uint16_t>(kSpecVersion));
  append_zeros<std::uint32_t>(pending_, 2);  // disks
  append_le(pending_, count);
  append_le(pending_, count);
  append_le(pending_, directory_size);
  append_le(pending_, directory);

  append_le(pending_, zip::kWideLocatorSignature);
  append_le(pending_, std::uint32_t{0});
  append_le(pending_, wide_end);
  append_le(pending_, std::uint32_t{1});

  const auto count16 = static_cast<std::uint16_t>(std::min(count, zip::kSaturated16));
  append_le(pending_, zip::kEndSignature);
  append_zeros<std::uint16_t>(pending_, 2);  // disks
  append_le(pending_, count16);
  append_le(pending_, count16);
  append_le(pending_, clipped(directory_size));
  append_le(pending_, clipped(directory));
  append_zeros<std::uint16_t>(pending_, 1);  // comment
  position_ += pending_.size() - before;
}

const ArchiveWriter::ChecksumPlaces& ArchiveWriter::checksum_places(std::size_t record) const {
  CHECK(record < entries_.size() && entries_[record].places.directory != 0, record);
  return entries_[record].places;
}

ArchiveWriter::ChecksumPlaces ArchiveWriter::ChecksumPlaces::relative_to(
    std::uint64_t begin) const {
  ChecksumPlaces places{.directory = directory - begin, .descriptor = descriptor};
  if (places.descriptor) *places.descriptor -= begin;
  return places;
}

void ArchiveWriter::ChecksumPlaces::put(std::uint32_t crc, MutableByteSpan bytes) const {
  const auto store = [&](std::uint64_t at) {
    std::memcpy(bytes.subspan(at, sizeof(crc)).data(), &crc, sizeof(crc));
  };
  if (descriptor) store(*descriptor);
  store(directory);
}

Bytes ArchiveWriter::take() { return std::exchange(pending_, {}); }

}  // namespace reprise
