// This is the only file that reads the process's arguments, terminal and environment.
#include "cli/entry.hpp"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program.hpp"

namespace reprise::cli {
namespace {

/// Returns the number of columns of the terminal on stdout; 0 if stdout is no terminal.
std::size_t terminal_width() {
  if (isatty(STDOUT_FILENO) == 0) return 0;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string own_path(const char* called) {
  std::string path(4096, '\0');
  const auto length = readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? path.substr(0, static_cast<std::size_t>(length)) : called;
}

/// Reads the rank from the environment variables of mpirun (Open MPI), PMIx, PMI and srun. Uses the
/// first variable that is set.
std::optional<GlobalRank> launched_as() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    const std::string_view text(value);
    std::int32_t rank = -1;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), rank);
    if (error == std::errc{} && end == text.end() && rank >= 0) return GlobalRank{rank};
  }
  return std::nullopt;
}

/// Threads keep files open, each its own: allows as many as the system does.
void allow_open_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

ExitCode run_process(int argc, char** argv, const Verbs& verbs) {
  std::ios::sync_with_stdio(false);
  // A write beyond the limit on the size of files is then an error, which is told and cleaned up.
  std::signal(SIGXFSZ, SIG_IGN);
  allow_open_files();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const Console console{
      .out = std::cout,
      .err = std::cerr,
      .out_width = terminal_width(),
      .err_is_terminal = isatty(STDERR_FILENO) != 0,
      .terminal = &std::cerr,
      .executable = own_path(argv[0]),
      .launched_as = launched_as(),
  };
  return run_program(arguments, verbs, console);
}

}  // namespace reprise::cli
