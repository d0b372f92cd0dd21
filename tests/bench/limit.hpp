#pragma once
// What the machine can do at best, as code that does nothing else: the limits that a benchmark's
// rates are held against. All rates are those of warm memory; threads share the bytes evenly.

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/bytes.hpp"

namespace reprise::bench {

/// Memory at 64-byte boundaries whose pages are there, filled from a seeded stream.
class WarmMemory {
 public:
  WarmMemory(std::size_t bytes, std::uint64_t seed);

  MutableByteSpan bytes() { return {memory_.get(), size_}; }
  ByteSpan bytes() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* freed) const;
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t size_;
};

/// A directory for files of a benchmark; removed with what is in it.
class Place {
 public:
  /// In memory, under /dev/shm. Ends the program if that is no tmpfs.
  static Place tmpfs();
  /// On the disk that the program lies on. Ends the program if that is a tmpfs.
  static Place disk();
  Place(Place&&) = default;
  Place& operator=(Place&&) = delete;
  ~Place();

  /// A path in it.
  std::string file(const std::string& name) const { return *path_ + "/" + name; }
  const std::string& path() const { return *path_; }

 private:
  explicit Place(std::string path);
  std::unique_ptr<std::string> path_;
};

enum class Durable : std::uint8_t { kNo, kYes };

/// Creates `path`, which must not be there, and writes `bytes` with large pwrites; each thread its
/// part of the one file. With kYes also fdatasync, as `dd conv=fdatasync` does.
void write_new_file(const std::string& path, ByteSpan bytes, int threads, Durable durable);
/// Each thread preads its part into `out`.
void read_file(const std::string& path, MutableByteSpan out, int threads);
/// Maps the file and copies it into `out`.
void copy_mapped_file(const std::string& path, MutableByteSpan out, int threads);
/// `source` and `target` have one size.
void copy_memory(ByteSpan source, MutableByteSpan target, int threads);
/// The sum of the 64-bit words of both, read side by side as a comparison reads them; sizes are
/// equal and multiples of 64 bytes.
std::uint64_t sum_of_two(ByteSpan a, ByteSpan b, int threads);
/// The CRC-32 of each thread's part; 0 or another number, so that nothing is optimised away.
std::uint32_t crc32_of_parts(ByteSpan bytes, int threads);

/// Ends the program with a message: a benchmark that went wrong has no rate.
[[noreturn]] void give_up(const std::string& what);

}  // namespace reprise::bench
