#include "core/state/renamed_catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

Catalog catalog_with(const std::vector<std::string>& tensors,
                     const std::vector<std::string>& objects) {
  Catalog catalog;
  for (const auto& key : tensors) {
    catalog.tensors.push_back({.key = key, .shape = {1}, .chunks = {}, .original_shape = {}});
  }
  for (const auto& key : objects) catalog.objects.push_back({.key = key});
  return catalog;
}

std::string without_model(std::string_view key) {
  return std::string(key.starts_with("m.") ? key.substr(2) : key);
}

TEST(RenamedCatalog, items_are_sorted_by_their_other_keys) {
  const Catalog catalog = renamed(catalog_with({"b", "m.a", "m.c"}, {"m.o"}), without_model);
  ASSERT_EQ(catalog.tensors.size(), 3U);
  EXPECT_EQ(catalog.tensors[0].key, "a");
  EXPECT_EQ(catalog.tensors[1].key, "b");
  EXPECT_EQ(catalog.tensors[2].key, "c");
  EXPECT_NE(catalog.tensor("a"), nullptr);
  EXPECT_NE(catalog.object("o"), nullptr);
}

TEST(RenamedCatalog, two_keys_that_become_one_are_refused_by_name) {
  for (const auto& catalog : {catalog_with({"a", "m.a"}, {}), catalog_with({"m.a"}, {"a"})}) {
    const auto error = contracts::error_of([&] { renamed(catalog, without_model); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kUsage);
    EXPECT_THAT(error->message(),
                testing::AllOf(testing::HasSubstr("'a'"), testing::HasSubstr("'m.a'")));
  }
}

TEST(RenamedCatalog, an_item_of_one_rank_keeps_its_rank) {
  Catalog catalog = catalog_with({"m.a@rank0", "m.a@rank1"}, {});
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    catalog.tensors[static_cast<std::size_t>(rank)].known_by = {.ranks = {rank}, .own = true};
  }
  const Catalog after = renamed(catalog, without_model);
  EXPECT_EQ(after.tensors[0].key, "a@rank0");
  EXPECT_EQ(after.tensors[1].key, "a@rank1");
  EXPECT_EQ(name_of(after.tensors[1]), "a");
}

}  // namespace
}  // namespace reprise
