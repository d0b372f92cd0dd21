#include "driver/programs/free_port.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <random>

#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr int kLowest = 10'000;
constexpr int kHighest = UINT16_MAX;
constexpr int kTries = 100;

/// A socket that does not reuse addresses, and the reason why it is not bound, or 0.
class Bound {
 public:
  Bound(int family, const void* address, socklen_t size)
      : handle_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int both = 0;  // an IPv6 socket takes connections over IPv4, too
    if (family == AF_INET6) ::setsockopt(handle_, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof both);
    if (::bind(handle_, static_cast<const sockaddr*>(address), size) != 0) error_ = errno;
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
  ~Bound() {
    if (handle_ >= 0) ::close(handle_);
  }

  int handle() const { return handle_; }
  int error() const { return error_; }

 private:
  int handle_;
  int error_ = 0;
};

Bound bound_to_all4(int port) {
  sockaddr_in all = {};
  all.sin_family = AF_INET;
  all.sin_port = htons(static_cast<std::uint16_t>(port));
  return {AF_INET, &all, sizeof all};
}

bool is_free(int port) {
  sockaddr_in6 all = {};
  all.sin6_family = AF_INET6;
  all.sin6_port = htons(static_cast<std::uint16_t>(port));
  const int error = Bound(AF_INET6, &all, sizeof all).error();
  if (error == 0 || error == EADDRINUSE) return error == 0;
  return bound_to_all4(port).error() == 0;  // there is no IPv6
}

int any_port() {
  const Bound any = bound_to_all4(0);
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  if (any.error() != 0 ||
      ::getsockname(any.handle(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw Error(Code::kIo, "there is no free port");
  }
  return ntohs(address.sin_port);
}

}  // namespace

int free_port() {
  int first = kLowest;  // of those that the system gives
  int last = kHighest;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  const int below = std::max(first - kLowest, 0);
  const int others = below + std::max(kHighest - last, 0);
  std::random_device random;
  for (int i = 0; i < kTries && others > 0; ++i) {
    const int n = static_cast<int>(random() % static_cast<unsigned>(others));
    const int port = n < below ? kLowest + n : last + 1 + n - below;
    if (is_free(port)) return port;
  }
  return any_port();
}

}  // namespace reprise::driver
