#pragma once
// Defines constants of the zip format (PKWARE's APPNOTE 6.3) that both the reader and the writer
// use.

#include <cstddef>
#include <cstdint>

namespace reprise::zip {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kDescriptorSignature = 0x08074b50;
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kWideEndSignature = 0x06064b50;
inline constexpr std::uint32_t kWideLocatorSignature = 0x07064b50;
inline constexpr std::uint32_t kEndSignature = 0x06054b50;

inline constexpr std::size_t kLocalBytes = 30;
inline constexpr std::size_t kLocalCrcAt = 14;
inline constexpr std::size_t kDescriptorCrcAt = 4;
inline constexpr std::size_t kCentralBytes = 46;
inline constexpr std::size_t kCentralCrcAt = 16;
inline constexpr std::size_t kWideEndBytes = 56;
inline constexpr std::size_t kWideLocatorBytes = 20;
inline constexpr std::size_t kEndBytes = 22;

inline constexpr std::uint16_t kFlagEncrypted = 0x0001;
inline constexpr std::uint16_t kFlagDescriptor = 0x0008;  ///< the sizes follow the content
inline constexpr std::uint16_t kFlagUtf8 = 0x0800;
inline constexpr std::uint16_t kMethodStored = 0;
inline constexpr std::uint16_t kMethodDeflated = 8;
inline constexpr unsigned kVersionMax = 63;  ///< the highest version that exists
inline constexpr std::uint32_t kDirectoryAttribute = 0x10;

inline constexpr std::uint16_t kWideExtra = 0x0001;  ///< id of the ZIP64 extra field
inline constexpr std::uint16_t kUnicodeNameExtra = 0x7075;
inline constexpr std::uint16_t kPaddingExtra = 0x4246;  ///< 'FB', padding before the content

/// If a 32-bit field has this value, the actual value is in the ZIP64 field.
inline constexpr std::uint64_t kSaturated32 = 0xffffffff;
inline constexpr std::uint64_t kSaturated16 = 0xffff;

}  // namespace reprise::zip
