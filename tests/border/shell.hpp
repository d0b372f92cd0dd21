#pragma once
// Runs a command and captures its output.

#include <sys/wait.h>

#include <cstdio>
#include <ostream>
#include <string>

namespace reprise::border {

struct Said {
  bool ok = false;
  std::string text;
};
inline std::ostream& operator<<(std::ostream& out, const Said& said) { return out << said.text; }

/// Runs the command in the shell, in the C locale.
inline Said shell(const std::string& command) {
  Said said;
  FILE* pipe = popen(("export LC_ALL=C; " + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return said;
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) said.text += buffer;
  const int status = pclose(pipe);
  said.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return said;
}

}  // namespace reprise::border
