#pragma once
// A rank as a process of its own, which a test can stop and kill.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <exception>
#include <functional>
#include <string>

namespace reprise::contracts {

/// Runs `body` in a forked child. Make all of them before this process has other threads.
class RankProcess {
 public:
  explicit RankProcess(const std::function<std::string()>& body) {
    EXPECT_EQ(::pipe(said_.data()), 0);
    child_ = ::fork();
    if (child_ != 0) {
      ::close(said_[1]);
      return;
    }
    std::string text;
    try {
      text = body();
    } catch (const std::exception& caught) {
      text = caught.what();
    }
    if (::write(said_[1], text.data(), text.size()) < 0) ::_exit(1);
    ::_exit(0);
  }
  ~RankProcess() {
    tell(SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(said_[0]);
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void tell(int signal) const { ::kill(child_, signal); }
  /// Waits until the process has ended, and returns the result of `body`, or what it threw.
  std::string said() const {
    std::string text;
    std::array<char, 4096> part = {};
    for (;;) {
      const ssize_t got = ::read(said_[0], part.data(), part.size());
      if (got <= 0) return text;
      text.append(part.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  std::array<int, 2> said_ = {};
  pid_t child_ = 0;
};

}  // namespace reprise::contracts
