#include "core/adapters/socket/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/adapters/posix/own_descriptors.hpp"
#include "core/base/check.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

using posix::OwnDescriptors;

/// The kernel asks whether a silent host still lives after this many seconds, then as often again.
constexpr int kQuietSeconds = 10;
constexpr int kAskSeconds = 5;
constexpr int kAsksMax = 6;

/// Longest time in one call of poll().
constexpr auto kPollMax = std::chrono::seconds(60);

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Found find_host(const HostPort& place, int flags) {
  addrinfo wanted = {};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int result = ::getaddrinfo(place.host.c_str(), place.port.c_str(), &wanted, &found);
  if (result != 0) {
    throw Error(Code::kIo,
                "the host '" + place.host + "' was not found: " + ::gai_strerror(result));
  }
  return {found, ::freeaddrinfo};
}

void set(const Socket& socket, int level, int option, int value) {
  static_cast<void>(::setsockopt(socket.get(), level, option, &value, sizeof value));
}

/// Sends small messages at once, and notices a host that is gone. What the system doesn't know is
/// left as it is.
void tune(const Socket& socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kQuietSeconds);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, kAskSeconds);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, kAsksMax);
}

/// Returns a socket that reuses addresses. As long as it doesn't listen, another one that does so,
/// too, can listen at its port.
Socket open_for(const addrinfo& to) {
  Socket socket = Socket::from([&to] {
    return ::socket(to.ai_family, to.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to.ai_protocol);
  });
  if (socket.is_open()) set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  return socket;
}

Error cannot_listen(const HostPort& place, int why) {
  return {Code::kIo,
          "can't listen at " + place.host + ", port " + place.port + ": " + error_text(why)};
}

Socket bound_to(const HostPort& place) {
  const Found found = find_host(place, AI_PASSIVE);
  Socket socket = open_for(*found);
  if (!socket.is_open() || ::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0) {
    throw cannot_listen(place, errno);
  }
  return socket;
}

std::string text_of(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> host = {};
  std::array<char, NI_MAXSERV> port = {};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(),
                    port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  const std::string name = host.data();
  const bool six = name.find(':') != std::string::npos;
  return (six ? "[" + name + "]" : name) + ":" + port.data();
}

bool is_not_ready(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

Moved moved(ssize_t result) {
  if (result >= 0) return {.bytes = static_cast<std::size_t>(result)};
  return {.error = is_not_ready(errno) ? 0 : errno};
}

}  // namespace

Instant from_now(std::chrono::nanoseconds span) {
  const Instant now = std::chrono::steady_clock::now();
  return span > Instant::max() - now ? Instant::max() : now + span;
}

bool poll_until(std::span<pollfd> watched, Instant end) {
  using std::chrono::milliseconds;
  for (;;) {
    const auto left = end - std::chrono::steady_clock::now();
    const auto some = std::clamp<std::chrono::nanoseconds>(left, milliseconds(0), kPollMax);
    const auto wait = std::chrono::ceil<milliseconds>(some).count();
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(wait));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR && errno != EAGAIN) {
      throw Error(Code::kIo, "poll: " + error_text(errno));
    }
    if (std::chrono::steady_clock::now() >= end) return false;
  }
}

std::string error_text(int errno_value) { return std::generic_category().message(errno_value); }

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)), forks_(other.forks_) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::exchange(other.fd_, -1);
  forks_ = other.forks_;
  return *this;
}

Socket Socket::from(const std::function<int()>& make) {
  OwnDescriptors& own = OwnDescriptors::of_process();
  const std::scoped_lock lock(own.mutex());
  Socket socket;
  socket.fd_ = make();
  socket.forks_ = own.forks();
  if (socket.is_open()) own.add(socket.fd_);
  return socket;
}

void Socket::close() {
  if (!is_open()) return;
  OwnDescriptors& own = OwnDescriptors::of_process();
  const int fd = std::exchange(fd_, -1);
  if (forks_ != own.forks()) return;
  const std::scoped_lock lock(own.mutex());
  own.remove(fd);
  ::close(fd);
}

