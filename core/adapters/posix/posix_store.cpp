#include "core/adapters/posix/posix_store.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/adapters/posix/descriptor.hpp"
#include "core/adapters/posix/posix_file.hpp"
#include "core/adapters/posix/posix_lock.hpp"
#include "core/ports/store_path.hpp"
#include "reprise/error.hpp"

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

constexpr std::string_view kLockBegin = ".";
constexpr std::string_view kLockEnd = ".lock";

/// Returns the path of the lock file of `path`, which stands beside it.
std::string lock_path(const std::string& path) {
  return join_path(parent_path(path),
                   std::string(kLockBegin) + name_in(path) + std::string(kLockEnd));
}

bool none_there(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

// Returns the entry named `name` in a directory; nothing if there is none. For a link, the entry
// has the type and size of the link's target; for a dangling link, those of the link itself.
std::optional<Entry> entry_at(int directory_fd, const std::string& name, const std::string& path) {
  struct stat status = {};
  if (::fstatat(directory_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (!none_there(errno)) posix::fail({"stat", path}, errno);
    return std::nullopt;
  }
  const bool link = S_ISLNK(status.st_mode);
  struct stat target = {};
  if (link && ::fstatat(directory_fd, name.c_str(), &target, 0) == 0) {
    status = target;
  } else if (link && !none_there(errno)) {
    posix::fail({"stat", path}, errno);
  }
  Entry entry = posix::entry_of(name_in(name), status);
  entry.link = link;
  return entry;
}

DirectoryStream open_directory(const std::string& path) {
  auto fd = Descriptor::adopt(checked({"open directory", path}, [&path] {
    return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }));
  DirectoryStream stream(::fdopendir(fd.get()));
  if (!stream) posix::fail({"fdopendir", path}, errno);
  fd.release();  // the stream owns the descriptor now
  return stream;
}

std::vector<std::string> names_in(DIR* stream, const std::string& path) {
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    // readdir() requires only that no two threads use the same stream. No stream here is shared.
    const dirent* entry = ::readdir(stream);  // NOLINT(concurrency-mt-unsafe)
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) posix::fail({"readdir", path}, errno);
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  std::sort(names.begin(), names.end());
  return names;
}

// Creates one directory. Does nothing if it exists.
void make_one_directory(const std::string& path) {
  if (::mkdir(path.c_str(), kDirectoryMode) == 0) return;
  const int error = errno;
  struct stat status = {};
  const bool taken = error == EEXIST && ::stat(path.c_str(), &status) == 0;
  if (taken && S_ISDIR(status.st_mode)) return;
  if (taken) {
    throw Error(Code::kIo, "mkdir: this is a file, not a directory; name a directory",
                {.file = path});
  }
  posix::fail({"mkdir", path}, error);
}

// Calls rename(2) with RENAME_EXCHANGE. Returns 0, or -1 with errno set.
int swap_names(const std::string& a, const std::string& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
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
    // Skips an entry that another rank has removed in the meantime.
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
  // Refuses any directory at `to`, because rename(2) would silently replace an empty one.
  if (const auto there = stat(to); there && there->directory) {
    throw Error(Code::kIo, "rename: a directory is in the way; remove or exchange it first",
                {.file = display(to)});
  }
  checked({"rename", display(from) + " -> " + display(to)},
          [&] { return ::rename(display(from).c_str(), display(to).c_str()); });
}

void PosixStore::publish(const NameChange& change) { rename(change.staged, change.name); }

void PosixStore::put_aside(const NameChange& change) { rename(change.name, change.staged); }

void PosixStore::replace(const NameChange& change) {
  const std::string& a = change.staged;
  const std::string& b = change.name;
  check_store_entry(a);
  check_store_entry(b);
  for (const auto& path : {a, b}) {
    const auto there = stat(path);
    if (!there) posix::fail({"exchange", display(path)}, ENOENT);
    if (!there->directory) {
      throw Error(Code::kIo, "exchange: this is not a directory", {.file = display(path)});
    }
  }
  if (swap_names(display(a), display(b)) == 0) return;
  const int error = errno;
  // EINVAL here means that the file system cannot exchange two paths. Its other meaning, that one
  // directory lies within the other, is ruled out.
  if (error == EINVAL || error == ENOSYS || error == EOPNOTSUPP) {
    throw Error(Code::kUnsupported, "exchange: this file system cannot swap two directories",
                {.file = display(a)});
  }
  posix::fail({"renameat2(RENAME_EXCHANGE)", display(a) + " <-> " + display(b)}, error);
}

void PosixStore::remove(const std::string& path) {
  check_store_entry(path);
  std::error_code failure;
  std::filesystem::remove_all(display(path), failure);  // links are removed, not followed
  if (failure && failure.value() != ENOTDIR) {
    posix::fail({"remove", display(path)}, failure.value());
  }
}

bool PosixStore::remove_empty(const std::string& directory) {
  check_store_entry(directory);
  if (::rmdir(display(directory).c_str()) == 0 || errno == ENOENT) return true;
  if (errno == ENOTEMPTY || errno == EEXIST) return false;
  posix::fail({"rmdir", display(directory)}, errno);
}

void PosixStore::sync_directory(const std::string& directory) {
  check_store_path(directory);
  const auto stream = open_directory(display(directory));
  checked({"fsync", display(directory)}, [&stream] { return ::fsync(::dirfd(stream.get())); });
}

std::unique_ptr<StoreLock> PosixStore::lock(const std::string& path) {
  check_store_entry(path);
  if (parent_path(path).empty()) make_directory("");  // the root may not exist yet
  return posix::take_lock(display(lock_path(path)), display(path));
}

std::optional<std::string> PosixStore::lock_holder(const std::string& path) {
  check_store_entry(path);
  return posix::lock_holder(display(lock_path(path)));
}

std::vector<std::string> PosixStore::remove_dead_locks(const std::string& directory) {
  std::vector<std::string> removed;
  for (const Entry& entry : list(directory)) {
    const bool may_be_lock = entry.name.starts_with(kLockBegin) && entry.name.ends_with(kLockEnd);
    if (!may_be_lock || entry.directory || entry.link) continue;
    if (posix::remove_dead_lock(display(join_path(directory, entry.name)))) {
      removed.push_back(entry.name);
    }
  }
  return removed;
}

std::optional<std::uint64_t> PosixStore::free_bytes(const std::string& directory) {
  check_store_path(directory);
  struct statvfs status = {};
  if (::statvfs(display(directory).c_str(), &status) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

}  // namespace reprise
