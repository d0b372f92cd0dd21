#pragma once
// Measures the machine's speed limits, using code that does only what is measured. Benchmarks
// compare their rates with these. All rates are for warm memory; the bytes are divided evenly among
// the threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise::bench {

/// Memory aligned to 64 bytes and filled from a seeded stream, so that all of its pages are
/// present.
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

/// A directory for the files of a benchmark. It is removed with its content at the end.
class Place {
 public:
  /// Creates the directory in memory, under /dev/shm. Ends the program if that is not a tmpfs.
  static Place tmpfs();
  /// Creates the directory on the program's disk. Ends the program if that is a tmpfs.
  static Place disk();
  Place(Place&&) = default;
  Place& operator=(Place&&) = delete;
  ~Place();

  /// Returns the path of a file in the directory.
  std::string file(const std::string& name) const { return *path_ + "/" + name; }
  const std::string& path() const { return *path_; }

 private:
  explicit Place(std::string path);
  std::unique_ptr<std::string> path_;
};

/// A file that stays open for the lifetime of this object.
class OpenFile {
 public:
  /// Ends the program if the file can't be opened. `flags` are those of open().
  OpenFile(const std::string& path, int flags);
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

enum class Durable : std::uint8_t { kNo, kYes };

/// Creates `path`, which must not exist, and writes `bytes` with large pwrites; each thread writes
/// its part of the file. With Durable::kYes also calls fdatasync, like `dd conv=fdatasync`.
void write_new_file(const std::string& path, ByteSpan bytes, int threads, Durable durable);
/// Reads the file into `out`; each thread reads its part with pread.
void read_file(const std::string& path, MutableByteSpan out, int threads);
/// Reads the file, each thread its part, block by block into memory that stays in its cache.
void read_through(const std::string& path, int threads);
/// Reads files of the same size in this way, and passes each time the blocks from the same place of
/// each file to `use`, on the thread that has read them.
using Blocks = std::span<const MutableByteSpan>;
void read_through(const std::vector<std::string>& paths, int threads,
                  const std::function<void(Blocks)>& use);
/// Copies part of a file block by block into the new file `to`, and reads that again; computes the
/// CRC-32 of what is read each time.
void copy_part(const std::string& path, std::size_t begin, std::size_t bytes,
               const std::string& to);
/// Maps the file into memory and copies it into `out`.
void copy_mapped_file(const std::string& path, MutableByteSpan out, int threads);
/// Copies `source` to `target`; both have the same size.
void copy_memory(ByteSpan source, MutableByteSpan target, int threads);
/// Returns the sum of all 64-bit words of `a` and `b`, which are read in parallel as in a
/// comparison. The sizes are equal and multiples of 64 bytes.
std::uint64_t sum_of_two(ByteSpan a, ByteSpan b, int threads);
/// Computes the CRC-32 of each thread's part. Returns a number that depends on all of them, so that
/// the optimizer can't remove the work.
std::uint32_t crc32_of_parts(ByteSpan bytes, int threads);
/// The same with SHA-256.
std::uint32_t sha256_of_parts(ByteSpan bytes, int threads);

/// Ends the program with a message. A failed benchmark must not report a rate.
[[noreturn]] void give_up(const std::string& what);

}  // namespace reprise::bench
