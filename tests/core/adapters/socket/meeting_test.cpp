// How ranks over TCP meet, and who is not let in.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>

#include "core/adapters/socket/frame.hpp"
#include "core/adapters/socket/hello.hpp"
#include "core/base/bytes.hpp"
#include "tests/core/adapters/socket/rank_process.hpp"
#include "tests/core/adapters/socket/socket_ranks.hpp"

namespace reprise::contracts {
namespace {

using testing::HasSubstr;

/// Sends bytes to an address, as nobody of the job would. Keeps the connection.
class Stranger {
 public:
  Stranger(const std::string& address, ByteSpan bytes) {
    const HostPort place = host_port_of(address);
    for (int i = 0; i < 500 && !socket_.is_open(); ++i) try_once(place);
    EXPECT_TRUE(socket_.is_open());
    if (!bytes.empty()) {
      EXPECT_EQ(send_some(socket_, std::array{bytes}).bytes, bytes.size());
    }
  }
  Stranger(const std::string& address, FrameKind kind, const std::string& text)
      : Stranger(address, framed(kind, text)) {}

  void leave() { socket_.close(); }
  /// Waits for the answer. Returns the error in it, or nothing if the connection was closed.
  std::optional<Error> answer() {
    FrameReader reader;
    for (;;) {
      const auto state = reader.read(socket_);
      if (state == FrameReader::State::kFrame) break;
      if (state != FrameReader::State::kWaiting) return std::nullopt;
      pollfd ready = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
      if (!poll_until({&ready, 1}, from_now(seconds(20)))) return std::nullopt;
    }
    const auto answer = decode_answer(as_text(reader.take().body));
    return answer ? answer->refused : std::nullopt;
  }

  static Bytes framed(FrameKind kind, const std::string& text) {
    Bytes all;
    append_le(all, std::uint32_t{0x4b535052});
    append_le(all, static_cast<std::uint32_t>(kind));
    append_le(all, static_cast<std::uint64_t>(text.size()));
    all.resize(40);
    append(all, as_bytes(text));
    return all;
  }

 private:
  void try_once(const HostPort& place) {
    for (auto& socket : connect_to(place, Names::kNumeric)) {
      pollfd ready = {.fd = socket.get(), .events = POLLOUT, .revents = 0};
      poll_until({&ready, 1}, from_now(seconds(5)));
      if (connect_result(socket) == 0) socket_ = std::move(socket);
    }
    if (!socket_.is_open()) std::this_thread::sleep_for(milliseconds(10));
  }

