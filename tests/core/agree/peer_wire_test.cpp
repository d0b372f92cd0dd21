// Tests that a message from another rank must be read to its end, and that a length in a message
// can't extend a read past that end.
#include "core/agree/peer_wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

using contracts::code_of;
using contracts::error_of;
using testing::HasSubstr;

Bytes sample() {
  Bytes wire;
  append_le(wire, std::uint32_t{7});
  put_text(wire, "key");
  put_texts(wire, {"a", "", "bcd"});
  return wire;
}

void read_sample(ByteSpan bytes) {
  PeerWire wire(bytes, "a sample");
  EXPECT_EQ(wire.number<std::uint32_t>(), 7U);
  EXPECT_EQ(wire.text(), "key");
  EXPECT_EQ(wire.texts(), (std::vector<std::string>{"a", "", "bcd"}));
  wire.end();
}

TEST(PeerWire, gives_back_what_was_put) { EXPECT_NO_THROW(read_sample(sample())); }

TEST(PeerWire, cut_anywhere_or_with_bytes_behind_it_is_refused) {
  Bytes wire = sample();
  for (std::size_t size = 0; size < wire.size(); ++size) {
    EXPECT_EQ(code_of([&] { read_sample(ByteSpan(wire).first(size)); }), Code::kCollectiveMismatch)
        << size;
  }
  wire.push_back(std::byte{0});
  EXPECT_EQ(code_of([&] { read_sample(wire); }), Code::kCollectiveMismatch);
}

TEST(PeerWire, claims_of_more_than_is_there_are_refused_before_room_is_made) {
  for (const std::uint64_t claim : {std::uint64_t{9}, std::uint64_t{1} << 60U, UINT64_MAX}) {
    Bytes wire;
    append_le(wire, claim);
    append_le(wire, std::uint64_t{0});
    for (const auto& read : std::vector<void (*)(PeerWire&)>{
             [](PeerWire& peer) { peer.part(); }, [](PeerWire& peer) { peer.texts(); },
             [](PeerWire& peer) { peer.count(1); }}) {
      const auto error = error_of([&] {
        PeerWire peer(wire, "a sample");
        read(peer);
      });
      ASSERT_TRUE(error) << claim;
      EXPECT_EQ(error->code(), Code::kCollectiveMismatch);
      EXPECT_THAT(error->message(), HasSubstr("a sample from another rank claims"));
    }
  }
}

}  // namespace
}  // namespace reprise
