#include "driver/lanes/process_table.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

#include "driver/yaml/text_file.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

constexpr auto kKilledPoll = std::chrono::milliseconds(5);

struct Status {
  char state = 'X';
  std::int64_t group = 0;
};

/// Parses "id (name) state parent group ...", as in /proc/<id>/stat. The name may contain any
/// characters.
Status status_of(const std::string& line) {
  Status status;
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return status;
  std::istringstream rest(line.substr(name_end + 1));
  std::int64_t parent = 0;
  rest >> status.state >> parent >> status.group;
  return status;
}

/// False for a process that has ended. A process may end while it is inspected; its files are then
/// empty.
bool lives(const Status& status) { return status.state != 'Z' && status.state != 'X'; }

std::vector<std::int64_t> processes_where(
    const std::function<bool(const fs::path& entry, const Status& status)>& wanted) {
  std::vector<std::int64_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const Status status = status_of(text_of(entry.path() / "stat"));
    if (lives(status) && wanted(entry.path(), status)) found.push_back(std::stoll(name));
  }
  return found;
}

}  // namespace

std::vector<std::int64_t> members_of(std::int64_t group) {
  return processes_where(
      [group](const fs::path&, const Status& status) { return status.group == group; });
}

void end_processes_with(const std::string& entry) {
  const std::string within = '\0' + entry + '\0';
  const fs::path own = fs::path("/proc") / std::to_string(::getpid());
  while (true) {
    const auto left = processes_where([&](const fs::path& process, const Status&) {
      return process != own &&
             ('\0' + text_of(process / "environ")).find(within) != std::string::npos;
    });
    if (left.empty()) return;
    for (const auto id : left) ::kill(static_cast<pid_t>(id), SIGKILL);
    std::this_thread::sleep_for(kKilledPoll);
  }
}

std::vector<std::int64_t> started_with(const std::string& word) {
  const std::string within = '\0' + word + '\0';
  const fs::path own = fs::path("/proc") / std::to_string(::getpid());
  return processes_where([&](const fs::path& entry, const Status&) {
    return entry != own && text_of(entry / "cmdline").find(within) != std::string::npos;
  });
}

}  // namespace reprise::driver
