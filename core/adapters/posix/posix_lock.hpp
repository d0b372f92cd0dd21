#pragma once
// Locks for a PosixStore.

#include <memory>
#include <string>

#include "reprise/store.hpp"

namespace reprise::posix {

/// Locks the file `file`, creating it, and removes it when the lock ends; messages call the
/// locked path `held`. The system drops the lock with the process (flock), on network file
/// systems for all hosts unless they are mounted with local locks. If locks are not available, it
/// has a warning. Throws LOCKED naming host, process and time of another holder, or naming the
/// user if their file can be neither written, read nor removed; USAGE if `file` is not a lock
/// file.
std::unique_ptr<StoreLock> take_lock(const std::string& file, const std::string& held);

}  // namespace reprise::posix
