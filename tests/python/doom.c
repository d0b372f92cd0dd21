// Kills its process with SIGKILL before a chosen call that changes files. Preloaded into the processes
// of test_survival.py, which arms it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long seen;
static atomic_long doomed = -1;
static int report = -1;
static char others[4096];

// From now on counts calls, and kills this process before number `nth`, which is first described in
// the file `fd`. A negative number only counts. Files whose paths begin with `ignored` do not count.
void doom_arm(long nth, int fd, const char* ignored) {
  snprintf(others, sizeof others, "%s", ignored);
  report = fd;
  seen = 0;
  doomed = nth;
}

long doom_seen(void) { return seen; }

static void step(const char* name, const char* path) {
  if (others[0] != 0 && strncmp(path, others, strlen(others)) == 0) return;
  if (atomic_fetch_add(&seen, 1) != doomed) return;
  char line[4200];
  const int size = snprintf(line, sizeof line, "%s %s", name, path);
  syscall(SYS_write, report, line, (size_t)size);
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static void step_at(const char* name, int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return;
  char link[64], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) < 0) path[0] = 0;
  step(name, path);
}

#define NEXT(name) __typeof__(name)* next = (__typeof__(name)*)dlsym(RTLD_NEXT, #name)

#define OPENS(name)                                                           \
  int name(const char* path, int flags, ...) {                                \
    NEXT(name);                                                               \
    va_list rest;                                                             \
    va_start(rest, flags);                                                    \
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                             \
    if (flags & O_CREAT) step("create", path);                                \
    return next(path, flags, mode);                                           \
  }
OPENS(open)
OPENS(open64)

ssize_t write(int fd, const void* bytes, size_t size) {
  NEXT(write);
  step_at("write", fd);
  return next(fd, bytes, size);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  NEXT(pwrite);
  step_at("write", fd);
  return next(fd, bytes, size, at);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  NEXT(pwrite64);
  step_at("write", fd);
  return next(fd, bytes, size, at);
}
int ftruncate(int fd, off_t size) {
  NEXT(ftruncate);
  step_at("truncate", fd);
  return next(fd, size);
}
int fsync(int fd) {
  NEXT(fsync);
  step_at("sync", fd);
  return next(fd);
}
int fdatasync(int fd) {
  NEXT(fdatasync);
  step_at("sync", fd);
  return next(fd);
}
int rename(const char* from, const char* to) {
  NEXT(rename);
  step("rename", to);
  return next(from, to);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  NEXT(renameat2);
  step("rename", to);
  return next(from_at, from, to_at, to, flags);
}
int mkdir(const char* path, mode_t mode) {
  NEXT(mkdir);
  step("mkdir", path);
  return next(path, mode);
}
int unlink(const char* path) {
  NEXT(unlink);
  step("remove", path);
  return next(path);
}
int unlinkat(int at, const char* path, int flags) {
  NEXT(unlinkat);
  step("remove", path);
  return next(at, path, flags);
}
int rmdir(const char* path) {
  NEXT(rmdir);
  step("remove", path);
  return next(path);
}
