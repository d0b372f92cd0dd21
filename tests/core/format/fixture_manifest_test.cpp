// Tests that tests/data/manifest.json records the origin of every fixture, and that no fixture has
// changed since.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/sha256.hpp"
#include "tests/core/format/items.hpp"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::MatchesRegex;

Json manifest() { return Json::parse(as_text(test::test_file("manifest.json"))); }

/// Lists the test data files, except README.md, manifest.json and the files in vectors/.
std::vector<std::string> files() {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(REPRISE_TEST_DATA)) {
    std::string path = fs::relative(entry.path(), REPRISE_TEST_DATA).generic_string();
    const bool text = path == "README.md" || path == "manifest.json";
    if (entry.is_regular_file() && !text && !path.starts_with("vectors/")) {
      found.push_back(std::move(path));
    }
  }
  return found;
}

bool belongs(const std::string& path, const std::string& fixture) {
  return path == fixture || path == fixture + ".expected.json" || path.starts_with(fixture + "/");
}

/// Computes the hash as tests/interop/manifest.py does.
std::string content_of(const std::vector<std::string>& paths) {
  std::vector<std::string> lines;
  for (const auto& path : paths) {
    lines.push_back(hex(sha256_of(test::test_file(path))) + "  " + path + "\n");
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& line : lines) text += line;
  return hex(sha256_of(as_bytes(text)));
}

TEST(FixtureManifest, NamesTheMakerOfEachFixtureByHash) {
  const Json fixtures = manifest();
  EXPECT_GE(fixtures.size(), 20U);
  for (const auto& [name, made] : fixtures.items()) {
    EXPECT_THAT(made["script"].get<std::string>(), MatchesRegex("make_.*\\.py")) << name;
    EXPECT_THAT(made["script_sha256"].get<std::string>(), MatchesRegex("[0-9a-f]+")) << name;
    EXPECT_EQ(made["script_sha256"].get<std::string>().size(), 64U) << name;
    EXPECT_THAT(made["torch"].get<std::string>(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
    const bool of_megatron = std::ranges::any_of(
        std::array{"mcore_", "optimizer_forms_", "changes_"},
        [&name = name](const char* prefix) { return name.starts_with(prefix); });
    EXPECT_EQ(made["megatron_core"].is_null(), !of_megatron) << name;
  }
}

TEST(FixtureManifest, EachFixtureIsStillWhatWasMade) {
  const Json fixtures = manifest();
  const std::vector<std::string> all = files();
  for (const auto& [name, made] : fixtures.items()) {
    std::vector<std::string> own;
    std::copy_if(all.begin(), all.end(), std::back_inserter(own),
                 [&name = name](const std::string& path) { return belongs(path, name); });
    EXPECT_EQ(content_of(own), made["content"]) << name;
  }
}

TEST(FixtureManifest, EveryFileBelongsToOneFixture) {
  const Json fixtures = manifest();
  ASSERT_FALSE(files().empty());
  for (const auto& path : files()) {
    std::vector<std::string> owners;
    for (const auto& [name, made] : fixtures.items()) {
      if (belongs(path, name)) owners.push_back(name);
    }
    EXPECT_EQ(owners.size(), 1U) << path << " has no entry: tests/interop/manifest.py";
  }
}

}  // namespace
}  // namespace reprise
