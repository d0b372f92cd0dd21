#include "tests/bench/limit.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/random.hpp"
#include "core/base/sha256.hpp"
#include "core/format/zip/crc32.hpp"

namespace reprise::bench {
namespace {

constexpr std::size_t kLine = 64;
/// Number of bytes that one system call reads or writes. Larger calls are no faster; smaller calls
/// are slower.
constexpr std::size_t kCall = std::size_t{16} << 20U;
/// Number of bytes that stay in a thread's cache if they are only read there.
constexpr std::size_t kBlock = std::size_t{1} << 20U;
/// The same if they are used, too. Larger blocks are slower.
constexpr std::size_t kUsedBlock = std::size_t{256} << 10U;

/// Divides the range [0, size) equally among `threads` threads, of which the caller's is one. Each
/// thread calls part(begin, end) for its share.
void in_parts(std::size_t size, int threads,
              const std::function<void(std::size_t, std::size_t)>& part) {
  const auto count = static_cast<std::size_t>(threads);
  const std::size_t step = (size / count + kLine - 1) / kLine * kLine;
  const auto begin = [&](std::size_t t) { return std::min(size, t * step); };
  const auto end = [&](std::size_t t) { return t + 1 == count ? size : begin(t + 1); };
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < count; ++t) {
    others.emplace_back([&part, first = begin(t), last = end(t)] { part(first, last); });
  }
  part(begin(0), end(0));
}

void advance(ssize_t moved, std::size_t& at, const char* call) {
  if (moved <= 0) give_up(std::string(call) + ": " + std::strerror(errno));
  at += static_cast<std::size_t>(moved);
}

void read_whole(const OpenFile& file, std::size_t at, MutableByteSpan out) {
  for (std::size_t done = 0; done < out.size();) {
    advance(::pread(file.get(), out.data() + done, std::min(kCall, out.size() - done),
                    static_cast<off_t>(at + done)),
            done, "pread");
  }
}

void write_whole(const OpenFile& file, std::size_t at, ByteSpan bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    advance(::pwrite(file.get(), bytes.data() + done, std::min(kCall, bytes.size() - done),
                     static_cast<off_t>(at + done)),
            done, "pwrite");
  }
}

bool on_tmpfs(const std::string& path) {
  struct statfs status = {};
  if (::statfs(path.c_str(), &status) != 0) give_up(path + ": " + std::strerror(errno));
  return status.f_type == TMPFS_MAGIC;
}

std::string new_directory(std::string pattern) {
  if (::mkdtemp(pattern.data()) == nullptr) give_up(pattern + ": " + std::strerror(errno));
  return pattern;
}

}  // namespace

void WarmMemory::Free::operator()(std::byte* freed) const {
  ::operator delete[](freed, std::align_val_t{kLine});
}

WarmMemory::WarmMemory(std::size_t bytes, std::uint64_t seed)
    : memory_(new (std::align_val_t{kLine}) std::byte[bytes]), size_(bytes) {
  // Fills the memory with repetitions of the stream's first words, since the speed of a copy does
  // not depend on the content.
  std::vector<std::uint64_t> words(kLine * 1024);
  const Stream stream(seed);
  for (std::size_t n = 0; n < words.size(); ++n) words[n] = stream.at(n);
  const auto pattern = std::as_bytes(std::span(words));
  for (std::size_t at = 0; at < bytes; at += pattern.size()) {
    std::memcpy(memory_.get() + at, pattern.data(), std::min(pattern.size(), bytes - at));
  }
}

Place::Place(std::string path) : path_(std::make_unique<std::string>(std::move(path))) {}

Place::~Place() {
  if (!path_) return;
  std::error_code ignored;
  std::filesystem::remove_all(*path_, ignored);
}

Place Place::tmpfs() {
  Place place(new_directory("/dev/shm/reprise-bench-XXXXXX"));
  if (!on_tmpfs(place.path())) give_up("/dev/shm is no tmpfs: there is no limit to hold rates to");
  return place;
}

Place Place::disk() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  Place place(new_directory((program.parent_path() / "files-XXXXXX").string()));
  if (on_tmpfs(place.path())) give_up("the build directory is on a tmpfs: build it on a disk");
  return place;
}

OpenFile::OpenFile(const std::string& path, int flags)
    : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
  if (fd_ < 0) give_up(path + ": " + std::strerror(errno));
}

OpenFile::OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

OpenFile::~OpenFile() {
  if (fd_ >= 0) ::close(fd_);
}

void write_new_file(const std::string& path, ByteSpan bytes, int threads, Durable durable) {
  const OpenFile file(path, O_WRONLY | O_CREAT | O_EXCL);
  in_parts(bytes.size(), threads, [&](std::size_t begin, std::size_t end) {
    write_whole(file, begin, bytes.subspan(begin, end - begin));
  });
  if (durable == Durable::kYes && ::fdatasync(file.get()) != 0) {
    give_up(std::string("fdatasync: ") + std::strerror(errno));
  }
}

