// Tests what verify says of paths that do not fit the keys. Uses the metadata alone.

#include "core/verify/verify_planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kEnd = "; dcp_to_torch_save loses or misplaces them";

/// Returns metadata with the tensors "a", "b.0" and the object "c", each with its own path.
Metadata with_paths() {
  Metadata metadata;
  metadata.catalog.tensors = {{.key = "a", .shape = {1}}, {.key = "b.0", .shape = {1}}};
  metadata.catalog.objects = {{"c", 0, {}}};
  metadata.planner_data = {{"a", {std::string("a")}},
                           {"b.0", {std::string("b"), std::int64_t{0}}},
                           {"c", {std::string("c")}}};
  return metadata;
}

std::string only_message(const Metadata& metadata) {
  const Findings findings = check_planner(metadata);
  EXPECT_EQ(findings.size(), 1U);
  return findings.empty() ? "" : findings[0].message;
}

TEST(CheckPlanner, PathsThatSpellTheirKeysSayNothing) {
  EXPECT_TRUE(check_planner(with_paths()).empty());
  Metadata none = with_paths();
  none.planner_data.clear();
  EXPECT_TRUE(check_planner(none).empty());
}

TEST(CheckPlanner, ThreeKeysAreNamedAndTheOthersCounted) {
  Metadata metadata = with_paths();
  for (const char* key : {"d", "e", "f"}) metadata.catalog.objects.push_back({key, 0, {}});
  EXPECT_THAT(only_message(metadata), EndsWith(std::string("no path for keys: d, e, f") + kEnd));
  metadata.catalog.objects.push_back({"g", 0, {}});
  EXPECT_THAT(only_message(metadata),
              EndsWith(std::string("no path for keys: d, e, f and 1 more") + kEnd));
}

TEST(CheckPlanner, OfALongKey200BytesAreNamed) {
  Metadata metadata = with_paths();
  metadata.catalog.objects.push_back({std::string(300, 'k'), 0, {}});
  EXPECT_THAT(only_message(metadata),
              AllOf(HasSubstr(std::string(200, 'k')), Not(HasSubstr(std::string(201, 'k')))));
}

TEST(CheckPlanner, APathWithinAnotherIsNamedWithBothKeys) {
  Metadata metadata = with_paths();
  metadata.catalog.objects.push_back({"b", 0, {}});
  metadata.planner_data.push_back({"b", {std::string("b")}});
  EXPECT_THAT(only_message(metadata), HasSubstr("two keys one path, or a path within the other's: "
                                                "b and b.0"));
}

}  // namespace
}  // namespace reprise
