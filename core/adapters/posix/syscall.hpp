#pragma once
// Checks the results of system calls; this is done nowhere else.

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

namespace reprise::posix {

/// Describes a system call in error messages.
struct CallSite {
  const char* call = "";
  std::string path = {};                     ///< path as the user knows it
  std::optional<std::uint64_t> offset = {};  ///< offset in bytes
};

/// Throws the Error for `errno_value`: NO_SPACE, NOT_FOUND (also if a parent is not a directory),
/// PATH_ESCAPE for a symbolic link that may not be followed, UNSUPPORTED if the kernel or file
/// system does not support the call, and IO for everything else.
[[noreturn]] void fail(const CallSite& site, int errno_value);

/// Makes the call, and repeats it while it is interrupted. Calls fail() if the result is -1.
template <class Call>
auto checked(const CallSite& site, Call&& call) {
  for (;;) {
    const auto result = call();
    if (result != -1) return result;
    if (errno != EINTR) fail(site, errno);
  }
}

}  // namespace reprise::posix
