#pragma once
// Creates the locks of a PosixStore.

#include <memory>
#include <optional>
#include <string>

#include "reprise/store.hpp"

namespace reprise::posix {

/// Creates the file `file` and locks it (flock). Releasing the lock removes the file. `held` is the
/// name of the locked path in messages. The system drops the lock when the process ends, also if
/// children that it forked run on. On a network file system the lock applies to all hosts, unless
/// the file system is mounted with local locks. If the file system does not support locks, the
/// returned lock has a warning. Throws LOCKED if another process holds the lock; the message has
/// the holder's host, process and time. Throws LOCKED with the owner's name if the file belongs to
/// another user and this user has no permission to take it over. Throws USAGE if `file` is not a
/// lock file.
std::unique_ptr<StoreLock> take_lock(const std::string& file, const std::string& held);

/// Returns who holds the lock on the file `file`, in words; nothing if nobody does, or if that
/// can't be told. Shares the lock for a moment to find out: take_lock() and remove_dead_lock()
/// wait for that moment.
std::optional<std::string> lock_holder(const std::string& file);

/// Removes the lock file `file` if a writer of ours left it and nobody holds its lock. Returns
/// false if it stays: because it is held, is no lock file, or can't be removed.
bool remove_dead_lock(const std::string& file);

}  // namespace reprise::posix
