#pragma once
// The locks of a PosixStore.

#include <memory>
#include <string>

#include "reprise/store.hpp"

namespace reprise::posix {

/// Creates the file `file` and locks it (flock); the lock's end removes it. Messages call the
/// locked path `held`. The system drops the lock when the process ends. On network file systems the
/// lock applies to all hosts, unless they are mounted with local locks. If the file system has no
/// locks, the returned lock has a warning. Throws LOCKED with host, process and time if there is
/// another holder, or with the user if their file can be neither written, read nor removed. Throws
/// USAGE if `file` is not a lock file.
std::unique_ptr<StoreLock> take_lock(const std::string& file, const std::string& held);

}  // namespace reprise::posix
