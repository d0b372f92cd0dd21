// Tests that nobody is given the port of a program by chance, and that the program can have it.

#include "driver/programs/free_port.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <set>

namespace reprise::driver {
namespace {

TEST(FreePort, is_not_the_systems_to_give_and_needs_no_reuse) {
  int first = 0;
  int last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  if (first <= 10'000 && last == 65'535) GTEST_SKIP() << "the system gives every port";
  std::set<int> ports;
  for (int i = 0; i < 20; ++i) {
    const int port = free_port();
    EXPECT_TRUE(port < first || port > last) << port;
    const int handle = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in all = {};
    all.sin_family = AF_INET;
    all.sin_port = htons(static_cast<in_port_t>(port));
    EXPECT_EQ(::bind(handle, reinterpret_cast<sockaddr*>(&all), sizeof all), 0) << port;
    EXPECT_EQ(::listen(handle, 1), 0) << port;
    ::close(handle);
    ports.insert(port);
  }
  EXPECT_GT(ports.size(), 15U) << "several drivers at a time choose different ones";
}

}  // namespace
}  // namespace reprise::driver
