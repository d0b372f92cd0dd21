#include "driver/lanes/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "driver/lanes/process_table.hpp"
#include "reprise/error.hpp"

extern char** environ;

namespace reprise::driver {
namespace {

constexpr auto kProcessPoll = std::chrono::milliseconds(5);
constexpr auto kLookForGrace = std::chrono::milliseconds(100);
constexpr auto kGrace = std::chrono::seconds(3);

/// Process groups that run; 0 marks an unused entry, kStarting one whose child is being started.
/// Signals that end this program are forwarded to these groups, because otherwise the groups would
/// outlive this program.
std::array<std::atomic<pid_t>, 1024> running_groups = {};
constexpr pid_t kStarting = -1;
/// A signal waits this long for a child that is being started, because a hung file system must not
/// keep this program from ending.
constexpr int kStartMs = 2000;
static_assert(std::atomic<pid_t>::is_always_lock_free);

using Handler = void (*)(int);

/// The signals that end this program.
constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP};
/// The handlers that the program had for them; SIG_DFL if the signal ends it.
std::array<std::atomic<Handler>, kEnding.size()> own_handlers = {SIG_DFL, SIG_DFL, SIG_DFL};
static_assert(std::atomic<Handler>::is_always_lock_free);

/// True once a signal has come that ends this program: from then on no child is started.
std::atomic<bool> is_ending = false;

std::atomic<Handler>& own_handler_of(int signal) {
  std::size_t at = 0;
  while (kEnding.at(at) != signal) ++at;
  return own_handlers.at(at);
}

/// A handler of this program is called once: the next signal ends the program. The thread that is
/// starting a child has these signals blocked, so this handler only ever waits for another thread,
/// and briefly.
extern "C" void pass_on(int signal) {
  const int error = errno;
  const Handler handler = own_handler_of(signal).exchange(SIG_DFL);
  if (handler == SIG_DFL) is_ending = true;
  for (const auto& group : running_groups) {
    for (int ms = 0; group == kStarting && ms < kStartMs; ++ms) ::poll(nullptr, 0, 1);
    if (const pid_t child = group; child > 0) ::kill(-child, SIGTERM);
  }
  errno = error;
  if (handler != SIG_DFL) return handler(signal);
  std::signal(signal, SIG_DFL);
  sigset_t it;
  sigemptyset(&it);
  sigaddset(&it, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &it, nullptr);
  std::raise(signal);
  ::_exit(128 + signal);  // process 1 of a container outlives a signal without a handler
}

void pass_on_at(int signal) {
  struct sigaction before = {};
  ::sigaction(signal, nullptr, &before);
  if (before.sa_handler == pass_on) return;
  if (before.sa_handler == SIG_IGN && signal == SIGHUP) return;  // nohup
  if (before.sa_handler != SIG_IGN) own_handler_of(signal) = before.sa_handler;
  std::signal(signal, pass_on);
}

/// Blocks the signals that end this program in this thread.
class Blocked {
 public:
  Blocked() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : kEnding) sigaddset(&ending, signal);
    ::pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_ = {};
};

void check_spawn(int result, const std::string& what) {
  if (result != 0) throw Error(Code::kIo, what + ": " + std::strerror(result));
}

/// A child's place among the running groups. It has that place before it starts: a signal that
/// comes as early as that must not leave the child behind.
class RunningGroup {
 public:
  RunningGroup() {
    for (const int signal : kEnding) pass_on_at(signal);
  }
  ~RunningGroup() {
    if (group_ != nullptr) *group_ = 0;
  }
  RunningGroup(const RunningGroup&) = delete;
  RunningGroup& operator=(const RunningGroup&) = delete;

  /// Returns false if no place is free. Until `started`, the thread must not allocate: the one that
  /// waits in `pass_on` may have been interrupted while allocating.
  bool starts() {
    for (auto& group : running_groups) {
      pid_t unused = 0;
      if (!group.compare_exchange_strong(unused, kStarting)) continue;
      group_ = &group;
      if (!is_ending) return true;
      group = 0;
      while (true) ::pause();
    }
    return false;
  }
  void started(pid_t child) { *group_ = child; }
  /// The place belongs to another child from now on.
  void did_not_start() { std::exchange(group_, nullptr)->store(0); }

 private:
  std::atomic<pid_t>* group_ = nullptr;
};

/// Starts a child as the leader of a group of its own.
pid_t spawn(const std::vector<std::string>& arguments, const std::string& log,
            RunningGroup& group) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  check_spawn(posix_spawn_file_actions_init(&files), "posix_spawn");
  check_spawn(posix_spawnattr_init(&attributes), "posix_spawn");
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  sigset_t ignored_here;
  sigemptyset(&ignored_here);
  sigaddset(&ignored_here, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &ignored_here);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  int result = EAGAIN;
  {
    const Blocked blocked;
    posix_spawnattr_setsigmask(&attributes, &blocked.before());
    if (group.starts()) {
      result = posix_spawnp(&child, argv[0], &files, &attributes, argv.data(), environ);
      result == 0 ? group.started(child) : group.did_not_start();
    }
  }
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  check_spawn(result, "can't start " + arguments.front());
  return child;
}

bool ended(pid_t child, int& status) {
  const pid_t found = ::waitpid(child, &status, WNOHANG);
  if (found < 0 && errno != EINTR) {
    throw Error(Code::kIo, std::string("waitpid: ") + std::strerror(errno));
  }
  return found == child;
}

template <class Duration>
bool wait_for(pid_t child, Duration limit, int& status) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    if (ended(child, status)) return true;
    std::this_thread::sleep_for(kProcessPoll);
  }
  return false;
}

/// Waits for the child. Returns false if the child must be killed; in that case, `end` contains the
/// reason.
bool wait_within(pid_t child, const ProcessLimits& limits, ProcessEnd& end, int& status) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto last = start + std::chrono::seconds(limits.progress_s_max);
  auto deadline = start + std::chrono::seconds(limits.deadline_s);
  std::uint64_t reached = limits.progress ? limits.progress() : 0;
  std::optional<Clock::time_point> idle_since;
  while (true) {
    if (wait_for(child, kLookForGrace, status)) return true;
    const auto now = Clock::now();
    const auto grace = limits.grace ? limits.grace() : std::nullopt;
    if (!grace) idle_since.reset();
    if (grace && !idle_since) idle_since = now;
    if (const auto further = limits.progress ? limits.progress() : reached; further != reached) {
      reached = further;
      deadline = now + std::chrono::seconds(limits.deadline_s);
    }
    end.progressing = limits.progress && now >= last && now < deadline;
    end.timed_out = end.progressing || now >= deadline;
    end.cut_short = !end.timed_out && grace && now >= *idle_since + *grace;
    if (end.timed_out || end.cut_short) return false;
  }
}

}  // namespace

ProcessEnd run_process(const std::vector<std::string>& arguments, const std::string& log,
                       const ProcessLimits& limits) {
  RunningGroup group;
  const pid_t child = spawn(arguments, log, group);
  ProcessEnd end;
  int status = 0;
  if (!wait_within(child, limits, end, status)) {
    ::kill(-child, SIGTERM);
    if (!wait_for(child, kGrace, status)) {
      ::kill(-child, SIGKILL);
      while (!ended(child, status)) std::this_thread::sleep_for(kProcessPoll);
    }
  }
  const bool killed = end.timed_out || end.cut_short;
  end.left_some = !killed && !members_of(child).empty();
  if (end.left_some || killed) ::kill(-child, SIGKILL);
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace reprise::driver
