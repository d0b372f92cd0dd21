#include "core/state/catalog.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

using contracts::code_of;

/// Returns every fragmentation that divides a small original shape into equal blocks.
std::vector<Dims> fragmentations(const Dims& original) {
  std::vector<Dims> all = {{}};
  for (std::size_t d = 0; d < original.size(); ++d) {
    std::vector<Dims> longer;
    for (const Dims& start : all) {
      for (std::int64_t parts = 1; parts <= original[d]; ++parts) {
        if (original[d] % parts != 0) continue;
        longer.push_back(start);
        longer.back().push_back(parts);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// Returns the indices of the block's elements in row-major order, found by walking the whole
/// tensor.
std::vector<Dims> elements_of_block(const Dims& original, const Dims& cuts, const Dims& block) {
  std::vector<Dims> elements;
  for (std::int64_t i = 0; i < volume(original); ++i) {
    const Dims index = index_at(i, original);
    bool inside = true;
    for (std::size_t d = 0; d < original.size(); ++d) {
      inside = inside && index[d] * cuts[d] / original[d] == block[d];
    }
    if (inside) elements.push_back(index);
  }
  return elements;
}

StoredTensor flattened(const Dims& original, const Dims& cuts) {
  StoredTensor tensor{.key = "exp_avg", .shape = cuts, .chunks = {}, .original_shape = original};
  tensor.shape.push_back(volume(original) / volume(cuts));
  return tensor;
}

/// Requires that the pieces contain the elements `expected`, in the order of the chunk's payload.
void expect_elements(const StoredTensor& tensor, const StoredChunk& chunk,
                     const std::vector<Dims>& expected) {
  std::vector<bool> seen(expected.size());
  for (const Piece& piece : pieces_of(tensor, chunk)) {
    for (std::int64_t i = 0; i < piece.box.elements(); ++i) {
      Dims index = index_at(i, piece.box.extent);
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += piece.box.offset[d];
      const auto at = static_cast<std::size_t>(local_offset(piece, index));
      ASSERT_LT(at, expected.size()) << chunk.box;
      ASSERT_EQ(expected[at], index) << chunk.box << " at " << at;
      ASSERT_FALSE(seen[at]) << chunk.box << " twice " << index;
      seen[at] = true;
    }
  }
  EXPECT_EQ(seen, std::vector<bool>(expected.size(), true)) << chunk.box;
}

TEST(Catalog, a_flattened_chunk_holds_what_walking_the_tensor_says) {
  int chunks = 0;
  for (const Dims& original : {Dims{6}, Dims{4, 3}, Dims{2, 4, 3}, Dims{1, 5, 1}}) {
    for (const Dims& cuts : fragmentations(original)) {
      const StoredTensor tensor = flattened(original, cuts);
      EXPECT_EQ(logical_shape(tensor), original);
      const std::int64_t flat = tensor.shape[original.size()];
      for (std::int64_t b = 0; b < volume(cuts); ++b) {
        const Dims block = index_at(b, cuts);
        const auto elements = elements_of_block(original, cuts, block);
        ASSERT_EQ(static_cast<std::int64_t>(elements.size()), flat);
        for (std::int64_t begin = 0; begin <= flat; ++begin) {
          for (std::int64_t end = begin; end <= flat; ++end) {
            StoredChunk chunk;
            chunk.box = {block, Dims::filled(block.size(), 1)};
            chunk.box.offset.push_back(begin);
            chunk.box.extent.push_back(end - begin);
            expect_elements(tensor, chunk, {elements.begin() + begin, elements.begin() + end});
            ++chunks;
          }
        }
      }
    }
  }
  EXPECT_GT(chunks, 1000);
}

TEST(Catalog, a_plain_chunk_is_one_row_major_piece) {
  const StoredTensor tensor{.key = "w", .shape = {4, 6}, .chunks = {}, .original_shape = {}};
  EXPECT_EQ(logical_shape(tensor), (Dims{4, 6}));
  const Box box{{1, 2}, {2, 3}};
  EXPECT_EQ(pieces_of(tensor, {.box = box, .range = {}}),
            std::vector<Piece>{contiguous_piece(box)});
}

TEST(Catalog, flattened_chunks_that_leave_their_tensor_are_refused) {
  const Dims original{4, 6};
  struct Row {
    const char* what;
    Dims shape;
    Box chunk;
  };
  const Row rows[] = {
      {"the range ends behind the block", {2, 1, 12}, {{1, 0, 3}, {1, 1, 10}}},
      {"the range begins before it", {2, 1, 12}, {{1, 0, -1}, {1, 1, 4}}},
      {"the block is not one of them", {2, 1, 12}, {{2, 0, 0}, {1, 1, 4}}},
      {"a negative block", {2, 1, 12}, {{-1, 0, 0}, {1, 1, 4}}},
      {"a block that comes back to 0 modulo 2^64",
       {1, 1, 24},
       {{std::int64_t{1} << 62, 0, 0}, {1, 1, 4}}},
      {"the range ends beyond counting", {2, 1, 12}, {{0, 0, INT64_MAX}, {1, 1, 4}}},
      {"two blocks at once", {2, 1, 12}, {{0, 0, 0}, {2, 1, 4}}},
      {"three does not divide four", {3, 1, 8}, {{0, 0, 0}, {1, 1, 4}}},
      {"no fragments", {0, 1, 12}, {{0, 0, 0}, {1, 1, 4}}},
      {"no flat dimension", {2, 12}, {{0, 0}, {1, 4}}},
      {"a chunk of another rank", {2, 1, 12}, {{0, 0}, {1, 4}}},
  };
  for (const auto& row : rows) {
    const StoredTensor tensor{
        .key = "exp_avg", .shape = row.shape, .chunks = {}, .original_shape = original};
    EXPECT_EQ(code_of([&] { (void)pieces_of(tensor, {.box = row.chunk, .range = {}}); }),
              Code::kExtentMismatch)
        << row.what;
  }
}

TEST(Catalog, items_are_found_by_key) {
  Catalog catalog;
  for (const char* key : {"a", "b.c", "b/d"}) {
    catalog.tensors.push_back({.key = key, .shape = {}, .chunks = {}, .original_shape = {}});
    catalog.objects.push_back({.key = key, .range = {}});
  }
  for (const char* key : {"a", "b.c", "b/d"}) {
    ASSERT_NE(catalog.tensor(key), nullptr);
    EXPECT_EQ(catalog.tensor(key)->key, key);
    ASSERT_NE(catalog.object(key), nullptr);
    EXPECT_EQ(catalog.object(key)->key, key);
  }
  for (const char* key : {"", "b", "b.", "c"}) {
    EXPECT_EQ(catalog.tensor(key), nullptr) << key;
    EXPECT_EQ(catalog.object(key), nullptr) << key;
  }
}

}  // namespace
}  // namespace reprise