void read_file(const std::string& path, MutableByteSpan out, int threads) {
  const OpenFile file(path, O_RDONLY);
  in_parts(out.size(), threads, [&](std::size_t begin, std::size_t end) {
    read_whole(file, begin, out.subspan(begin, end - begin));
  });
}

void read_through(const std::string& path, int threads) { read_through({path}, threads, {}); }

void read_through(const std::vector<std::string>& paths, int threads,
                  const std::function<void(Blocks)>& use) {
  std::vector<OpenFile> files;
  for (const auto& path : paths) files.emplace_back(path, O_RDONLY);
  in_parts(std::filesystem::file_size(paths[0]), threads, [&](std::size_t begin, std::size_t end) {
    const std::size_t step = (use ? kUsedBlock : kBlock) / paths.size();
    std::vector<std::byte> memory(step * paths.size());
    std::vector<MutableByteSpan> blocks(paths.size());
    for (std::size_t at = begin; at < end; at += blocks[0].size()) {
      const std::size_t size = std::min(step, end - at);
      for (std::size_t n = 0; n < paths.size(); ++n) {
        blocks[n] = MutableByteSpan(memory).subspan(n * step, size);
        read_whole(files[n], at, blocks[n]);
      }
      if (use) use(blocks);
    }
  });
}

void copy_part(const std::string& path, std::size_t begin, std::size_t bytes,
               const std::string& to) {
  const OpenFile source(path, O_RDONLY);
  const OpenFile target(to, O_RDWR | O_CREAT | O_EXCL);
  std::vector<std::byte> memory(kUsedBlock);
  std::uint32_t sums[2] = {};
  for (std::size_t at = 0; at < bytes; at += kUsedBlock) {
    const auto block = MutableByteSpan(memory).first(std::min(kUsedBlock, bytes - at));
    read_whole(source, begin + at, block);
    sums[0] ^= crc32_of(block);
    write_whole(target, at, block);
  }
  for (std::size_t at = 0; at < bytes; at += kUsedBlock) {
    const auto block = MutableByteSpan(memory).first(std::min(kUsedBlock, bytes - at));
    read_whole(target, at, block);
    sums[1] ^= crc32_of(block);
  }
  if (sums[0] != sums[1]) give_up("what was written to " + to + " is not what was read");
}

void copy_mapped_file(const std::string& path, MutableByteSpan out, int threads) {
  const OpenFile file(path, O_RDONLY);
  void* const mapped =
      ::mmap(nullptr, out.size(), PROT_READ, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (mapped == MAP_FAILED) give_up("mmap " + path + ": " + std::strerror(errno));
  copy_memory({static_cast<const std::byte*>(mapped), out.size()}, out, threads);
  ::munmap(mapped, out.size());
}

void copy_memory(ByteSpan source, MutableByteSpan target, int threads) {
  in_parts(source.size(), threads, [&](std::size_t begin, std::size_t end) {
    std::memcpy(target.data() + begin, source.data() + begin, end - begin);
  });
}

std::uint64_t sum_of_two(ByteSpan a, ByteSpan b, int threads) {
  std::atomic<std::uint64_t> all = 0;
  in_parts(a.size(), threads, [&](std::size_t begin, std::size_t end) {
    std::uint64_t sums[8] = {};  // separate sums, so that no addition waits for another
    for (std::size_t at = begin; at < end; at += kLine) {
      for (std::size_t word = 0; word < 8; ++word) {
        sums[word] += load_le<std::uint64_t>(a.subspan(at + word * 8, 8)) +
                      load_le<std::uint64_t>(b.subspan(at + word * 8, 8));
      }
    }
    for (const auto sum : sums) all += sum;
  });
  return all;
}

std::uint32_t crc32_of_parts(ByteSpan bytes, int threads) {
  std::atomic<std::uint32_t> all = 0;
  in_parts(bytes.size(), threads, [&](std::size_t begin, std::size_t end) {
    all ^= crc32_of(bytes.subspan(begin, end - begin));
  });
  return all;
}

std::uint32_t sha256_of_parts(ByteSpan bytes, int threads) {
  std::atomic<std::uint32_t> all = 0;
  in_parts(bytes.size(), threads, [&](std::size_t begin, std::size_t end) {
    all ^= load_le<std::uint32_t>(sha256_of(bytes.subspan(begin, end - begin)));
  });
  return all;
}

void give_up(const std::string& what) {
  std::fprintf(stderr, "benchmark: %s\n", what.c_str());
  std::abort();
}

}  // namespace reprise::bench
