#include "tests/program/run_program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

#include "tests/contracts/temporary_directory.hpp"

namespace reprise::test {
namespace {

/// Asks the kernel to send the signal to this process. Does not close the descriptor, because the
/// kernel stops watching the directory when the descriptor is closed.
void set_up(const Tripwire& wire) {
  const int fd = open(wire.directory.c_str(), O_RDONLY | O_DIRECTORY);
  if (fcntl(fd, F_SETOWN, getpid()) != 0 || fcntl(fd, F_SETSIG, wire.signal) != 0 ||
      fcntl(fd, F_NOTIFY, wire.event) != 0) {
    _exit(125);
  }
}

/// Called in the child process. Sets limits, redirects streams to files, and calls exec.
[[noreturn]] void become(std::vector<char*>& argv, const RunLimits& limits, const std::string& out,
                         const std::string& err) {
  if (limits.file_bytes) {
    const rlimit limit{*limits.file_bytes, *limits.file_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (limits.address_space_bytes && kAddressSpaceLimited) {
    const rlimit limit{*limits.address_space_bytes, *limits.address_space_bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  alarm(static_cast<unsigned>(limits.seconds));
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  if (dup2(open(out.c_str(), kFlags, 0600), STDOUT_FILENO) < 0) _exit(126);
  if (dup2(open(err.c_str(), kFlags, 0600), STDERR_FILENO) < 0) _exit(126);
  if (limits.tripwire) set_up(*limits.tripwire);
  execv(argv[0], argv.data());
  _exit(127);
}

}  // namespace

void expect_says(const ProgramResult& result, const std::string& words) {
  EXPECT_NE(result.all().find(words), std::string::npos) << words << "\nsaid:\n" << result.all();
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool has_tripwires() { return text_of("/proc/sys/fs/dir-notify-enable").starts_with("1"); }

ProgramResult run_program(const std::vector<std::string>& arguments, const RunLimits& limits) {
  const contracts::TemporaryDirectory directory;
  const std::string out = limits.out.empty() ? directory.path() + "/out" : limits.out;
  const std::string err = directory.path() + "/err";
  std::vector<std::string> words = {REPRISE_EXE};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child == 0) become(argv, limits, out, err);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (limits.out.empty()) result.out = text_of(out);
  result.err = text_of(err);
  result.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return result;
}

}  // namespace reprise::test
