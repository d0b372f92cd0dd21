// Real optimizers saved one state in three forms (tests/interop/make_optimizer_forms.py). What is
// made of two of them must be the third.

#include "core/reshard/optimizer_form.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "core/geometry/convert.hpp"
#include "core/reshard/bucket_map.hpp"
#include "core/reshard/reshard.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kForms = "optimizer_forms_0.16.1/";

/// The layout of the fixtures.
SavingLayout tp2() {
  SavingLayout layout{.parts = {.tp = 2, .etp = 2}};
  layout.parts.stage_of = [](std::int64_t, std::int64_t) { return 0; };
  return layout;
}

class OptimizerForm : public test::StoreTest {
 protected:
  OptimizerView view_of(const std::string& form, const SavingLayout& layout = tp2()) {
    Checkpoint source = Checkpoint::open(test::data_store(), kForms + form);
    return as_fully_reshardable(source, layout, device_);
  }

  /// Writes the fixture in the form fully_reshardable to "out".
  OptimizerView write(const std::string& form) {
    Checkpoint source = Checkpoint::open(test::data_store(), kForms + form);
    OptimizerView view = as_fully_reshardable(source, tp2(), device_);
    Checkpoint viewed = source.with(view.metadata);
    ReshardOptions options;
    options.common = view.common;
    reshard(viewed, {"out"}, options, {store_, device_, tasks_, trace_, progress_});
    return view;
  }

  DiffReport against_megatrons() {
    return test::diff_of(test::data_store(), kForms + "fully_reshardable", store_, "out");
  }
};

TEST_F(OptimizerForm, buckets_become_what_megatron_saves) {
  const OptimizerView view = write("dp_reshardable");
  EXPECT_EQ(view.from, "dp_reshardable");
  EXPECT_THAT(view.without_state, IsEmpty());
  EXPECT_EQ(view.parameters, 36U);
  const DiffReport report = against_megatrons();
  EXPECT_EQ(report.different(), 0U);
  EXPECT_GT(report.elements, 4 * 1000U) << "weights, parameters and both moments";
}

TEST_F(OptimizerForm, flattened_ranges_become_what_megatron_saves) {
  const OptimizerView view = write("fully_sharded_model_space");
  EXPECT_EQ(view.from, "fully_sharded_model_space");
  const Checkpoint written = Checkpoint::open(store_, "out");
  const Checkpoint real = Checkpoint::open(test::data_store(), kForms + "fully_reshardable");
  ASSERT_EQ(written.catalog().tensors.size(), real.catalog().tensors.size());
  for (const StoredTensor& tensor : written.catalog().tensors) {
    EXPECT_TRUE(tensor.original_shape.empty()) << tensor.key;
  }
  const DiffReport report = against_megatrons();
  for (const auto& tensor : report.tensors) {
    EXPECT_EQ(tensor.verdict, DiffVerdict::kSame) << tensor.key;
  }
}

TEST_F(OptimizerForm, the_form_that_is_asked_for_stays) {
  const OptimizerView view = view_of("fully_reshardable");
  EXPECT_EQ(view.from, "fully_reshardable");
  Checkpoint source = Checkpoint::open(test::data_store(), kForms + "fully_reshardable");
  EXPECT_EQ(view.common, *source.common()->item.value);
}

