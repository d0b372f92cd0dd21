// A rank that has met the others and then sends what no rank sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "core/adapters/socket/frame.hpp"
#include "core/adapters/socket/hello.hpp"
#include "core/base/bytes.hpp"
#include "tests/core/adapters/socket/socket_ranks.hpp"

namespace reprise::contracts {
namespace {

using testing::HasSubstr;
using Reading = FrameReader::State;

bool is_ready(const Socket& socket, std::int16_t events, milliseconds wait) {
  pollfd ready = {.fd = socket.get(), .events = events, .revents = 0};
  return poll_until({&ready, 1}, from_now(wait));
}

Socket connected_to(const std::string& address) {
  auto begun = connect_to(host_port_of(address), Names::kNumeric);
  EXPECT_TRUE(is_ready(begun.front(), POLLOUT, seconds(5)));
  return connect_result(begun.front()) == 0 ? std::move(begun.front()) : Socket();
}

/// Returns the next frame; one of kind kBye if the connection is closed or nothing comes.
Frame next_frame(const Socket& socket) {
  FrameReader reader;
  for (;;) {
    const Reading state = reader.read(socket);
    if (state == Reading::kFrame) return reader.take();
    if (state != Reading::kWaiting || !is_ready(socket, POLLIN, seconds(10))) return {};
  }
}

void send_frame(const Socket& socket, FrameHeader header, const Bytes& body) {
  FrameQueue queue;
  header.size = body.size();
  queue.put(header, std::make_shared<Bytes>(body));
  EXPECT_EQ(queue.send(socket), 0);
  EXPECT_TRUE(queue.empty());
}

/// Rank 1 of two, played by the test. It gets through the meeting and the first call.
class FalseRank {
 public:
  explicit FalseRank(const std::string& address) : listener_(listen_at({"127.0.0.1", "0"})) {
    hello_ = {.job = "reprise", .size = 2, .rank = {1}, .address = own_address(listener_)};
    Socket meeting;
    for (int i = 0; i < 500 && !meeting.is_open(); ++i) {
      meeting = connected_to(address);
      if (!meeting.is_open()) std::this_thread::sleep_for(milliseconds(10));
    }
    send_frame(meeting, {.kind = FrameKind::kJoin}, to_bytes(encode(hello_)));
    const auto answer = decode_answer(as_text(next_frame(meeting).body));
    hello_.key = answer->session.key;
    rank0_ = answer->session.addresses[0];
    ahead_ = link();
    EXPECT_TRUE(is_ready(listener_, POLLIN, seconds(5)));
    std::string from;
    behind_ = accept_from(listener_, from);
    EXPECT_EQ(next_frame(behind_).header.kind, FrameKind::kLink);
    begin_ = next_frame(behind_).header;
    EXPECT_EQ(begin_.kind, FrameKind::kData);
    send_frame(ahead_, begin_, {});
  }

  /// Makes a connection that begins like one between ranks.
  Socket link() const {
    Socket socket = connected_to(rank0_);
    send_frame(socket, {.kind = FrameKind::kLink}, to_bytes(encode(hello_)));
    return socket;
  }
  const Socket& ahead() const { return ahead_; }
  const FrameHeader& begin() const { return begin_; }

 private:
  Socket listener_;
  Hello hello_;
  std::string rank0_;
  Socket ahead_;
  Socket behind_;
  FrameHeader begin_;
};

/// Runs rank 0, which makes a communicator and waits, beside `body`. Returns the error of rank 0.
std::optional<Error> beside_false_rank(const std::function<void(FalseRank&)>& body) {
  const FreeAddress free;
  return errors_of(2, [&](std::int32_t number) {
    if (number == 0) {
      const auto fabric = socket_fabric(
          {.rank = 0, .size = 2, .address = free.text, .deadline = seconds(30)}, seconds(30));
      fabric->communicator(Group::world(2));
    } else {
      FalseRank false_rank(free.text);
      body(false_rank);
    }
  })[0];
}

TEST(FalseRanks, that_connect_a_second_time_are_refused) {
  const auto error = beside_false_rank([](FalseRank& one) {
    const Socket again = one.link();
    const auto answer = decode_answer(as_text(next_frame(again).body));
    ASSERT_TRUE(answer && answer->refused);
    EXPECT_EQ(answer->refused->code(), Code::kLayoutMismatch);
    EXPECT_THAT(answer->refused->message(), HasSubstr("is rank 1, which is already connected"));
  });
  EXPECT_EQ(error->code(), Code::kPeerFailed) << "then the false rank ended";
}

TEST(FalseRanks, that_send_what_no_rank_sends_are_named) {
  const std::vector<std::pair<FrameHeader, Bytes>> rows = {
      {{.kind = FrameKind::kLost, .call = 2}, to_bytes("a rank beyond the last")},
      {{.kind = FrameKind::kWarn, .call = ~std::uint64_t{0}}, {}},
      {{.kind = FrameKind::kJoin}, to_bytes("again")},
      {{.kind = FrameKind::kAnswer}, to_bytes("welcome\n")}};
  for (const auto& [header, body] : rows) {
    const auto error = beside_false_rank([&, &header = header, &body = body](FalseRank& one) {
      send_frame(one.ahead(), header, body);
      EXPECT_EQ(next_frame(one.ahead()).header.kind, FrameKind::kBye) << "it is closed";
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kPeerFailed);
    EXPECT_THAT(error->message(), HasSubstr("rank 1 sent something that no rank of Reprise sends"));
  }
}

TEST(FalseRanks, that_send_rubbish_are_named) {
  const auto error = beside_false_rank([](FalseRank& one) {
    send_some(one.ahead(), std::array{ByteSpan(Bytes(100, std::byte{'?'}))});
    EXPECT_EQ(next_frame(one.ahead()).header.kind, FrameKind::kBye);
  });
  EXPECT_THAT(error->message(), HasSubstr("rank 1 sent something that no rank of Reprise sends"));
}

// Much of what is sent is on its way in the system's buffers.
TEST(FalseRanks, that_send_what_nobody_waits_for_are_not_read_without_end) {
  constexpr std::size_t kFrame = std::size_t{1} << 20U;
  std::size_t sent = 0;
  beside_false_rank([&](FalseRank& one) {
    FrameQueue queue;
    const auto body = std::make_shared<Bytes>(kFrame);
    for (; sent < 400; ++sent) {
      queue.put({.kind = FrameKind::kData, .size = kFrame, .channel = 7}, body);
      while (queue.send(one.ahead()) == 0 && !queue.empty()) {
        if (!is_ready(one.ahead(), POLLOUT, seconds(1))) return;
      }
    }
  });
  EXPECT_GE(sent, 60U);
  EXPECT_LT(sent, 200U);
}

}  // namespace
}  // namespace reprise::contracts