Moved receive_some(const Socket& socket, MutableByteSpan into) {
  CHECK(!into.empty());
  const auto result = ::recv(socket.get(), into.data(), into.size(), 0);
  Moved read = moved(result);
  read.ended = result == 0;
  return read;
}

Moved send_some(const Socket& socket, std::span<const ByteSpan> parts) {
  std::vector<iovec> pieces;
  for (const auto part : parts) {
    pieces.push_back({const_cast<std::byte*>(part.data()), part.size()});  // sendmsg only reads it
  }
  msghdr message = {};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return moved(::sendmsg(socket.get(), &message, MSG_NOSIGNAL));
}

HostPort host_port_of(const std::string& text) {
  const auto colon = text.rfind(':');
  HostPort parts;
  if (colon != std::string::npos) {
    parts = {text.substr(0, colon), text.substr(colon + 1)};
    if (parts.host.starts_with('[') && parts.host.ends_with(']')) {
      parts.host = parts.host.substr(1, parts.host.size() - 2);
    } else if (parts.host.find(':') != std::string::npos) {
      parts.host.clear();  // an IPv6 address without brackets: which colon is before the port?
    }
  }
  constexpr std::size_t kDigitsMax = 5;
  const bool digits = parts.port.find_first_not_of("0123456789") == std::string::npos;
  if (parts.host.empty() || parts.port.empty() || parts.port.size() > kDigitsMax || !digits ||
      std::stoi(parts.port) > UINT16_MAX) {
    throw Error(Code::kUsage,
                "'" + text + "' is not an address; write host:port, or [address]:port for IPv6");
  }
  parts.port = std::to_string(std::stoi(parts.port));  // so that equal ports are equal texts
  return parts;
}

Socket hold_port(const std::string& host) { return bound_to({host, "0"}); }

Socket listen_at(const HostPort& place) {
  Socket socket = bound_to(place);
  if (::listen(socket.get(), SOMAXCONN) != 0) throw cannot_listen(place, errno);
  return socket;
}

void listen_on(const Socket& held) {
  const HostPort place = host_port_of(own_address(held));
  if (::listen(held.get(), SOMAXCONN) != 0) throw cannot_listen(place, errno);
}

Socket accept_from(const Socket& listener, std::string& from) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  Socket socket = Socket::from([&] {
    return ::accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &size,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
  });
  if (!socket.is_open()) return socket;
  tune(socket);
  from = text_of(address, size);
  return socket;
}

std::string own_address(const Socket& socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw Error(Code::kIo, "getsockname: " + error_text(errno));
  }
  return text_of(address, size);
}

bool has_port_of(const Socket& socket, const HostPort& place) {
  return host_port_of(own_address(socket)).port == place.port;
}

std::vector<Socket> connect_to(const HostPort& place, Names names) {
  const Found found = find_host(place, names == Names::kNumeric ? AI_NUMERICHOST : 0);
  std::vector<Socket> begun;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Socket socket = open_for(*one);
    if (!socket.is_open()) continue;
    tune(socket);
    const int result = ::connect(socket.get(), one->ai_addr, one->ai_addrlen);
    if (result == 0 || errno == EINPROGRESS || errno == EINTR) begun.push_back(std::move(socket));
  }
  return begun;
}

int connect_result(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

Bell::Bell() : event_(Socket::from([] { return ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); })) {
  if (!event_.is_open()) throw Error(Code::kIo, "eventfd: " + error_text(errno));
}

void Bell::ring() const {
  const eventfd_t one = 1;
  static_cast<void>(::eventfd_write(event_.get(), one));
}

void Bell::quiet() const {
  eventfd_t rings = 0;
  static_cast<void>(::eventfd_read(event_.get(), &rings));
}

}  // namespace reprise
