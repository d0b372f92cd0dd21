#include "core/adapters/posix/posix_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "core/adapters/posix/descriptor.hpp"
#include "core/base/check.hpp"
#include "core/base/error.hpp"

namespace reprise::posix {
namespace {

constexpr mode_t kFileMode = 0666;

class OpenFile final : public ReadFile {
 public:
  OpenFile(Descriptor fd, std::uint64_t size, std::string path)
      : fd_(std::move(fd)), size_(size), path_(std::move(path)) {}

  std::uint64_t size() const override { return size_; }

  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    while (!out.empty()) {
      const auto got = checked({"pread", path_, offset}, [&] {
        return ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
      });
      if (got == 0) {
        throw Error(Code::kTornFile,
                    "the file ends " + std::to_string(out.size()) +
                        " bytes too early; it was truncated or its writer never finished",
                    {.file = path_, .offset = offset});
      }
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
  }

 private:
  Descriptor fd_;
  std::uint64_t size_;
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
  Descriptor fd_;
  std::string path_;
};

}  // namespace

std::unique_ptr<ReadFile> open_file(const std::string& path) {
  // O_NONBLOCK: a pipe in a checkpoint's place must not make the reader wait for a writer.
  auto fd = Descriptor::adopt(checked({"open", path}, [&path] {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  }));
  struct stat status = {};
  checked({"fstat", path}, [&] { return ::fstat(fd.get(), &status); });
  if (!S_ISREG(status.st_mode)) {
    throw Error(Code::kIo, "open: this is a directory or a device, not a file", {.file = path});
  }
  return std::make_unique<OpenFile>(std::move(fd), static_cast<std::uint64_t>(status.st_size),
                                    path);
}

std::unique_ptr<WriteFile> create_file(const std::string& path) {
  auto fd = Descriptor::adopt(checked({"open for writing", path}, [&path] {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  }));
  return std::make_unique<CreatedFile>(std::move(fd), path);
}

}  // namespace reprise::posix
