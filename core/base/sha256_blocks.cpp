#include "core/base/sha256_blocks.hpp"

#include <bit>

#include "core/base/bytes.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace reprise {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr std::array<std::uint32_t, 64> kRoundWords = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return __builtin_bswap32(word);
}

/// Returns word `i` of the message's schedule; `last` has the 16 words before it, by i modulo 16.
std::uint32_t next_word(const std::array<std::uint32_t, 16>& last, std::size_t i) {
  const std::uint32_t early = last[(i + 1) % 16];
  const std::uint32_t late = last[(i + 14) % 16];
  return last[i % 16] + last[(i + 9) % 16] +
         (std::rotr(early, 7) ^ std::rotr(early, 18) ^ (early >> 3U)) +
         (std::rotr(late, 17) ^ std::rotr(late, 19) ^ (late >> 10U));
}

}  // namespace

void sha256_blocks_plain(Sha256Words& words, const std::byte* at, std::size_t blocks) {
  for (; blocks > 0; --blocks, at += kSha256Block) {
    std::array<std::uint32_t, 16> last{};
    for (std::size_t i = 0; i < last.size(); ++i) last[i] = big_endian(at + 4 * i);
    auto [a, b, c, d, e, f, g, h] = words;
    std::uint32_t b_xor_c = b ^ c;
#pragma GCC unroll 64
    for (std::size_t i = 0; i < kRoundWords.size(); ++i) {
      if (i >= last.size()) last[i % 16] = next_word(last, i);
      const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                  (((f ^ g) & e) ^ g) + kRoundWords[i] + last[i % 16];
      // The majority of a, b and c: b, unless a and c both differ from it.
      const std::uint32_t a_xor_b = a ^ b;
      const std::uint32_t majority = b ^ (a_xor_b & b_xor_c);
      const std::uint32_t second =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
      b_xor_c = a_xor_b;
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const Sha256Words sum = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < sum.size(); ++i) words[i] += sum[i];
  }
}

#if defined(__x86_64__)
namespace {

const __m128i* vectors(const void* at) { return static_cast<const __m128i*>(at); }

// The instructions want the words in two registers, from the highest lane to the lowest: a, b, e, f
// and c, d, g, h. Each does two rounds, so that the two change roles.
__attribute__((target("sha,sse4.1,ssse3"))) void sha256_blocks_x86(Sha256Words& words,
                                                                   const std::byte* at,
                                                                   std::size_t blocks) {
  const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(vectors(words.data())), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(vectors(words.data() + 4)), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; blocks > 0; --blocks, at += kSha256Block) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i last[4];
    for (std::size_t i = 0; i < 4; ++i) {
      last[i] = _mm_shuffle_epi8(_mm_loadu_si128(vectors(at + 16 * i)), big_endian);
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) {
      const __m128i round = _mm_add_epi32(last[0], *vectors(kRoundWords.data() + 4 * i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, round);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(round, 0x0e));
      const __m128i middle = _mm_alignr_epi8(last[3], last[2], 4);
      const __m128i next = _mm_sha256msg2_epu32(
          _mm_add_epi32(_mm_sha256msg1_epu32(last[0], last[1]), middle), last[3]);
      last[0] = last[1], last[1] = last[2], last[2] = last[3], last[3] = next;
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  auto* out = reinterpret_cast<__m128i*>(words.data());
  _mm_storeu_si128(out, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(out + 1, _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace

Sha256Blocks sha256_blocks_of_processor() {
  constexpr unsigned kSsse3 = 1U << 9U, kSse41 = 1U << 19U, kSha = 1U << 29U;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSsse3) == 0 || (c & kSse41) == 0) return nullptr;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b & kSha) == 0) return nullptr;
  return sha256_blocks_x86;
}
#else
Sha256Blocks sha256_blocks_of_processor() { return nullptr; }
#endif

}  // namespace reprise
