// Tests frames and hellos byte by byte.
#include "core/adapters/socket/frame.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>

#include "core/adapters/socket/hello.hpp"
#include "core/base/bytes.hpp"

namespace reprise {
namespace {

using Reading = FrameReader::State;

/// Two ends of a connection.
struct FramePair : testing::Test {
  FramePair() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    sender = Socket::from([&] { return ends[0]; });
    receiver = Socket::from([&] { return ends[1]; });
  }
  void send(ByteSpan bytes) { ASSERT_EQ(send_some(sender, std::array{bytes}).bytes, bytes.size()); }
  static Bytes head(std::uint32_t magic, std::uint32_t kind, std::uint64_t size) {
    Bytes head;
    append_le(head, magic);
    append_le(head, kind);
    append_le(head, size);
    head.resize(40);
    return head;
  }
  Socket sender;
  Socket receiver;
};

constexpr std::uint32_t kMagic = 0x4b535052;
constexpr std::uint32_t kData = 4;

TEST_F(FramePair, arrive_as_they_were_sent_whatever_their_size) {
  FrameQueue queue;
  const std::vector<std::size_t> sizes = {0, 1, 65535, 65536, 65537, 3'000'000, 0, 7};
  for (const std::size_t size : sizes) {
    const auto body = std::make_shared<Bytes>(size, std::byte(size % 251));
    queue.put({.kind = FrameKind::kData, .size = size, .channel = 5, .call = 6, .sequence = size},
              body);
  }
  FrameReader reader;
  for (const std::size_t size : sizes) {
    while (reader.read(receiver) != Reading::kFrame) ASSERT_EQ(queue.send(sender), 0);
    const Frame frame = reader.take();
    EXPECT_EQ(frame.header.sequence, size);
    EXPECT_EQ(frame.header.channel, 5U);
    EXPECT_EQ(frame.header.call, 6U);
    EXPECT_EQ(frame.body, Bytes(size, std::byte(size % 251)));
    EXPECT_EQ(frame.body.capacity(), frame.body.size()) << "no more than was sent";
  }
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(reader.read(receiver), Reading::kWaiting);
  sender.close();
  EXPECT_EQ(reader.read(receiver), Reading::kEnded);
}

TEST_F(FramePair, arrive_byte_by_byte) {
  Bytes all = head(kMagic, kData, 3);
  append(all, as_bytes("abc"));
  FrameReader reader;
  for (const auto one : all) {
    EXPECT_EQ(reader.read(receiver), Reading::kWaiting);
    send({&one, 1});
  }
  EXPECT_EQ(reader.read(receiver), Reading::kFrame);
  EXPECT_EQ(as_text(reader.take().body), "abc");
}

// Allocating what this header claims would end the test.
TEST_F(FramePair, take_memory_as_they_arrive_and_not_as_they_claim) {
  send(head(kMagic, kData, kDataBytesMax));
  send(Bytes(100));
  FrameReader reader;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reader.read(receiver), Reading::kWaiting);
}

TEST_F(FramePair, to_one_that_is_gone_are_an_error_and_no_signal) {
  receiver.close();
  FrameQueue queue;
  queue.put({.kind = FrameKind::kBye});
  EXPECT_EQ(queue.send(sender), EPIPE);
}

TEST_F(FramePair, that_are_none_or_too_large_are_garbled) {
  struct Row {
    Bytes head;
    std::uint64_t size_max;
  };
  const std::vector<Row> rows = {{head(kMagic + 1, kData, 0), kDataBytesMax},
                                 {head(kMagic, 0, 0), kDataBytesMax},
                                 {head(kMagic, 8, 0), kDataBytesMax},
                                 {head(kMagic, kData, kDataBytesMax + 1), kDataBytesMax},
                                 {head(kMagic, kData, ~std::uint64_t{0}), kDataBytesMax},
                                 {head(kMagic, kData, 11), 10},
                                 {head(kMagic, 1, kHelloBytesMax + 1), kDataBytesMax}};
  for (const Row& row : rows) {
    send(row.head);
    FrameReader reader(row.size_max);
    EXPECT_EQ(reader.read(receiver), Reading::kGarbled);
    std::array<std::byte, 64> rest = {};
    while (receive_some(receiver, rest).bytes != 0) {
    }
  }
}

TEST(Hellos, are_read_as_they_were_written) {
  const Hello hello{
      .job = "a job", .size = 512, .rank = {17}, .address = "[::1]:4000", .key = "0123"};
  const auto read = decode_hello(encode(hello));
  ASSERT_TRUE(read);
  EXPECT_EQ(encode(*read), encode(hello));
  EXPECT_FALSE(refusal_of(*read, hello, "me"));
}

TEST(Hellos, that_are_cut_or_longer_are_none) {
  const std::string whole = encode(Hello{.job = "a", .size = 2, .rank = {1}, .address = "b:1"});
  for (std::size_t cut = 0; cut + 2 < whole.size(); ++cut) {
    EXPECT_FALSE(decode_hello(whole.substr(0, cut))) << cut;
  }
  EXPECT_FALSE(decode_hello(whole + "more"));
  EXPECT_FALSE(decode_hello(""));
}

TEST(Answers, are_read_as_they_were_written) {
  const Answer welcome{.refused = {}, .session = {.key = "k", .addresses = {"a:1", "[::1]:2"}}};
  const auto read = decode_answer(encode(welcome));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->session.addresses, welcome.session.addresses);
  EXPECT_EQ(read->session.key, "k");
  const Answer refusal{.refused = Error(Code::kDeadline, "two\nlines", {.rank = GlobalRank{3}}),
                       .session = {}};
  const auto refused = decode_answer(encode(refusal));
  ASSERT_TRUE(refused && refused->refused);
  EXPECT_STREQ(refused->refused->what(), refusal.refused->what());
  for (const char* text : {"", "welcom", "NO_SUCH_CODE\n1\nx", "DEADLINE\nx\n", "welcome"}) {
    EXPECT_EQ(decode_answer(text).has_value(), std::string(text) == "welcome") << text;
  }
}

}  // namespace
}  // namespace reprise
