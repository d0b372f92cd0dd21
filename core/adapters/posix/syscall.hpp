#pragma once
// The one place where the result of a system call is checked.

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

namespace reprise::posix {

/// What is called, on which file, where in it: for the message.
struct CallSite {
  const char* call = "";
  std::string path = {};                     ///< as the user knows it
  std::optional<std::uint64_t> offset = {};  ///< in bytes
};

/// Throws the Error of `errno_value`: NO_SPACE, NOT_FOUND (also: a parent is no directory),
/// PATH_ESCAPE for a symbolic link that is not followed, UNSUPPORTED for what the kernel or file
/// system cannot do, else IO.
[[noreturn]] void fail(const CallSite& site, int errno_value);

/// Calls until it is not interrupted; throws by fail() if the result is -1.
template <class Call>
auto checked(const CallSite& site, Call&& call) {
  for (;;) {
    const auto result = call();
    if (result != -1) return result;
    if (errno != EINTR) fail(site, errno);
  }
}

}  // namespace reprise::posix
