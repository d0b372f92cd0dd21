#include "core/adapters/posix/posix_store.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/adapters/posix/descriptor.hpp"
#include "core/adapters/posix/posix_file.hpp"
#include "core/base/error.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {

using posix::checked;
using posix::Descriptor;

namespace {

constexpr mode_t kDirectoryMode = 0777;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Entry entry_of(std::string name, const struct stat& status) {
  const bool directory = S_ISDIR(status.st_mode);
  return {.name = std::move(name),
          .directory = directory,
          .size = directory ? 0 : static_cast<std::uint64_t>(status.st_size)};
}

// Follows links; a link to nowhere is an entry of its own. Nothing if there is nothing.
std::optional<Entry> entry_at(int directory_fd, const std::string& name, const std::string& path) {
  struct stat status = {};
  for (const int flags : {0, AT_SYMLINK_NOFOLLOW}) {
    if (::fstatat(directory_fd, name.c_str(), &status, flags) == 0) {
      return entry_of(name_in(name), status);
    }
    if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) posix::fail({"stat", path}, errno);
  }
  return std::nullopt;
}

DirectoryStream open_directory(const std::string& path) {
  auto fd = Descriptor::adopt(checked({"open directory", path}, [&path] {
    return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }));
  DirectoryStream stream(::fdopendir(fd.get()));
  if (!stream) posix::fail({"fdopendir", path}, errno);
  fd.release();  // the stream owns it now
  return stream;
}

std::vector<std::string> names_in(DIR* stream, const std::string& path) {
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    // Each stream is used by one thread alone, which is all that readdir asks for.
    const dirent* entry = ::readdir(stream);  // NOLINT(concurrency-mt-unsafe)
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) posix::fail({"readdir", path}, errno);
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  std::sort(names.begin(), names.end());
  return names;
}

// Makes one directory; no error if it is there.
void make_one_directory(const std::string& path) {
  if (::mkdir(path.c_str(), kDirectoryMode) == 0) return;
  const int error = errno;
  struct stat status = {};
  if (error == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return;
  posix::fail({"mkdir", path}, error);
}

// rename(2) with RENAME_EXCHANGE; 0, or -1 with errno.
int swap_names(const std::string& a, const std::string& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
}

bool can_exchange_in(const std::string& root) {
  std::string place = root + "/.exchange-probe-XXXXXX";
  if (::mkdtemp(place.data()) == nullptr) return false;
  const std::string a = place + "/a";
  const std::string b = place + "/b";
  make_one_directory(a);
  make_one_directory(b);
  const bool can = swap_names(a, b) == 0;
  for (const auto& path : {a, b, place}) {
    checked({"rmdir", path}, [&path] { return ::rmdir(path.c_str()); });
  }
  return can;
}

}  // namespace

PosixStore::PosixStore(std::string root) : root_(root.empty() ? "." : std::move(root)) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

std::string PosixStore::display(const std::string& path) const {
  if (path.empty()) return root_;
  return root_ == "/" ? root_ + path : root_ + "/" + path;
}

std::unique_ptr<ReadFile> PosixStore::open(const std::string& path) {
  check_store_path(path);
  return posix::open_file(display(path));
}

std::unique_ptr<WriteFile> PosixStore::create(const std::string& path) {
  check_store_entry(path);
  return posix::create_file(display(path));
}

std::optional<Entry> PosixStore::stat(const std::string& path) {
  check_store_path(path);
  auto entry = entry_at(AT_FDCWD, display(path), display(path));
  if (entry) entry->name = name_in(path);
  return entry;
}

std::vector<Entry> PosixStore::list(const std::string& directory) {
  check_store_path(directory);
  const std::string path = display(directory);
  const auto stream = open_directory(path);
  std::vector<Entry> entries;
  for (const auto& name : names_in(stream.get(), path)) {
    // What another rank removes meanwhile is not there.
    if (auto entry = entry_at(::dirfd(stream.get()), name, path + "/" + name)) {
      entries.push_back(std::move(*entry));
    }
  }
  return entries;
}

void PosixStore::make_directory(const std::string& path) {
  check_store_path(path);
  const std::string whole = display(path);
  for (auto slash = whole.find('/', 1); slash != std::string::npos;
       slash = whole.find('/', slash + 1)) {
    make_one_directory(whole.substr(0, slash));
  }
  make_one_directory(whole);
}

void PosixStore::rename(const std::string& from, const std::string& to) {
  check_store_entry(from);
  check_store_entry(to);
  // rename(2) alone would put a directory in the place of an empty one.
  if (const auto there = stat(to); there && there->directory) {
    throw Error(Code::kIo, "rename: a directory is in the way; remove or exchange it first",
                {.file = display(to)});
  }
  checked({"rename", display(from) + " -> " + display(to)},
          [&] { return ::rename(display(from).c_str(), display(to).c_str()); });
}

void PosixStore::exchange(const std::string& a, const std::string& b) {
  check_store_entry(a);
  check_store_entry(b);
  for (const auto& path : {a, b}) {
    const auto there = stat(path);
    if (!there) posix::fail({"exchange", display(path)}, ENOENT);
    if (!there->directory) {
      throw Error(Code::kIo, "exchange: this is no directory", {.file = display(path)});
    }
  }
  if (!capabilities().exchange) {
    throw Error(Code::kUnsupported, "exchange: this file system cannot swap two directories",
                {.file = display(a)});
  }
  checked({"renameat2(RENAME_EXCHANGE)", display(a) + " <-> " + display(b)},
          [&] { return swap_names(display(a), display(b)); });
}

void PosixStore::remove(const std::string& path) {
  check_store_entry(path);
  std::error_code failure;
  std::filesystem::remove_all(display(path), failure);  // removes links, does not follow them
  if (failure && failure.value() != ENOTDIR) {
    posix::fail({"remove", display(path)}, failure.value());
  }
}

void PosixStore::sync_directory(const std::string& directory) {
  check_store_path(directory);
  const auto stream = open_directory(display(directory));
  checked({"fsync", display(directory)}, [&stream] { return ::fsync(::dirfd(stream.get())); });
}

StoreCapabilities PosixStore::capabilities() const {
  const std::lock_guard lock(probe_mutex_);
  if (probed_) return *probed_;
  const StoreCapabilities found = {.exchange = can_exchange_in(root_)};
  if (found.exchange || ::access(root_.c_str(), W_OK) == 0) probed_ = found;
  return found;
}

}  // namespace reprise
