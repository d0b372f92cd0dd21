#include "core/adapters/posix/posix_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/adapters/posix/descriptor.hpp"
#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "reprise/error.hpp"

namespace reprise::posix {
namespace {

constexpr mode_t kFileMode = 0666;

class OpenFile final : public ReadFile {
 public:
  OpenFile(Descriptor fd, Entry entry, std::string path)
      : fd_(std::move(fd)), entry_(std::move(entry)), path_(std::move(path)) {}

  std::uint64_t size() const override { return entry_.size; }
  std::optional<Entry> entry() const override { return entry_; }

  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    while (!out.empty()) {
      const std::size_t got = read("pread", offset, out.size(), [&] {
        return ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
      });
      out = out.subspan(got);
      offset += got;
    }
  }

  void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) override {
    constexpr std::size_t kAtOnce = 96;
    while (!parts.empty()) {
      std::array<iovec, kAtOnce> vectors;
      const std::size_t count = std::min(parts.size(), kAtOnce);
      std::size_t wanted = 0;
      for (std::size_t i = 0; i < count; ++i) {
        vectors[i] = {parts[i].data(), parts[i].size()};
        wanted += parts[i].size();
      }
      std::size_t got = wanted == 0 ? 0 : read("preadv", offset, wanted, [&] {
        return ::preadv(fd_.get(), vectors.data(), static_cast<int>(count),
                        static_cast<off_t>(offset));
      });
      for (; !parts.empty() && parts.front().size() <= got; parts = parts.subspan(1)) {
        got -= parts.front().size();
        offset += parts.front().size();
      }
      if (got == 0) continue;
      // The call filled only the start of this part, so the rest is read here.
      read_at(offset + got, parts.front().subspan(got));
      offset += parts.front().size();
      parts = parts.subspan(1);
    }
  }

 private:
  /// Returns the number of bytes that the call transferred, which is at least 1. Builds an error
  /// message only if the call failed.
  template <class Call>
  std::size_t read(const char* name, std::uint64_t offset, std::size_t wanted, const Call& call) {
    auto got = call();
    if (got == -1) got = checked({name, path_, offset}, call);
    if (got == 0) {
      throw Error(Code::kTornFile,
                  "the file ends " + std::to_string(wanted) +
                      " bytes too early; it was truncated or its writer never finished",
                  {.file = path_, .offset = offset});
    }
    return static_cast<std::size_t>(got);
  }

  Descriptor fd_;
  Entry entry_;
  std::string path_;
};

class CreatedFile final : public WriteFile {
 public:
  CreatedFile(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  void write_at(std::uint64_t offset, ByteSpan bytes) override {
    CHECK(fd_.is_open(), path_);
    while (!bytes.empty()) {
      const auto put = checked({"pwrite", path_, offset}, [&] {
        return ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      });
      if (put == 0) fail({"pwrite", path_, offset}, EIO);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
      offset += static_cast<std::uint64_t>(put);
    }
    send_off(offset);
  }

  void sync() override {
    CHECK(fd_.is_open(), path_);
    checked({"fdatasync", path_}, [this] { return ::fdatasync(fd_.get()); });
  }

  void close() override {
    CHECK(fd_.is_open(), path_);
    fd_.close({"close", path_});
  }

 private:
  /// Makes the disk start writing the data before offset `end`, so that a later sync() takes less
  /// time. If writing fails, sync() reports the error.
  void send_off(std::uint64_t end) {
    constexpr std::uint64_t kStretch = std::uint64_t{16} << 20U;
    if (end < sent_ + kStretch) return;
    ::sync_file_range(fd_.get(), static_cast<off_t>(sent_), static_cast<off_t>(end - sent_),
                      SYNC_FILE_RANGE_WRITE);
    sent_ = end;
  }

  Descriptor fd_;
  std::string path_;
  std::uint64_t sent_ = 0;  ///< writing to disk has been started up to this offset
};

[[noreturn]] void fail_to_open(const std::string& path, int error) {
  struct stat status = {};
  const bool link = ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  if (link && error == ENOENT) {
    throw Error(Code::kNotFound, "open: a symbolic link whose target does not exist",
                {.file = path});
  }
  if (error == ELOOP) {
    throw Error(Code::kIo, "open: symbolic links form a loop", {.file = path});
  }
  fail({"open", path}, error);
}

void require_regular(const struct stat& status, const std::string& path) {
  if (S_ISREG(status.st_mode)) return;
  throw Error(Code::kIo, "open: this is a directory, a device or a pipe, not a file",
              {.file = path});
}

[[noreturn]] void refuse_pipe(const std::string& path) {
  throw Error(Code::kIo, "open for writing: this is a pipe, not a file", {.file = path});
}

/// Throws for what takes the place of a file that is to be written. A device may be written, such
/// as /dev/null. A pipe would wait for a reader, perhaps for ever.
void require_writable(int fd, const std::string& path) {
  struct stat status = {};
  checked({"fstat", path}, [&] { return ::fstat(fd, &status); });
  if (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode)) return;
  refuse_pipe(path);
}

}  // namespace

Entry entry_of(std::string name, const struct stat& status) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;  // per second
  const bool directory = S_ISDIR(status.st_mode);
  return {
      .name = std::move(name),
      .directory = directory,
      .size = directory ? 0 : static_cast<std::uint64_t>(status.st_size),
      .modified_ns = std::int64_t{status.st_mtim.tv_sec} * kNanoseconds + status.st_mtim.tv_nsec,
      .identity = mix64(status.st_dev, status.st_ino)};
}

std::unique_ptr<ReadFile> open_file(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) fail_to_open(path, errno);
  require_regular(status, path);  // checked first: opening a device may have side effects
  // The file may have been replaced by a pipe since the check. With O_NONBLOCK, open() then does
  // not wait for the pipe's writer.
  auto fd = Descriptor::adopt(checked(
      {"open", path}, [&path] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  checked({"fstat", path}, [&] { return ::fstat(fd.get(), &status); });
  require_regular(status, path);
  return std::make_unique<OpenFile>(std::move(fd), entry_of("", status), path);
}

std::unique_ptr<WriteFile> create_file(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  const auto open = [&path] { return ::open(path.c_str(), kFlags | O_NONBLOCK, kFileMode); };
  int raw = open();
  if (raw == -1 && errno == ENXIO) refuse_pipe(path);  // without a reader
  if (raw == -1) raw = checked({"open for writing", path}, open);
  auto fd = Descriptor::adopt(raw);
  require_writable(fd.get(), path);
  checked({"fcntl", path}, [&fd] { return ::fcntl(fd.get(), F_SETFL, 0); });
  return std::make_unique<CreatedFile>(std::move(fd), path);
}

}  // namespace reprise::posix
