#include "core/base/sha256.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace reprise {
namespace {

std::string sha256_text(const std::string& text) { return hex(sha256_of(as_bytes(text))); }

// The examples of FIPS 180-4's authors, and lengths at which the end needs a block of its own; what
// sha256sum prints for them.
TEST(Sha256, is_the_published_one) {
  EXPECT_EQ(sha256_text(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_text("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_text(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256_text(std::string(55, 'x')),
            "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(sha256_text(std::string(56, 'x')),
            "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  EXPECT_EQ(sha256_text(std::string(63, 'x')),
            "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
  EXPECT_EQ(sha256_text(std::string(64, 'x')),
            "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
  EXPECT_EQ(sha256_text(std::string(65, 'x')),
            "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9");
  EXPECT_EQ(sha256_text(std::string(119, 'x')),
            "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c");
  EXPECT_EQ(sha256_text(std::string(120, 'x')),
            "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98");
}

TEST(Sha256, does_not_depend_on_how_bytes_are_cut) {
  std::mt19937 random(1);
  std::string text(1000, '\0');
  for (char& c : text) c = static_cast<char>(random());
  const Sha256Digest whole = sha256_of(as_bytes(text));
  for (std::size_t first = 0; first <= text.size(); ++first) {
    const std::size_t second = random() % (text.size() - first + 1);
    Sha256 cut;
    cut.update(as_bytes(text).first(first));
    const Sha256Digest early = cut.digest();
    EXPECT_EQ(early, sha256_of(as_bytes(text).first(first)));
    cut.update(as_bytes(text).subspan(first, second))
        .update(as_bytes(text).subspan(first + second));
    EXPECT_EQ(cut.digest(), whole) << first << " " << second;
  }
}

TEST(Sha256, is_the_same_with_and_without_the_processors_instructions) {
  const Sha256Blocks fast = sha256_blocks_of_processor();
  if (fast == nullptr) GTEST_SKIP() << "this processor has no instructions for SHA-256";
  std::mt19937 random(2);
  std::vector<std::byte> blocks(20 * kSha256Block);
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
  for (std::size_t count = 0; count <= 20; ++count) {
    Sha256Words plain{};
    for (std::uint32_t& word : plain) word = static_cast<std::uint32_t>(random());
    Sha256Words other = plain;
    sha256_blocks_plain(plain, blocks.data(), count);
    fast(other, blocks.data(), count);
    EXPECT_EQ(plain, other) << count << " blocks";
  }
}

}  // namespace
}  // namespace reprise
