#pragma once
// The digest of a run: elements that follow one another in memory and in the tensor. Uses the
// processor's vectors where it has them; the result is the same. It stands in a header because
// libreprise_witness.so uses it and needs nothing else, not even libc.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/geometry/element_digest.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace reprise {

/// Elements of a tensor; `key` identifies the tensor, and `index` is the first element's in it.
struct Run {
  std::uint64_t key = 0;
  std::int64_t index = 0;
  const std::byte* elements = nullptr;
  std::int64_t length = 0;
};

/// For any processor.
template <class Word>
std::uint64_t run_digest_plain(const Run& run) {
  std::uint64_t sum = 0;
  const std::byte* element = run.elements;
  for (std::int64_t i = 0; i < run.length; ++i, element += sizeof(Word)) {
    Word word;
    std::memcpy(&word, element, sizeof word);
    sum += element_digest(run.key, run.index + i, word);
  }
  return sum;
}

#if defined(__x86_64__)
namespace detail {

using Lanes4 = std::uint64_t __attribute__((vector_size(32)));
using Lanes8 = std::uint64_t __attribute__((vector_size(64)));

// Each loads that many elements, one into each lane.

template <class Word>
[[gnu::target("avx2")]] void load(const std::byte* at, Lanes4& lanes) {
  if constexpr (sizeof(Word) == 1) {
    int four = 0;
    std::memcpy(&four, at, sizeof four);
    lanes = (Lanes4)_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four));
  } else if constexpr (sizeof(Word) == 2) {
    lanes = (Lanes4)_mm256_cvtepu16_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
  } else if constexpr (sizeof(Word) == 4) {
    lanes = (Lanes4)_mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  } else {
    std::memcpy(&lanes, at, sizeof lanes);
  }
}

template <class Word>
[[gnu::target("avx512f,avx512dq")]] void load(const std::byte* at, Lanes8& lanes) {
  constexpr __mmask8 kAll = 0xff;
  if constexpr (sizeof(Word) == 1) {
    lanes = (Lanes8)_mm512_maskz_cvtepu8_epi64(
        kAll, _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
  } else if constexpr (sizeof(Word) == 2) {
    lanes = (Lanes8)_mm512_maskz_cvtepu16_epi64(
        kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  } else if constexpr (sizeof(Word) == 4) {
    lanes = (Lanes8)_mm512_maskz_cvtepu32_epi64(
        kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  } else {
    std::memcpy(&lanes, at, sizeof lanes);
  }
}

/// Is compiled into each function that calls it, for the processor of that function.
template <class Word, class Lanes>
[[gnu::always_inline]] inline std::uint64_t run_digest_in(const Run& run) {
  constexpr std::int64_t kLanes = sizeof(Lanes) / sizeof(std::uint64_t);
  Lanes position = {};
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    position[lane] = run.key + static_cast<std::uint64_t>(run.index + lane) * kIndexStep;
  }
  Lanes sums = {};
  std::int64_t done = 0;
  const std::byte* at = run.elements;
  for (; done + kLanes <= run.length; done += kLanes, at += kLanes * sizeof(Word)) {
    Lanes x;
    load<Word>(at, x);
    x = (x ^ position) + kMixStart;
    x = (x ^ (x >> 30U)) * kMixFirst;
    x = (x ^ (x >> 27U)) * kMixSecond;
    sums += x ^ (x >> 31U);
    position += kLanes * kIndexStep;
  }
  std::uint64_t sum = run_digest_plain<Word>({run.key, run.index + done, at, run.length - done});
  for (std::int64_t lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum;
}

}  // namespace detail

/// For a processor with AVX2: four elements at once.
template <class Word>
[[gnu::target("avx2")]] std::uint64_t run_digest_avx2(const Run& run) {
  return detail::run_digest_in<Word, detail::Lanes4>(run);
}
/// For a processor with AVX-512 (F and DQ): eight elements at once.
template <class Word>
[[gnu::target("avx512f,avx512dq")]] std::uint64_t run_digest_avx512(const Run& run) {
  return detail::run_digest_in<Word, detail::Lanes8>(run);
}
#endif

/// Returns the sum of the contributions of the run's elements. `Word` is as for ElementDigest.
template <class Word>
std::uint64_t run_digest(const Run& run) {
#if defined(__x86_64__)
  constexpr std::int64_t kWorthwhile = 32;
  if constexpr (std::is_integral_v<Word>) {
    if (run.length >= kWorthwhile) {
      if (__builtin_cpu_supports("avx512dq")) return run_digest_avx512<Word>(run);
      if (__builtin_cpu_supports("avx2")) return run_digest_avx2<Word>(run);
    }
  }
#endif
  return run_digest_plain<Word>(run);
}

}  // namespace reprise
