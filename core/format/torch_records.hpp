#pragma once
// Records that every torch.save item has besides its pickle and storages.

#include <cstdint>
#include <string_view>

#include "core/base/bytes.hpp"
#include "core/format/pickle/pickle_reader.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/archive_writer.hpp"

namespace reprise {

enum class ByteOrder { kLittle, kBig };

/// Throws UNSUPPORTED unless the record `.data/version`, or else `version`, says 1 to 10; TORN_FILE
/// if it has neither.
void check_version(Archive& archive);
/// Returns the byte order of the storages; little if the archive does not say (before 2.1). Throws
/// UNSUPPORTED for other words.
ByteOrder byte_order_of(Archive& archive);

/// Describes a pickle that begins at byte `offset` of the slice, for messages.
PickleSource pickle_at(const ItemSource& source, std::uint64_t offset);

/// Adds the records before the storages: data.pkl, .format_version, .storage_alignment, byteorder.
void add_leading_records(ArchiveWriter& out, ByteSpan pickle);
inline constexpr std::uint64_t kSerializationIdBytes = 40;
/// Adds version, and .data/serialization_id up to its content.
void begin_serialization_id(ArchiveWriter& out);
/// Writes kSerializationIdBytes digits. PyTorch's id is 20 digits of a hash of the names and 20 of
/// the contents' checksums, only for information; this one is made in a similar way, so that equal
/// items have equal bytes.
void write_serialization_id(std::uint64_t pickle_hash, std::uint32_t contents_crc,
                            MutableByteSpan out);
/// Adds version and .data/serialization_id, then the directory.
void add_trailing_records(ArchiveWriter& out, std::uint64_t pickle_hash,
                          std::uint32_t contents_crc);

}  // namespace reprise
