#include "core/adapters/posix/posix_lock.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <ctime>
#include <mutex>
#include <optional>
#include <utility>

#include "core/adapters/posix/descriptor.hpp"
#include "core/adapters/posix/own_descriptors.hpp"
#include "core/base/hash.hpp"
#include "reprise/error.hpp"

namespace reprise::posix {
namespace {

constexpr mode_t kLockMode = 0666;
constexpr std::string_view kHeldBy = "held by reprise: ";

std::string this_host() {
  std::array<char, HOST_NAME_MAX + 1> name = {};
  ::gethostname(name.data(), HOST_NAME_MAX);
  return name.data();
}

std::string utc_now() {
  constexpr std::size_t kRoom = 32;
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  std::array<char, kRoom> text = {};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

/// Names this process; what follows is since when it holds a lock.
std::string this_process() {
  return "process " + std::to_string(::getpid()) + " on host " + this_host() + " since ";
}

/// Describes this process as the lock's holder. Other processes use the text in their messages.
std::string this_holder() { return std::string(kHeldBy) + this_process() + utc_now() + "\n"; }

std::string text_in(int fd) {
  constexpr std::size_t kRoom = 512;
  std::string text(kRoom, '\0');
  const auto got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::string new_token(const std::string& file) {
  std::uint64_t value = 0;
  checked({"getrandom", file}, [&value] { return ::getrandom(&value, sizeof value, 0); });
  return hex(value);
}

/// True if `file` is still the path of the open file `fd`, that is, if nobody has removed or
/// replaced the file.
bool stands_at(int fd, const std::string& file) {
  struct stat open = {};
  struct stat named = {};
  return ::fstat(fd, &open) == 0 && ::lstat(file.c_str(), &named) == 0 && open.st_nlink > 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/// Returns who holds the locked file, in words.
std::string holder_in(int fd) {
  const std::string text = text_in(fd);
  const bool known = text.starts_with(kHeldBy) && text.ends_with('\n');
  return known ? text.substr(kHeldBy.size(), text.size() - kHeldBy.size() - 1)
               : "another process, which has only just begun";
}

[[noreturn]] void refuse_held(int fd, const std::string& held) {
  const std::string holder = holder_in(fd);
  const bool own = holder.starts_with(this_process());
  throw Error(Code::kLocked,
              holder + " is writing there" +
                  (own ? ": an earlier save of this process, by another job; finish it first"
                       : "; wait until it has ended, or end it, and try again"),
              {.file = held});
}

/// Locks the open file `fd` like flock(). Fails with EWOULDBLOCK only if another writer has locked
/// the file: who only asks for the holder shares the lock, and gives it back at once.
int lock_for_writing(int fd) {
  constexpr timespec kPause = {0, 1'000'000};
  constexpr int kTries = 100;  // a process that asks may have been stopped meanwhile
  for (int tries = 0;;) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return -1;
    if (::flock(fd, LOCK_SH | LOCK_NB) != 0 || ++tries == kTries) return -1;
    ::flock(fd, LOCK_UN);
    ::nanosleep(&kPause, nullptr);
  }
}

/// Locks the open file `fd`. Returns a warning if the file system does not support locks; nothing
/// if the file is now locked, or if its holder has just removed it.
std::optional<std::string> get_lock(int fd, const std::string& file, const std::string& held) {
  while (lock_for_writing(fd) != 0) {
    switch (errno) {
      case EINTR:
        continue;
      case EWOULDBLOCK:
        if (!stands_at(fd, file)) return std::nullopt;
        refuse_held(fd, held);
      case ENOSYS:
      case EOPNOTSUPP:
      case ENOLCK:
        return "this file system does not support locks: nothing keeps another job from writing "
               "to " +
               held + " at the same time";
      default:
        fail({"flock", file}, errno);
    }
  }
  return std::nullopt;
}

/// Throws USAGE if the file's text shows that another program wrote it. Such a file is not touched.
void require_of_ours(std::string_view text, const std::string& file) {
  if (text.empty() || text.starts_with(kHeldBy)) return;
  throw Error(Code::kUsage, "a file is in the place of the lock; rename it", {.file = file});
}

/// Writes a description of this process to the lock file.
void sign(int fd, const std::string& file) {
  require_of_ours(text_in(fd), file);
  const std::string text = this_holder();
  checked({"ftruncate", file}, [fd] { return ::ftruncate(fd, 0); });
  checked({"pwrite", file}, [&] { return ::pwrite(fd, text.data(), text.size(), 0); });
}

/// Returns a user's name for messages.
std::string user_of(uid_t id) {
  constexpr std::size_t kRoom = 4096;
  std::array<char, kRoom> text = {};
  passwd entry = {};
  passwd* found = nullptr;
  const bool known = ::getpwuid_r(id, &entry, text.data(), text.size(), &found) == 0 && found;
  return (known ? "user " + std::string(found->pw_name) + " (" : "user (") + std::to_string(id) +
         ")";
}

/// Throws LOCKED for another user's lock file that this user has no permission to write.
[[noreturn]] void refuse_foreign(const std::string& file, const std::string& held) {
  struct stat status = {};
  checked({"lstat", file}, [&] { return ::lstat(file.c_str(), &status); });
  throw Error(
      Code::kLocked,
      "the lock file " + file + " belongs to " + user_of(status.st_uid) + ", and " +
          user_of(::geteuid()) +
          " may not take it over: wait until that user's writer has ended, or, if none is at "
          "work, have that user remove the file",
      {.file = held});
}

bool is_of_rights(int error) { return error == EACCES || error == EPERM; }

/// Removes another user's lock file if nobody holds its lock any more. This needs write access to
/// the directory, but not to the file. Throws if the lock is held or the file cannot be removed;
/// the message says who holds the lock or owns the file.
void remove_foreign(const std::string& file, const std::string& held) {
  const int raw = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (raw == -1 && errno == ENOENT) return;
  if (raw == -1) refuse_foreign(file, held);
  const auto fd = Descriptor::adopt(raw);
  require_of_ours(text_in(fd.get()), file);
  // Over NFS, only users with write access can lock a file. Other users get EBADF.
  while (lock_for_writing(fd.get()) != 0) {
    if (errno == EWOULDBLOCK) refuse_held(fd.get(), held);
    if (errno != EINTR) refuse_foreign(file, held);
  }
  if (stands_at(fd.get(), file) && ::unlink(file.c_str()) != 0) refuse_foreign(file, held);
}

/// Opens the lock file, and creates it if needed. If the file belongs to another user, removes it
/// and returns nothing; the caller must then try again.
std::optional<Descriptor> open_to_lock(const std::string& file, const std::string& held) {
  for (;;) {
    const int fd =
        ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kLockMode);
    if (fd != -1) return Descriptor::adopt(fd);
    const int error = errno;
    if (error == EINTR) continue;
    struct stat status = {};
    const bool there = ::lstat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    if (!there || !is_of_rights(error)) fail({"open for locking", file}, error);
    remove_foreign(file, held);
    return std::nullopt;
  }
}

class FileLock final : public StoreLock {
 public:
  /// The caller holds the mutex of OwnDescriptors.
  FileLock(Descriptor fd, std::string file, std::string warning)
      : StoreLock(new_token(file), std::move(warning)),
        forks_(OwnDescriptors::of_process().forks()),
        fd_(std::move(fd)),
        file_(std::move(file)) {
    OwnDescriptors::of_process().add(fd_->get());
  }
  /// Removes the lock file while still holding its lock. If a process opened the file before that,
  /// it then sees that the file is gone and creates a new one. In a forked child this object is a
  /// copy, without a descriptor and without a claim on the file.
  ~FileLock() override {
    OwnDescriptors& own = OwnDescriptors::of_process();
    const std::scoped_lock lock(own.mutex());
    if (forks_ != own.forks()) {
      fd_->release();
      return;
    }
    own.remove(fd_->get());
    if (stands_at(fd_->get(), file_)) ::unlink(file_.c_str());
    fd_.reset();
  }

 private:
  int forks_;
  std::optional<Descriptor> fd_;
  std::string file_;
};

}  // namespace

std::unique_ptr<StoreLock> take_lock(const std::string& file, const std::string& held) {
  const std::scoped_lock lock(OwnDescriptors::of_process().mutex());
  for (;;) {
    auto fd = open_to_lock(file, held);
    if (!fd) continue;
    const auto warning = get_lock(fd->get(), file, held);
    // The previous holder removed the file before or while this process locked it.
    if (!stands_at(fd->get(), file)) continue;
    sign(fd->get(), file);
    return std::make_unique<FileLock>(std::move(*fd), file, warning.value_or(""));
  }
}

std::optional<std::string> lock_holder(const std::string& file) {
  const std::scoped_lock lock(OwnDescriptors::of_process().mutex());
  const int raw = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (raw == -1) return std::nullopt;
  const auto fd = Descriptor::adopt(raw);
  while (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || !stands_at(fd.get(), file)) return std::nullopt;
    return holder_in(fd.get());
  }
  return std::nullopt;
}

bool remove_dead_lock(const std::string& file) {
  const std::scoped_lock lock(OwnDescriptors::of_process().mutex());
  const int raw = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (raw == -1) return false;
  const auto fd = Descriptor::adopt(raw);
  // A file without text is of a writer that is about to lock it.
  if (!text_in(fd.get()).starts_with(kHeldBy)) return false;
  if (lock_for_writing(fd.get()) != 0) return false;
  return stands_at(fd.get(), file) && ::unlink(file.c_str()) == 0;
}

}  // namespace reprise::posix