  Socket socket_;
};

void expect_meets(const SocketOptions& options) {
  const auto fabric = socket_fabric(options, seconds(60));
  fabric->communicator(Group::world(fabric->world_size()))->barrier();
}

/// Rank 0 of two, which waits for rank 1 at an address.
struct Meeting0 : testing::Test {
  SocketOptions rank(std::int32_t number) const {
    return {.rank = number, .size = 2, .address = address, .job = "mine", .deadline = seconds(30)};
  }
  Hello hello(std::int32_t number) const {
    return {.job = "mine", .size = 2, .rank = {number}, .address = "127.0.0.1:9"};
  }
  /// Rank 0 meets rank 1 after `before` is done.
  void meet_after(const std::function<void()>& before) {
    expect_none(errors_of(2, [&](std::int32_t number) {
      if (number == 1) before();
      expect_meets(rank(number));
    }));
  }
  FreeAddress free;
  std::string address = free.text;
};

TEST_F(Meeting0, goes_on_whatever_strangers_send) {
  std::deque<Stranger> strangers;
  meet_after([&] {
    strangers.emplace_back(address,
                           as_bytes("GET / HTTP/1.1\r\nHost: a.very.long.name.here\r\n\r\n"));
    strangers.emplace_back(address, ByteSpan());  // and nothing ever
    strangers.emplace_back(address, as_bytes("RPS"));
    strangers.emplace_back(address, FrameKind::kJoin, "what?");
    strangers.emplace_back(address, FrameKind::kData, encode(hello(1)));
    strangers.emplace_back(address, FrameKind::kJoin, std::string(5000, 'x'));
    EXPECT_FALSE(strangers.front().answer());
  });
}

TEST_F(Meeting0, is_not_kept_waiting_by_a_crowd_that_says_nothing) {
  std::deque<Stranger> crowd;
  meet_after([&] {
    for (int i = 0; i < 300; ++i) crowd.emplace_back(address, ByteSpan());
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(crowd.front().answer()) << "it makes room for others";
    EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(5));
  });
}

TEST(HeldPort, goes_only_to_who_names_it_and_reuses_addresses) {
  const Socket held = hold_port("127.0.0.1");
  const HostPort place = host_port_of(own_address(held));
  sockaddr_in address = {.sin_family = AF_INET,
                         .sin_port = htons(static_cast<in_port_t>(std::stoi(place.port))),
                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                         .sin_zero = {}};
  const Socket other =
      Socket::from([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
  EXPECT_NE(::bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(own_address(listen_at(place)), own_address(held));
  EXPECT_EQ(host_port_of("127.0.0.1:0080").port, "80");
  const Socket first = listen_at(place);
  EXPECT_EQ(code_of([&] { listen_at(place); }), Code::kIo);
}

TEST(Ports, of_connections_can_be_listened_at) {
  const Socket listener = listen_at({"127.0.0.1", "0"});
  const auto begun = connect_to(host_port_of(own_address(listener)), Names::kNumeric);
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_FALSE(code_of([&] { listen_at(host_port_of(own_address(begun[0]))); }));
}

/// Gives the calling thread, and those that it starts, a network of their own with 16 ports to
/// choose from, of which none waits after its connection has ended. Returns false where that is not
/// allowed.
bool enter_network_of_few_ports() {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const Socket any = Socket::from([] { return ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); });
  ifreq loopback = {};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(any.get(), SIOCSIFFLAGS, &loopback) != 0) return false;
  const auto write = [](const std::string& name, const std::string& value) {
    return (std::ofstream("/proc/sys/net/ipv4/" + name) << value << std::flush).good();
  };
  return write("ip_local_port_range", "40000 40015") && write("tcp_max_tw_buckets", "0");
}

/// Linux prefers odd ports for who listens and even ones for who connects.
TEST(Ports, of_other_ranks_leave_the_one_that_rank_0_comes_for) {
  bool allowed = false;
  std::thread([&] {
    allowed = enter_network_of_few_ports();
    for (int job = 0; allowed && job < 80; ++job) {
      const MeetBy by = job < 40 || !has_ipv6() ? MeetBy::kAddress : MeetBy::kAddress6;
      const std::string host = by == MeetBy::kAddress ? "127.0.0.1" : "[::1]";
      expect_none(errors_of(4, [&](std::int32_t rank) {
        if (rank == 0) std::this_thread::sleep_for(milliseconds(20));
        socket_fabric({.rank = rank,
                       .size = 4,
                       .address = host + ":4000" + std::to_string(6 + job % 2),
                       .bind = host_of(by),
                       .deadline = seconds(5)},
                      seconds(5));
      }));
    }
  }).join();
  if (!allowed) GTEST_SKIP() << "this process can't have a network of its own";
}

/// Returns the processor time of this process.
milliseconds busy() {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return std::chrono::duration_cast<milliseconds>(of(used.ru_utime) + of(used.ru_stime));
}

/// Leaves no number free below the largest that is in use. Returns the next one.
int fill_descriptors() {
  int last = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) last = fd;
  }
  int next = ::dup(0);
  while (next < last) next = ::dup(0);
  return next;
}

TEST_F(Meeting0, sleeps_while_it_has_no_room_for_another_connection) {
  const RankProcess rank0([&] {
    // A sanitizer needs descriptors to look up a type for the first time, so this comes first.
    SocketOptions alone = rank(0);
    alone.address = FreeAddress().text;
    alone.deadline = milliseconds(10);
    EXPECT_EQ(code_of([&] { expect_meets(alone); }), Code::kDeadline);
    const int next = fill_descriptors();
    rlimit room = {};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &room), 0);
    room.rlim_cur = static_cast<rlim_t>(next) + 3;
    ::close(next);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &room), 0);
    SocketOptions options = rank(0);
    options.deadline = seconds(1);
    const auto error = error_of([&] { expect_meets(options); });
    return name_of(error->code()) == "DEADLINE" && busy() < milliseconds(300)
               ? std::string("slept")
               : error->what() + (" after " + std::to_string(busy().count()));
  });
  std::deque<Stranger> crowd;
  for (int i = 0; i < 6; ++i) crowd.emplace_back(address, ByteSpan());
  EXPECT_EQ(rank0.said(), "slept");
}

