#pragma once
// The records that every item of torch.save has besides its pickle and its storages.

#include <cstdint>
#include <string_view>

#include "core/base/bytes.hpp"
#include "core/format/archive.hpp"
#include "core/format/archive_writer.hpp"
#include "core/format/pickle_reader.hpp"

namespace reprise {

enum class ByteOrder { kLittle, kBig };

/// UNSUPPORTED unless the record `.data/version`, else `version`, says 1 to 10; TORN_FILE without
/// either.
void check_version(Archive& archive);
/// Of the storages. Little where the archive does not say (before 2.1); UNSUPPORTED for other
/// words.
ByteOrder byte_order_of(Archive& archive);

/// A pickle that begins at byte `offset` of the slice, for its reader's messages.
PickleSource pickle_at(const ItemSource& source, std::uint64_t offset);

/// data.pkl, .format_version, .storage_alignment and byteorder: what stands before the storages.
void add_leading_records(ArchiveWriter& out, ByteSpan pickle);
inline constexpr std::uint64_t kSerializationIdBytes = 40;
/// version, and .data/serialization_id up to its content.
void begin_serialization_id(ArchiveWriter& out);
/// The id's kSerializationIdBytes. PyTorch's is 20 digits of a hash of the names and 20 of the
/// contents' checksums, for information only; this one is made likewise, so that equal items have
/// equal bytes.
void write_serialization_id(std::uint64_t pickle_hash, std::uint32_t contents_crc,
                            MutableByteSpan out);
/// version and .data/serialization_id, then the directory.
void add_trailing_records(ArchiveWriter& out, std::uint64_t pickle_hash,
                          std::uint32_t contents_crc);

}  // namespace reprise