TEST_F(OptimizerForm, a_bucket_that_no_weight_fits_is_refused) {
  SavingLayout wrong = tp2();
  wrong.parts.tp = 1;
  const auto error = contracts::error_of([&] { view_of("dp_reshardable", wrong); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kUnsupported);
  EXPECT_THAT(error->what(), HasSubstr("no weight of this rank has the bits"));
}

TEST_F(OptimizerForm, a_parameter_is_found_by_all_its_bits) {
  test::FixtureCopy copy(kForms + "dp_reshardable");
  Checkpoint source = Checkpoint::open(copy.store, "ckpt");
  const StoredTensor& weight =
      *source.catalog().tensor("decoder.layers.self_attention.linear_proj.weight");
  const StoredChunk& chunk = weight.chunks.front();
  const TensorItem item = source.tensor_item(weight, chunk);
  const auto last = chunk.range.offset + item.data_offset + item.data_bytes - 1;
  std::fstream file(copy.path(source.path_of(chunk.file)),
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(last));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(last));
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  const auto error = contracts::error_of([&] { as_fully_reshardable(source, tp2(), device_); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kChecksum) << "no weight fits, as one is damaged";
  EXPECT_EQ(error->place().key, weight.key);
}

TEST_F(OptimizerForm, equal_weights_are_not_guessed_among_virtual_stages) {
  SavingLayout wrong = tp2();
  wrong.virtual_stages = true;
  const auto error = contracts::error_of([&] { view_of("dp_reshardable", wrong); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("have the same bits"));
}

/// The real buckets, cut so that each has one parameter: their keys have no longer the order of
/// their numbers.
class ManyBuckets : public OptimizerForm {
 protected:
  using Parameters = std::map<std::string, BucketParameter>;  // by the name of the bucket

  void SetUp() override {
    const Metadata& old = source_.metadata();
    cut_ = old;
    auto& tensors = cut_.catalog.tensors;
    std::erase_if(tensors, [](const StoredTensor& t) { return parse_bucket_key(t.key); });
    const auto parameters = mapped(source_);
    std::map<std::string, std::map<std::int64_t, BucketParameter>> buckets;
    for (const BucketParameter& one : parameters) buckets[one.bucket][one.begin] = one;
    std::map<std::string, int> begins;  // the numbers go on in the next bucket of a group
    std::map<std::int64_t, int> of_group;
    for (const auto& [bucket, of_bucket] : buckets) {
      int& next = of_group[parse_bucket_key(bucket + ".param")->of_group.group];
      begins[bucket] = next;
      next += static_cast<int>(of_bucket.size());
    }
    for (const StoredTensor& tensor : old.catalog.tensors) {
      const auto key = parse_bucket_key(tensor.key);
      if (!key) continue;
      int number = begins[key->bucket];
      const auto& of_bucket = buckets.at(key->bucket);
      for (auto at = of_bucket.begin(); at != of_bucket.end(); ++at, ++number) {
        const auto next = std::next(at);
        const std::int64_t end = next == of_bucket.end() ? tensor.shape[0] : next->first;
        std::string name = key->bucket;
        name.replace(name.rfind('_') + 1, std::string::npos, std::to_string(number));
        tensors.push_back(part_of(tensor, at->first, end));
        tensors.back().key = name + "." + key->slot;
        wanted_[name] = at->second;
      }
    }
    sort();
  }

  static StoredTensor part_of(const StoredTensor& tensor, std::int64_t begin, std::int64_t end) {
    StoredTensor part = tensor;
    std::erase_if(part.chunks, [&](const StoredChunk& chunk) {
      return chunk.box.offset[0] < begin || chunk.box.offset[0] >= end;
    });
    std::int64_t length = 0;
    for (StoredChunk& chunk : part.chunks) {
      chunk.box.offset[0] -= begin;
      length = std::max(length, chunk.box.offset[0] + chunk.box.extent[0]);
    }
    part.shape = {length};
    return part;
  }

  void sort() { std::ranges::sort(cut_.catalog.tensors, {}, &StoredTensor::key); }

  /// Replaces a part of the keys of buckets with numbers from `first` on.
  void rename(int first, const std::string& part, const std::string& with) {
    for (StoredTensor& tensor : cut_.catalog.tensors) {
      const auto key = parse_bucket_key(tensor.key);
      if (!key || std::stoi(key->bucket.substr(key->bucket.rfind('_') + 1)) < first) continue;
      tensor.key.replace(tensor.key.find(part), part.size(), with);
    }
    sort();
  }

  std::vector<BucketParameter> mapped(Checkpoint& checkpoint) {
    const SavingLayout layout = tp2();
    const LayoutBoxes boxes(checkpoint.catalog(), layout.parts, {.megatron = true});
    return map_buckets(checkpoint, boxes, layout.parts, false, device_);
  }
  std::vector<BucketParameter> mapped() {
    Checkpoint cut = source_.with(cut_);
    return mapped(cut);
  }
  void expect_refused(const std::string& says) {
    const auto error = contracts::error_of([&] { mapped(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kUnsupported);
    EXPECT_THAT(error->what(), HasSubstr(says));
  }

  Checkpoint source_ = Checkpoint::open(test::data_store(), kForms + "dp_reshardable");
  Metadata cut_;
  Parameters wanted_;
};

TEST_F(ManyBuckets, the_eleventh_comes_after_the_tenth) {
  const auto found = mapped();
  ASSERT_GT(found.size(), 2 * 11U);
  ASSERT_EQ(found.size(), wanted_.size());
  for (const BucketParameter& one : found) {
    EXPECT_EQ(source_.catalog().tensors[wanted_.at(one.bucket).weight].key,
              cut_.catalog.tensors[one.weight].key)
        << one.bucket;
    EXPECT_EQ(wanted_.at(one.bucket).boxes, one.boxes) << one.bucket;
  }
}

TEST_F(ManyBuckets, a_frozen_weight_gets_no_state_of_an_equal_one) {
  const std::string norm = "layers.self_attention.linear_qkv.layer_norm_weight";
  std::erase_if(cut_.catalog.tensors, [&](const StoredTensor& tensor) {
    const auto key = parse_bucket_key(tensor.key);
    if (!key) return false;
    const BucketParameter& one = wanted_.at(key->bucket);
    const std::string& weight = source_.catalog().tensors[one.weight].key;
    return weight.find(norm) != std::string::npos && one.boxes[0].offset[0] == 1;
  });
  expect_refused("one of them has no state in any bucket");
}

TEST_F(ManyBuckets, a_buffer_has_the_parameters_of_its_type) {
  rename(10, "dtype_(torch.bfloat16", "dtype_(torch.float32");
  expect_refused("no weight of this rank has the bits");
}

TEST_F(ManyBuckets, ties_in_two_buffers_of_one_type_are_refused) {
  rename(10, "gbuf_idx_0", "gbuf_idx_1");
  expect_refused("have the same bits");
}

TEST_F(OptimizerForm, what_has_no_content_metadata_gets_it) {
  // As megatron-core before 0.13 saves it.
  Checkpoint real = Checkpoint::open(test::data_store(), kForms + "fully_sharded_model_space");
  ReshardOptions options;
  options.common = *real.common()->item.value;
  std::erase_if(*options.common->as<Dict>(),
                [](const auto& entry) { return entry.first == Value("content_metadata"); });
  reshard(real, {"old"}, options, {store_, device_, tasks_, trace_, progress_});
  Checkpoint source = Checkpoint::open(store_, "old");
  ASSERT_EQ(source.common()->item.value->find("content_metadata"), nullptr);
  const OptimizerView view = as_fully_reshardable(source, tp2(), device_);
  const Value* content = view.common.find("content_metadata");
  ASSERT_NE(content, nullptr);
  const Value* type = content->find("distrib_optim_sharding_type");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(*type, Value("fully_reshardable"));
}

TEST_F(OptimizerForm, forms_that_cannot_be_written_say_why) {
  for (const char* form : {"dp_reshardable", "fully_sharded_model_space", "fsdp_dtensor"}) {
    const auto error = contracts::error_of([&] { require_writable_form(form); });
    ASSERT_TRUE(error) << form;
    EXPECT_EQ(error->code(), Code::kUnsupported) << form;
    EXPECT_THAT(error->what(), HasSubstr(form));
  }
  EXPECT_EQ(contracts::code_of([] { require_writable_form("full"); }), Code::kUsage);
  EXPECT_FALSE(contracts::error_of([] { require_writable_form("fully_reshardable"); }));
}

TEST_F(OptimizerForm, other_sources_are_refused) {
  struct Row {
    const char* fixture;
    const char* says;
  };
  for (const Row& row : std::vector<Row>{
           {"torch_2.15.0/plain", "no common state"},
           {"mcore_0.16.1_gpt_tp2_pp2", "no state of Megatron-Core's distributed optimizer"},
           {"mcore_0.16.1_buckets", "no weight of this rank has the bits"},
           {"mcore_0.16.1_mimo_prefixed", ""}}) {
    Checkpoint source = Checkpoint::open(test::data_store(), row.fixture);
    const auto error = contracts::error_of([&] { as_fully_reshardable(source, tp2(), device_); });
    ASSERT_TRUE(error) << row.fixture;
    EXPECT_EQ(error->code(), Code::kUnsupported) << row.fixture;
    EXPECT_THAT(error->what(), HasSubstr(row.says)) << row.fixture;
  }
}

TEST(BucketKey, parts) {
  const std::string bucket =
      "chained_1.optimizer.distributed.dp_group_idx_3.gbuf_idx_0.dtype_(torch.bfloat16, "
      "torch.float32).bucket_idx_2";
  const auto key = parse_bucket_key(bucket + ".exp_avg");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->of_group.prefix, "chained_1.");
  EXPECT_EQ(key->of_group.chain, 1);
  EXPECT_EQ(key->of_group.group, 3);
  EXPECT_EQ(key->bucket, bucket);
  EXPECT_EQ(key->slot, "exp_avg");
  const std::string group = "optimizer.distributed.dp_group_idx_";
  for (const std::string none : {"optimizer.state.exp_avg.w", "x"}) {
    EXPECT_FALSE(parse_group_key(none)) << none;
  }
  for (const std::string number : {"", "x.y", "-1.y", "99999999999999999999.y", "7"}) {
    EXPECT_FALSE(parse_group_key(group + number)) << number;
  }
  EXPECT_FALSE(parse_bucket_key(group + "0.per_bucket_numel"));
  for (const std::string prefix :
       {"mimo.a.", "chained_.", "chained_1", "chained_99999999999999."}) {
    EXPECT_EQ(contracts::code_of([&] { parse_group_key(prefix + group + "0.optimizer"); }),
              Code::kUnsupported)
        << prefix;
  }
}

}  // namespace
}  // namespace reprise