TEST_F(Meeting0, ends_at_its_deadline_also_if_strangers_never_stop_to_come) {
  std::atomic<bool> done = false;
  std::thread strangers([&] {
    while (!done) Stranger(address, ByteSpan()).leave();
  });
  SocketOptions options = rank(0);
  options.deadline = milliseconds(500);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(code_of([&] { expect_meets(options); }), Code::kDeadline);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(3));
  done = true;
  const Socket listener = listen_at(host_port_of(address));  // for the stranger that still tries
  strangers.join();
}

struct RefusedRow {
  const char* name;
  std::function<void(Hello&)> change;
  Code code;
  const char* text;
};
std::ostream& operator<<(std::ostream& out, const RefusedRow& row) { return out << row.name; }

struct Refused : Meeting0, testing::WithParamInterface<RefusedRow> {};

TEST_P(Refused, is_told_why_and_the_job_goes_on) {
  Hello changed = hello(1);
  GetParam().change(changed);
  meet_after([&] {
    Stranger stranger(address, FrameKind::kJoin, encode(changed));
    const auto error = stranger.answer();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), GetParam().code);
    EXPECT_THAT(error->message(), HasSubstr(GetParam().text));
    EXPECT_THAT(error->message(), testing::StartsWith("127.0.0.1:"));
  });
}

