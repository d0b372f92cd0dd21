#include "core/format/zip/archive_writer.hpp"

#include <algorithm>
#include <array>
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

// The fixed part of a header, which is appended to the archive as a whole.
class Fields {
 public:
  template <class T>
  Fields& put(T value) {
    CHECK(size_ + sizeof(value) <= bytes_.size(), size_);
    std::memcpy(bytes_.data() + size_, &value, sizeof(value));
    size_ += sizeof(value);
    return *this;
  }
  Fields& zeros(std::size_t bytes) {
    size_ += bytes;
    return *this;
  }
  ByteSpan bytes() const { return ByteSpan(bytes_).first(size_); }

 private:
  std::array<std::byte, 128> bytes_{};
  std::size_t size_ = 0;
};

// Returns the ZIP64 field of a record. It contains the two sizes if `size` does not fit into 32
// bits, and then the header offset if that does not fit. The field is empty if both fit.
Fields wide_field(std::uint64_t size, std::uint64_t packed_size, std::uint64_t header_offset) {
  const std::size_t numbers = (is_wide(size) ? 2U : 0U) + (is_wide(header_offset) ? 1U : 0U);
  Fields field;
  if (numbers == 0) return field;
  field.put(zip::kWideExtra).put(static_cast<std::uint16_t>(numbers * sizeof(std::uint64_t)));
  if (is_wide(size)) field.put(size).put(packed_size);
  if (is_wide(header_offset)) field.put(header_offset);
  return field;
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
  const Fields wide = wide_field(size, 0, entry.header_offset);
  const ByteSpan extra = wide.bytes();
  const std::uint64_t unpadded =
      entry.header_offset + zip::kLocalBytes + entry.name.size() + extra.size() + kPaddingHeader;
  const std::uint64_t pad = (kStorageAlignment - unpadded % kStorageAlignment) % kStorageAlignment;

  append(pending_, Fields()
                       .put(zip::kLocalSignature)
                       .zeros(2)
                       .put(flags_of(size))
                       .put(zip::kMethodStored)
                       .zeros(16)  // time and date, checksum, sizes
                       .put(static_cast<std::uint16_t>(entry.name.size()))
                       .put(static_cast<std::uint16_t>(extra.size() + kPaddingHeader + pad))
                       .bytes());
  append(pending_, as_bytes(entry.name));
  append(pending_, extra);
  append(pending_, Fields().put(zip::kPaddingExtra).put(static_cast<std::uint16_t>(pad)).bytes());
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
  Fields descriptor;
  descriptor.put(zip::kDescriptorSignature).put(crc);
  if (is_wide(entry.size) || is_wide(entry.header_offset)) {
    descriptor.put(entry.size).put(entry.size);
  } else {
    descriptor.put(clipped(entry.size)).put(clipped(entry.size));
  }
  append(pending_, descriptor.bytes());
  position_ += pending_.size() - before;
  return number;
}

void ArchiveWriter::append_central_header(const Entry& entry) {
  const Fields extra = wide_field(entry.size, entry.size, entry.header_offset);
  append(pending_, Fields()
                       .put(zip::kCentralSignature)
                       .zeros(4)  // version made by, version needed
                       .put(flags_of(entry.size))
                       .put(zip::kMethodStored)
                       .zeros(4)  // time and date
                       .put(entry.crc)
                       .put(clipped(entry.size))
                       .put(clipped(entry.size))
                       .put(static_cast<std::uint16_t>(entry.name.size()))
                       .put(static_cast<std::uint16_t>(extra.bytes().size()))
                       .zeros(10)  // comment, disk, attributes
                       .put(clipped(entry.header_offset))
                       .bytes());
  append(pending_, as_bytes(entry.name));
  append(pending_, extra.bytes());
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

  const auto count16 = static_cast<std::uint16_t>(std::min(count, zip::kSaturated16));
  append(pending_, Fields()
                       .put(zip::kWideEndSignature)
                       .put(std::uint64_t{zip::kWideEndBytes - 12})
                       .put(kMadeBy)
                       .put(static_cast<std::uint16_t>(kSpecVersion))
                       .zeros(8)  // disks
                       .put(count)
                       .put(count)
                       .put(directory_size)
                       .put(directory)
                       .bytes());
  append(pending_, Fields()
                       .put(zip::kWideLocatorSignature)
                       .put(std::uint32_t{0})
                       .put(wide_end)
                       .put(std::uint32_t{1})
                       .bytes());
  append(pending_, Fields()
                       .put(zip::kEndSignature)
                       .zeros(4)  // disks
                       .put(count16)
                       .put(count16)
                       .put(clipped(directory_size))
                       .put(clipped(directory))
                       .zeros(2)  // comment
                       .bytes());
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
