#include "core/format/integrity.hpp"

#include <gtest/gtest.h>

#include "tests/core/format/items.hpp"

namespace reprise {
namespace {

constexpr std::string_view kDigestOfAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string manifest_of(std::string_view name, std::string_view digest) {
  return "{\"algorithm\": \"sha256\", \"files\": {\"" + std::string(name) + "\": \"" +
         std::string(digest) + "\"}}";
}

TEST(Sha256, is_that_of_the_standard_in_one_piece_or_many) {
  EXPECT_EQ(hex(sha256_of({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256_of(as_bytes("abc"))), kDigestOfAbc);
  Sha256 hash;
  hash.update(as_bytes("a"));
  EXPECT_EQ(hash.digest(), sha256_of(as_bytes("a")));
  EXPECT_EQ(hex(hash.update(as_bytes("bc")).digest()), kDigestOfAbc);
}

TEST(Integrity, reads_what_it_writes_in_the_order_of_names) {
  const IntegrityManifest manifest{{{".metadata", sha256_of(as_bytes("m"))},
                                    {"__0_0.distcp", sha256_of(as_bytes("abc"))},
                                    {"ключ", sha256_of({})}}};
  const Bytes bytes = write_integrity(manifest);
  EXPECT_EQ(read_integrity(bytes).files, manifest.files);
  ASSERT_NE(read_integrity(bytes).find("__0_0.distcp"), nullptr);
  EXPECT_EQ(hex(read_integrity(bytes).find("__0_0.distcp")->digest), kDigestOfAbc);
  EXPECT_EQ(read_integrity(bytes).find("__0_1.distcp"), nullptr);
}

TEST(Integrity, is_written_as_python_does_with_an_indent_of_two) {
  const IntegrityManifest manifest{{{"a b", sha256_of(as_bytes("abc"))}}};
  EXPECT_EQ(as_text(write_integrity(manifest)),
            "{\n  \"algorithm\": \"sha256\",\n  \"files\": {\n    \"a b\": \"" +
                std::string(kDigestOfAbc) + "\"\n  }\n}");
}

TEST(Integrity, a_document_that_cannot_be_a_damaged_manifest_is_a_users_own) {
  for (const std::string_view own :
       {R"({"note": 1})", R"([{"algorithm": "sha256"}])", " [] ", "7"}) {
    EXPECT_FALSE(may_be_integrity(as_bytes(own))) << own;
  }
  const std::string manifest = manifest_of("a", kDigestOfAbc);
  EXPECT_TRUE(may_be_integrity(as_bytes(manifest)));
  for (std::size_t size = 0; size < manifest.size(); ++size) {
    EXPECT_TRUE(may_be_integrity(as_bytes(manifest.substr(0, size)))) << size;
  }
  EXPECT_TRUE(may_be_integrity(as_bytes("[" + manifest.substr(1))));  // one bit turns { to [
}

TEST(Integrity, refuses_other_algorithms_forms_and_names) {
  const std::string upper = "B" + std::string(kDigestOfAbc.substr(1));
  const struct {
    std::string text;
    Code code;
  } rows[] = {
      {R"({"algorithm": "md5", "files": {}})", Code::kUnsupported},
      {R"({"algorithm": 1, "files": {}})", Code::kTornFile},
      {R"({"algorithm": "sha256"})", Code::kTornFile},
      {R"({"files": {}})", Code::kTornFile},
      {R"({"algorithm": "sha256", "files": []})", Code::kTornFile},
      {R"({"algorithm": "sha256", "files": {"a": 1}})", Code::kTornFile},
      {manifest_of("a", ""), Code::kTornFile},
      {manifest_of("a", kDigestOfAbc.substr(1)), Code::kTornFile},
      {manifest_of("a", upper), Code::kTornFile},
      {manifest_of("", kDigestOfAbc), Code::kPathEscape},
      {manifest_of("..", kDigestOfAbc), Code::kPathEscape},
      {manifest_of("../a", kDigestOfAbc), Code::kPathEscape},
      {manifest_of("/etc/passwd", kDigestOfAbc), Code::kPathEscape},
      {manifest_of("a\\u0000b", kDigestOfAbc), Code::kPathEscape},
      {"[]", Code::kTornFile},
      {"{", Code::kTornFile},
      {manifest_of("a", kDigestOfAbc) + '\0' + "x", Code::kTornFile},
  };
  for (const auto& row : rows) {
    const Error error =
        test::error_of([&] { read_integrity(as_bytes(row.text), {.file = "integrity.json"}); });
    EXPECT_EQ(error.code(), row.code) << row.text << ": " << error.what();
    EXPECT_EQ(error.place().file, "integrity.json");
  }
}

TEST(Integrity, refuses_to_write_a_name_that_is_not_utf8) {
  const IntegrityManifest manifest{{{"\xff", {}}}};
  EXPECT_EQ(test::error_of([&] { write_integrity(manifest); }).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace reprise
