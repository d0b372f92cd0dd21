#pragma once
// The compression function of SHA-256 (FIPS 180-4), on whole blocks of 64 bytes.

#include <array>
#include <cstddef>
#include <cstdint>

namespace reprise {

using Sha256Words = std::array<std::uint32_t, 8>;
constexpr std::size_t kSha256Block = 64;

/// Takes `blocks` blocks at `at` into `words`.
using Sha256Blocks = void (*)(Sha256Words& words, const std::byte* at, std::size_t blocks);

/// For any processor.
void sha256_blocks_plain(Sha256Words& words, const std::byte* at, std::size_t blocks);

/// Returns the one that uses the processor's own instructions, which is four times as fast, or
/// nullptr where it has none.
Sha256Blocks sha256_blocks_of_processor();

}  // namespace reprise
