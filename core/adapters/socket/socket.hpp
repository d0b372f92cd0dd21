#pragma once
// Sockets of this process, and waiting for them. Each call of the system's is checked here or in
// socket.cpp.

#include <poll.h>

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reprise/types.hpp"

namespace reprise {

/// A point in time on the clock that never goes back.
using Instant = std::chrono::steady_clock::time_point;

/// Returns the time in `span` from now, or the last one there is.
Instant from_now(std::chrono::nanoseconds span);

/// Waits until one of the descriptors is ready or the time has come. Returns false if none is.
bool poll_until(std::span<pollfd> watched, Instant end);

/// Owns a socket that does not block. A program that this process starts does not get it, and a
/// forked child closes its copy. After a fork, the child's copy of this object does nothing.
class Socket {
 public:
  Socket() = default;
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  /// Takes the descriptor that `make` returns; `make` returns -1 and sets errno if it fails. The
  /// result is then not open, and errno is as `make` left it.
  static Socket from(const std::function<int()>& make);

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
  int forks_ = 0;  ///< of the process that opened the socket, see OwnDescriptors
};

/// Result of sending or receiving. `bytes` is 0 if the socket was not ready; then `error` is 0,
/// too.
struct Moved {
  std::size_t bytes = 0;
  bool ended = false;  ///< the other side has closed the connection
  int error = 0;       ///< errno, or 0
};

Moved receive_some(const Socket& socket, MutableByteSpan into);
/// Sends the parts one after another, as far as the system takes them now.
Moved send_some(const Socket& socket, std::span<const ByteSpan> parts);

/// "Connection refused".
std::string error_text(int errno_value);

/// Splits "host:port" or "[address]:port". Throws USAGE if the text is neither.
struct HostPort {
  std::string host;
  std::string port;
};
HostPort host_port_of(const std::string& text);

/// Listens at a port of an address of this host; port "0" takes a free one. Throws IO.
Socket listen_at(const HostPort& place);
/// Takes a free port of an address of this host. While the result lives and doesn't listen, others
/// get the port only if they name it and reuse addresses, as listen_at() does. Throws IO.
Socket hold_port(const std::string& host);
/// Throws IO, for example if somebody else listens at the port.
void listen_on(const Socket& held);
/// Returns a connection that has arrived; it is not open if none has. `from` becomes its sender.
Socket accept_from(const Socket& listener, std::string& from);
/// Returns "address:port" of this side.
std::string own_address(const Socket& socket);
/// True if this side has the port of `place`, at whatever address.
bool has_port_of(const Socket& socket, const HostPort& place);

enum class Names {
  kNumeric,   ///< the host is an address
  kResolved,  ///< the host may be a name, which this process asks the system for
};
/// Starts to connect to each address that the host has; one connection may already be made. Throws
/// IO if there is no such host.
std::vector<Socket> connect_to(const HostPort& place, Names names);
/// Returns errno of a connection that was being made, or 0 once it is.
int connect_result(const Socket& socket);

/// Wakes a thread that waits in poll().
class Bell {
 public:
  Bell();
  void ring() const;
  /// Takes back all rings so far.
  void quiet() const;
  pollfd watched() const { return {.fd = event_.get(), .events = POLLIN, .revents = 0}; }

 private:
  Socket event_;
};

}  // namespace reprise
