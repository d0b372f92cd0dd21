#pragma once
// Reads and writes the records that every item of torch.save has in addition to its pickle and
// storages.

#include <cstdint>
#include <string_view>

#include "core/base/bytes.hpp"
#include "core/format/pickle/pickle_reader.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/archive_writer.hpp"

namespace reprise {

enum class ByteOrder { kLittle, kBig };

/// Checks the small records that torch reads with every archive: the version (`.data/version`, or
/// `version` if there is no such record), `.storage_alignment` and `.data/serialization_id`. Throws
/// UNSUPPORTED unless the version is 1 to 10, and TORN_FILE if both records of it are missing, or
/// if torch can't read one of the others.
void check_torch_records(Archive& archive);
/// Returns the byte order of the storages. Archives that torch wrote before 2.1 do not state it and
/// are treated as little-endian. Throws TORN_FILE if the record says neither "little" nor "big".
ByteOrder byte_order_of(Archive& archive);

/// Returns the position in the file of the pickle that begins at byte `offset` of the slice. Used
/// in error messages.
PickleSource pickle_at(const ItemSource& source, std::uint64_t offset);

/// Adds the records that precede the storages: data.pkl, .format_version, .storage_alignment and
/// byteorder.
void add_leading_records(ArchiveWriter& out, ByteSpan pickle);
inline constexpr std::uint64_t kSerializationIdBytes = 40;
/// Adds the record `version`, then begins the record `.data/serialization_id`. The caller must add
/// the content of the latter.
void begin_serialization_id(ArchiveWriter& out);
/// Writes kSerializationIdBytes digits. In PyTorch's id, the first 20 digits are a hash of the
/// record names and the other 20 come from the checksums of the contents; the id is only
/// informational. The digits written here are made in a similar way, so that equal items have equal
/// bytes.
void write_serialization_id(std::uint64_t pickle_hash, std::uint32_t contents_crc,
                            MutableByteSpan out);
/// Adds the records `version` and `.data/serialization_id`, then the directory.
void add_trailing_records(ArchiveWriter& out, std::uint64_t pickle_hash,
                          std::uint32_t contents_crc);

}  // namespace reprise
