#include "core/plan/layout_boxes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/plan/layout_reads.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

StoredTensor stored(const std::string& key, const Dims& shape, std::vector<Box> boxes = {}) {
  StoredTensor tensor{key, DType::kFloat32, shape, {}, {}};
  if (boxes.empty()) boxes.push_back(Box::whole(shape));
  std::uint64_t offset = 0;
  for (const Box& box : boxes) {
    const auto bytes = static_cast<std::uint64_t>(box.elements()) * 4 + 1000;
    tensor.chunks.push_back({box, 0, {offset, bytes}});
    offset += bytes;
  }
  return tensor;
}

Catalog catalog_of(std::vector<StoredTensor> tensors) {
  std::ranges::sort(tensors, {}, &StoredTensor::key);
  return {.files = {"__0_0.distcp"}, .tensors = std::move(tensors), .objects = {}};
}

/// Two stages get the layers in halves.
LayoutParts parts(std::int32_t tp, std::int32_t pp) {
  LayoutParts made{.tp = tp, .pp = pp};
  made.etp = tp;
  made.stage_of = [pp](std::int64_t layer, std::int64_t layers) {
    return static_cast<std::int32_t>(layer * pp / layers);
  };
  return made;
}

constexpr SavedBy kMegatron{.megatron = true};

Box box(const Dims& offset, const Dims& extent) { return {offset, extent}; }

TEST(LayoutBoxes, a_rank_asks_for_its_rows_of_its_layers) {
  const Catalog catalog =
      catalog_of({stored("decoder.layers.self_attention.linear_qkv.weight", {2, 24, 8})});
  const LayoutBoxes boxes(catalog, parts(2, 2), kMegatron);
  EXPECT_THAT(boxes.of(0, {.tp = 0, .pp = 0}), ElementsAre(box({0, 0, 0}, {1, 12, 8})));
  EXPECT_THAT(boxes.of(0, {.tp = 1, .pp = 1}), ElementsAre(box({1, 12, 0}, {1, 12, 8})));
}

TEST(LayoutBoxes, each_half_of_a_gated_layer_is_cut_for_itself) {
  const std::string fc2 = "decoder.layers.0.mlp.linear_fc2.weight";
  const std::string fc1 = "decoder.layers.0.mlp.linear_fc1.weight";
  const Catalog gated = catalog_of({stored(fc1, {24, 8}), stored(fc2, {8, 12})});
  EXPECT_THAT(LayoutBoxes(gated, parts(2, 1), kMegatron).of(0, {.tp = 1}),
              ElementsAre(box({6, 0}, {6, 8}), box({18, 0}, {6, 8})));
  const Catalog plain = catalog_of({stored(fc1, {24, 8}), stored(fc2, {8, 24})});
  EXPECT_THAT(LayoutBoxes(plain, parts(2, 1), kMegatron).of(0, {.tp = 1}),
              ElementsAre(box({12, 0}, {12, 8})));
}

TEST(LayoutBoxes, embedding_and_output_are_of_the_first_and_last_stage) {
  const Catalog tied = catalog_of({stored("embedding.word_embeddings.weight", {8, 4})});
  const LayoutBoxes both(tied, parts(1, 3), kMegatron);
  EXPECT_THAT(both.of(0, {.pp = 0}), testing::SizeIs(1));
  EXPECT_THAT(both.of(0, {.pp = 1}), IsEmpty());
  EXPECT_THAT(both.of(0, {.pp = 2}), testing::SizeIs(1)) << "it is the output, too";
  const Catalog apart = catalog_of(
      {stored("embedding.word_embeddings.weight", {8, 4}), stored("output_layer.weight", {8, 4})});
  const LayoutBoxes one(apart, parts(1, 3), kMegatron);
  EXPECT_THAT(one.of(0, {.pp = 2}), IsEmpty());
  EXPECT_THAT(one.of(1, {.pp = 2}), testing::SizeIs(1));
}

TEST(LayoutBoxes, experts_are_divided_over_ep) {
  const Catalog catalog =
      catalog_of({stored("decoder.layers.mlp.experts.experts.linear_fc2.weight", {1, 4, 8, 6})});
  LayoutParts cut = parts(1, 1);
  cut.ep = 2;
  const LayoutBoxes boxes(catalog, cut, kMegatron);
  EXPECT_THAT(boxes.of(0, {.ep = 1}),
              ElementsAre(box({0, 2, 0, 0}, {1, 1, 8, 6}), box({0, 3, 0, 0}, {1, 1, 8, 6})));
  cut.ep = 3;
  EXPECT_EQ(contracts::code_of([&] { LayoutBoxes(catalog, cut, kMegatron).of(0, {}); }),
            Code::kLayoutMismatch);
}

TEST(LayoutBoxes, without_megatron_rows_are_cut_over_the_shards) {
  const Catalog catalog = catalog_of({stored("layers.0.attention.wo.weight", {6, 8})});
  LayoutParts cut = parts(2, 1);
  cut.shards = 4;
  const LayoutBoxes boxes(catalog, cut, {});
  EXPECT_THAT(boxes.of(0, {.tp = 1, .shard = 2}), ElementsAre(box({4, 4}, {2, 4})));
  EXPECT_THAT(boxes.of(0, {.tp = 1, .shard = 3}), IsEmpty());
}

TEST(LayoutBoxes, what_no_name_tells_is_whole_and_said_so) {
  const Dims shape = {4, 8};
  const Catalog catalog = catalog_of({stored("decoder.layers.0.adapter.weight", shape)});
  const LayoutBoxes boxes(catalog, parts(2, 1), kMegatron);
  EXPECT_THAT(boxes.of(0, {.tp = 1}), ElementsAre(Box::whole(shape)));
  EXPECT_THAT(boxes.untold(), ElementsAre("decoder.layers.0.adapter.weight"));
  EXPECT_THAT(LayoutBoxes(catalog, parts(1, 1), kMegatron).untold(), IsEmpty());
}

