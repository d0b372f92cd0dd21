#pragma once
// Finds a port for rank 0 of a program of others.

namespace reprise::driver {

/// Returns a port at which a program can listen at every address of this host, also one that
/// doesn't reuse addresses; so nothing may hold the port for it. It is one of those that the system
/// gives to nobody who asks for any, unless there are none. Throws IO.
int free_port();

}  // namespace reprise::driver
