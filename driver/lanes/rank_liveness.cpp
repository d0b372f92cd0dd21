#include "driver/lanes/rank_liveness.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace reprise::driver {
namespace {

std::string lock_file(const std::string& directory, GlobalRank rank) {
  return directory + "/rank" + std::to_string(rank.value) + ".lock";
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// True if another process holds the lock on this open file.
bool is_held(int fd) {
  struct flock lock = whole_file();
  return ::fcntl(fd, F_GETLK, &lock) != -1 && lock.l_type != F_UNLCK;
}

}  // namespace

// Locks the file before giving it its name, so that a named file is always locked.
RankLiveness::RankLiveness(std::string directory, GlobalRank self)
    : directory_(std::move(directory)) {
  const std::string file = lock_file(directory_, self);
  const std::string beside = file + ".tmp";
  own_.emplace(posix::Descriptor::adopt(posix::checked({"open", beside}, [&] {
    return ::open(beside.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  })));
  struct flock lock = whole_file();
  posix::checked({"lock", beside}, [&] { return ::fcntl(own_->get(), F_SETLK, &lock); });
  std::filesystem::rename(beside, file);
}

/// Returns null until the peer's file exists.
const posix::Descriptor* RankLiveness::peer(GlobalRank rank) {
  const auto known = peers_.find(rank);
  if (known != peers_.end()) return &known->second;
  const int fd = ::open(lock_file(directory_, rank).c_str(), O_RDWR | O_CLOEXEC);
  return fd < 0 ? nullptr : &peers_.emplace(rank, posix::Descriptor::adopt(fd)).first->second;
}

bool RankLiveness::has_begun(GlobalRank rank) {
  const std::lock_guard lock(mutex_);
  return peer(rank) != nullptr;
}

bool RankLiveness::has_ended(GlobalRank rank) {
  const std::lock_guard lock(mutex_);
  const posix::Descriptor* file = peer(rank);
  return file != nullptr && !is_held(file->get());
}

void RankLiveness::come_through() {
  const std::lock_guard lock(mutex_);
  const char mark = '+';
  posix::checked({"write", directory_}, [&] { return ::write(own_->get(), &mark, 1); });
}

bool RankLiveness::came_through(GlobalRank rank) {
  const std::lock_guard lock(mutex_);
  const posix::Descriptor* file = peer(rank);
  struct stat found = {};
  return file != nullptr && ::fstat(file->get(), &found) == 0 && found.st_size > 0;
}

void RankLiveness::let_go() {
  const std::lock_guard lock(mutex_);
  own_.reset();
}

}  // namespace reprise::driver