TEST(LayoutBoxes, chunks_tell_what_names_do_not) {
  const Catalog catalog = catalog_of({stored("decoder.layers.0.adapter.weight", {4, 8},
                                             {box({0, 0}, {4, 4}), box({0, 4}, {4, 4})})});
  const LayoutBoxes boxes(catalog, parts(4, 1), {.megatron = true, .tp = 2});
  EXPECT_THAT(boxes.untold(), IsEmpty());
  EXPECT_THAT(boxes.of(0, {.tp = 3}), ElementsAre(box({0, 6}, {4, 2})));
}

TEST(LayoutBoxes, buckets_fit_the_layout_that_saved_alone) {
  const std::string bucket =
      "optimizer.distributed.dp_group_idx_1.gbuf_idx_0.dtype_(a, b).bucket_idx_0.param";
  const Catalog catalog = catalog_of({stored(bucket, {1608})});
  LayoutParts same = parts(2, 1);
  same.shards = 2;
  const SavedBy saved{.megatron = true, .tp = 2};
  const LayoutBoxes boxes(catalog, same, saved);
  EXPECT_THAT(boxes.of(0, {.tp = 0}), IsEmpty());
  EXPECT_THAT(boxes.of(0, {.tp = 1, .shard = 1}), ElementsAre(box({832}, {776})));
  EXPECT_THAT(boxes.unfit(), IsEmpty());
  EXPECT_THAT(LayoutBoxes(catalog, parts(4, 1), saved).unfit(), ElementsAre(bucket));
  EXPECT_THAT(LayoutBoxes(catalog, parts(1, 2), saved).unfit(), ElementsAre(bucket))
      << "as many ranks, but the buckets are of others";
}

TEST(LayoutBoxes, rows_that_do_not_divide_are_refused) {
  const Catalog catalog = catalog_of({stored("decoder.layers.0.mlp.linear_fc2.weight", {8, 6})});
  const auto error =
      contracts::error_of([&] { LayoutBoxes(catalog, parts(4, 1), kMegatron).of(0, {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kLayoutMismatch);
  EXPECT_THAT(error->what(), testing::HasSubstr("6 columns over 4 ranks"));
}

TEST(LayoutBoxes, layers_that_do_not_divide_are_refused) {
  LayoutParts three = parts(1, 3);
  three.layer_parts = 3;
  for (const Catalog& catalog :
       {catalog_of({stored("decoder.layers.mlp.router.weight", {4, 8, 8})}),
        catalog_of({stored("decoder.layers.3.mlp.router.weight", {8, 8})})}) {
    const auto error =
        contracts::error_of([&] { LayoutBoxes(catalog, three, kMegatron).of(0, {}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kLayoutMismatch);
    EXPECT_THAT(error->what(), testing::HasSubstr("4 layers over 3 stages"));
    EXPECT_FALSE(contracts::error_of([&] { LayoutBoxes(catalog, three, {}).of(0, {}); }));
  }
}

TEST(LayoutBoxes, a_claim_of_endless_layers_is_refused) {
  const Catalog catalog = catalog_of({stored("decoder.layers.mlp.router.weight", {1LL << 40, 8})});
  EXPECT_EQ(contracts::code_of([&] { LayoutBoxes(catalog, parts(1, 1), kMegatron).of(0, {}); }),
            Code::kLimit);
}

TEST(LayoutReads, whole_chunks_are_read_once_for_each_box) {
  // Two chunks of 12 rows; a rank asks for 6 rows of each half.
  const Catalog catalog = catalog_of({stored("decoder.layers.0.mlp.linear_fc1.weight", {24, 8},
                                             {box({0, 0}, {12, 8}), box({12, 0}, {12, 8})}),
                                      stored("decoder.layers.0.mlp.linear_fc2.weight", {8, 12})});
  const LayoutBoxes boxes(catalog, parts(2, 1), kMegatron);
  const std::vector<LayoutPlace> places = {{.tp = 0}, {.tp = 1}};
  const auto reads = layout_reads(catalog, boxes, places);
  const std::uint64_t rows = 12 * 8 * 4;
  const std::uint64_t fc2 = 8 * 12 * 4;
  EXPECT_EQ(reads[0].held, rows + fc2 / 2);
  EXPECT_EQ(reads[0].read, 2 * rows + fc2);
  EXPECT_EQ(reads[0].chunks, 3U);
  EXPECT_EQ(reads[0].peak(), reads[0].held + 2 * rows) << "fc1's two chunks, of 12 rows each";
  EXPECT_EQ(reads[0].of_file.at(0), 2 * rows + fc2 + 3000) << "whole items, with their frames";
  const std::vector<std::uint64_t> ranks = {1, 1};
  EXPECT_DOUBLE_EQ(read_amplification(reads, ranks), 2);
}

TEST(LayoutReads, a_gap_is_an_error) {
  const Catalog catalog =
      catalog_of({stored("decoder.layers.0.mlp.router.weight", {4, 8}, {box({0, 0}, {2, 8})})});
  const LayoutBoxes boxes(catalog, parts(1, 1), kMegatron);
  const std::vector<LayoutPlace> places = {{}};
  EXPECT_EQ(contracts::code_of([&] { layout_reads(catalog, boxes, places); }), Code::kCoverageGap);
}

}  // namespace
}  // namespace reprise