INSTANTIATE_TEST_SUITE_P(
    Meeting0, Refused,
    testing::Values(RefusedRow{"another_size", [](Hello& hello) { hello.size = 5; },
                               Code::kLayoutMismatch, "is rank 1 of 5, but this job has 2 ranks"},
                    RefusedRow{"another_job", [](Hello& hello) { hello.job = "theirs"; },
                               Code::kUsage, "of job 'theirs', but this is job 'mine'"},
                    RefusedRow{"another_version", [](Hello& hello) { hello.version = 99; },
                               Code::kUnsupported,
                               "uses version 99 of the protocol, but this rank uses version 1"},
                    RefusedRow{"number_of_rank_0", [](Hello& hello) { hello.rank = {0}; },
                               Code::kLayoutMismatch, "is rank 0, and so is 127.0.0.1:"},
                    RefusedRow{"negative_number", [](Hello& hello) { hello.rank = {-1}; },
                               Code::kLayoutMismatch, "is rank -1 of 2, and ranks count from 0"},
                    RefusedRow{"number_that_is_too_large", [](Hello& hello) { hello.rank = {2}; },
                               Code::kLayoutMismatch, "is rank 2 of 2, and ranks count from 0"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_F(Meeting0, refuses_one_that_would_connect_before_all_have_come) {
  meet_after([&] {
    Stranger stranger(address, FrameKind::kLink, encode(hello(1)));
    EXPECT_EQ(stranger.answer()->code(), Code::kUsage);
  });
}

TEST_F(Meeting0, waits_for_a_rank_that_comes_late) {
  meet_after([] { std::this_thread::sleep_for(milliseconds(700)); });
}

TEST_F(Meeting0, may_itself_come_late) {
  expect_none(errors_of(2, [&](std::int32_t number) {
    if (number == 0) std::this_thread::sleep_for(milliseconds(700));
    expect_meets(rank(number));
  }));
}

TEST_F(Meeting0, names_who_has_not_come_and_who_was_turned_away) {
  SocketOptions options = rank(0);
  options.size = 4;
  options.deadline = seconds(1);
  const auto errors = errors_of(2, [&](std::int32_t number) {
    if (number == 0) expect_meets(options);
    if (number == 1) {
      Stranger(address, FrameKind::kJoin, encode(hello(3))).answer();
      SocketOptions own = options;
      own.rank = 2;
      own.deadline = seconds(20);
      expect_meets(own);
    }
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kDeadline) << error->what();
    EXPECT_THAT(error->message(),
                HasSubstr("the job has 4 ranks; these did not join in time: 1 3; "));
    EXPECT_THAT(error->message(), HasSubstr("is rank 3 of 2, but this job has 4 ranks"));
  }
}

TEST_F(Meeting0, that_nobody_holds_is_waited_for_until_the_deadline) {
  SocketOptions options = rank(1);
  options.deadline = milliseconds(300);
  const auto error = error_of([&] { expect_meets(options); });
  EXPECT_EQ(error->code(), Code::kDeadline);
  EXPECT_THAT(error->message(), HasSubstr("rank 0 does not listen at " + address));
}

TEST_F(Meeting0, ends_when_the_job_is_told_to_stop) {
  for (const std::int32_t number : {0, 1}) {
    SocketOptions own = rank(number);
    int asked = 0;
    own.interrupted = [&asked] { return ++asked > 3; };
    EXPECT_EQ(code_of([&] { expect_meets(own); }), Code::kInterrupted) << number;
  }
}

TEST_F(Meeting0, ends_for_all_when_a_rank_that_came_has_ended) {
  SocketOptions options = rank(0);
  options.size = 4;  // and rank 3 never comes
  Hello gone = hello(2);
  gone.size = 4;
  const auto errors = errors_of(2, [&](std::int32_t number) {
    SocketOptions own = options;
    own.rank = number;
    if (number == 1) {
      own.deadline = seconds(3);  // rank 0 may have given up already
      const Stranger came(address, FrameKind::kJoin, encode(gone));
    }
    expect_meets(own);
  });
  ASSERT_TRUE(errors[0]);
  EXPECT_EQ(errors[0]->code(), Code::kPeerFailed);
  EXPECT_THAT(errors[0]->message(), HasSubstr("rank 2 exited before all ranks had joined"));
  ASSERT_TRUE(errors[1]);
}

TEST_F(Meeting0, is_of_another_program_at_that_address) {
  const Socket listener = listen_at(host_port_of(address));
  Socket other;
  std::thread answers([&] {
    pollfd ready = {.fd = listener.get(), .events = POLLIN, .revents = 0};
    poll_until({&ready, 1}, from_now(seconds(20)));
    std::string from;
    other = accept_from(listener, from);
    send_some(other,
              std::array{as_bytes("220 mail.example ESMTP, and what are you to want here?")});
  });
  const auto error = error_of([&] { expect_meets(rank(1)); });
  answers.join();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kUsage);
  EXPECT_THAT(error->message(), HasSubstr("what answers at " + address + " is not a rank"));
}

TEST_F(Meeting0, cannot_be_where_another_one_listens) {
  const Socket listener = listen_at(host_port_of(address));
  const auto error = error_of([&] { expect_meets(rank(0)); });
  EXPECT_EQ(error->code(), Code::kIo);
  EXPECT_THAT(error->what(), HasSubstr("Address already in use"));
  EXPECT_THAT(error->what(), HasSubstr("[rank 0]"));
}

TEST_F(Meeting0, refuses_one_that_comes_when_all_have_come) {
  expect_none(errors_of(2, [&](std::int32_t number) {
    const auto fabric = socket_fabric(rank(number), seconds(60));
    const auto all = fabric->communicator(Group::world(2));
    if (number == 1) {
      const auto late = error_of([&] { expect_meets(rank(1)); });
      EXPECT_EQ(late->code(), Code::kUsage);
      EXPECT_THAT(late->message(), HasSubstr("is rank 1 but is too late"));
      Hello guess = hello(1);
      guess.key = "0123456789abcdef";
      Stranger link(address, FrameKind::kLink, encode(guess));
      EXPECT_THAT(link.answer()->message(), HasSubstr("of another start of job 'mine'"));
      Stranger rubbish(address, as_bytes(std::string(100, '?')));
      EXPECT_FALSE(rubbish.answer());
    }
    all->barrier();
  }));
}

// ---------------------------------------------------------------- by a store of keys

struct KeyMeeting : testing::Test {
  SocketOptions rank(std::int32_t number) {
    return {.rank = number, .size = 3, .store = keys.store(), .deadline = seconds(20)};
  }
  MemoryKeys keys;
};

TEST_F(KeyMeeting, says_which_rank_has_another_size) {
  const auto errors = errors_of(3, [&](std::int32_t number) {
    SocketOptions own = rank(number);
    if (number == 1) own.size = 4;
    expect_meets(own);
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kLayoutMismatch);
    EXPECT_THAT(error->message(), HasSubstr("is rank 1 of 4, but this job has 3 ranks"));
  }
}

TEST_F(KeyMeeting, refuses_one_of_two_processes_with_one_number) {
  for (const std::int32_t twice : {1, 2}) {
    std::atomic<int> refused = 0;
    expect_none(errors_of(4, [&](std::int32_t number) {
      SocketOptions own = rank(number == 3 ? twice : number);
      own.job = std::to_string(twice);
      const auto error = error_of([&] { expect_meets(own); });
      if (!error) return;
      EXPECT_EQ(error->code(), Code::kLayoutMismatch) << error->what();
      EXPECT_THAT(error->message(), HasSubstr("is rank " + own.job + ", and so is 127.0.0.1:"));
      ++refused;
    }));
    EXPECT_EQ(refused, 1);
  }
}

// Which of the two goes on with whom depends on who reads what first.
TEST_F(KeyMeeting, does_not_take_two_processes_for_rank_0) {
  const auto errors = errors_of(4, [&](std::int32_t number) { expect_meets(rank(number % 3)); });
  EXPECT_TRUE(errors[0] || errors[3]);
  for (const auto& error : errors) {
    EXPECT_NE(error ? error->code() : Code::kUsage, Code::kDeadline) << "nobody waits in vain";
  }
}

TEST_F(KeyMeeting, names_who_has_not_come) {
  const auto errors = errors_of(2, [&](std::int32_t number) {
    SocketOptions own = rank(number);
    own.deadline = milliseconds(number == 0 ? 300 : 5000);
    expect_meets(own);
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kDeadline);
    EXPECT_THAT(error->message(), HasSubstr("rank 2 did not join in time"));
  }
}

TEST_F(KeyMeeting, ends_when_the_job_is_told_to_stop) {
  SocketOptions own = rank(1);
  int asked = 0;
  own.interrupted = [&asked] { return ++asked > 3; };
  EXPECT_EQ(code_of([&] { expect_meets(own); }), Code::kInterrupted);
}

TEST_F(KeyMeeting, ends_with_what_the_store_throws) {
  SocketOptions own = rank(1);
  own.store.get = [](const std::string&) -> std::optional<std::string> {
    throw std::runtime_error("the store is gone");
  };
  const auto error = error_of([&] { expect_meets(own); });
  EXPECT_EQ(error->code(), Code::kInternal);
  EXPECT_THAT(error->what(), HasSubstr("the store is gone"));
  EXPECT_EQ(error->place().rank, GlobalRank{1});
}

TEST_F(KeyMeeting, refuses_a_store_that_holds_something_else) {
  SocketOptions own = rank(1);
  own.store.get = [](const std::string&) { return std::optional<std::string>("42"); };
  EXPECT_EQ(code_of([&] { expect_meets(own); }), Code::kUsage);
  own.rank = 0;
  EXPECT_EQ(code_of([&] { expect_meets(own); }), Code::kUsage);
}

// ---------------------------------------------------------------- options

TEST(SocketOptionsRule, refuses_what_makes_no_sense) {
  const SocketOptions good{.rank = 0, .size = 2, .address = "127.0.0.1:1"};
  const auto refused = [&good](const std::function<void(SocketOptions&)>& change) {
    SocketOptions options = good;
    change(options);
    return code_of([&] { socket_fabric(options); });
  };
  using Options = SocketOptions;
  EXPECT_EQ(refused([](Options& own) { own.rank = 2; }), Code::kUsage);
  EXPECT_EQ(refused([](Options& own) { own.rank = -1; }), Code::kUsage);
  EXPECT_EQ(refused([](Options& own) { own.size = 0; }), Code::kUsage);
  EXPECT_EQ(refused([](Options& own) { own.address = ""; }), Code::kUsage);
  EXPECT_EQ(refused([](Options& own) { own.store = MemoryKeys().store(); }), Code::kUsage);
  EXPECT_EQ(refused([](Options& own) { own.job = "a\nb"; }), Code::kUsage);
  EXPECT_EQ(refused([](Options& own) { own.job = std::string(257, 'a'); }), Code::kUsage);
  EXPECT_EQ(refused([](Options& own) { own.deadline = seconds(0); }), Code::kUsage);
  for (const char* text : {"nowhere", ":1", "host:", "host:x", "host:99999", "::1:80", "host:-1"}) {
    EXPECT_EQ(refused([text](Options& own) { own.address = text; }), Code::kUsage) << text;
  }
  EXPECT_EQ(code_of([&] { socket_fabric(good, seconds(0)); }), Code::kUsage);
  EXPECT_EQ(refused([](Options& own) { own.address = "0.0.0.0:0"; }), Code::kUsage);
  EXPECT_EQ(refused([](Options& own) { own.address = "[::]:0"; }), Code::kUsage);
  EXPECT_EQ(refused([](Options& own) {
              own.rank = 1;
              own.bind = "0.0.0.0";
            }),
            Code::kUsage);
  EXPECT_EQ(refused([](Options& own) { own.address = "no.such.host.invalid:80"; }), Code::kIo);
}

}  // namespace
}  // namespace reprise::contracts
