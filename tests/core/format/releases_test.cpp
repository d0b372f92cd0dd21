// Tests what the table of releases says of writers and readers.

#include "core/format/releases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/format/items.hpp"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Row {
  Forms forms;
  const char* torch;
  const char* megatron;
};

std::string words(const Judged& judged) { return to_string(judged.package, judged.releases); }

TEST(Releases, what_writes_all_of_the_forms) {
  const Row rows[] = {
      {{}, "torch", "megatron-core"},
      {{Form::kStrides}, "torch >= 2.15", "megatron-core"},
      {{Form::kStrides, Form::kModules, Form::kVersion}, "torch >= 2.15", "megatron-core"},
      {{Form::kNoStrides, Form::kModules, Form::kVersion}, "torch 2.9 to 2.14", "megatron-core"},
      {{Form::kNoStrides, Form::kModules, Form::kNoVersion}, "torch 2.7 to 2.8", "megatron-core"},
      {{Form::kNoStrides, Form::kNoModules, Form::kNoVersion}, "torch <= 2.6", "megatron-core"},
      {{Form::kStrides, Form::kNoVersion}, "no release of torch", "megatron-core"},
      {{Form::kWithoutFrames}, "no release of torch", "no release of megatron-core"},
      {{Form::kCommonInObject}, "torch", "megatron-core >= 0.19"},
      {{Form::kCommonInFile, Form::kPlans}, "torch", "megatron-core 0.16 to 0.18"},
      {{Form::kCommonInFile, Form::kMegatronPlans}, "torch", "megatron-core 0.11 to 0.15"},
      {{Form::kMegatronMetadata, Form::kMegatronPlans}, "torch", "megatron-core 0.15"},
      {{Form::kCommonInFile, Form::kCudaGraphModule}, "torch", "megatron-core 0.18"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(words(writers(Package::kTorch, row.forms)), row.torch);
    EXPECT_EQ(words(writers(Package::kMegatron, row.forms)), row.megatron);
  }
}

TEST(Releases, what_reads_all_of_the_forms) {
  const Row rows[] = {
      {{Form::kNoStrides, Form::kNoModules, Form::kCommonInFile, Form::kBackendOfBoth,
        Form::kPlans},
       "torch",
       "megatron-core"},
      {{Form::kStrides}, "torch >= 2.15", "megatron-core"},
      {{Form::kRankMetadata, Form::kUnsigned}, "torch >= 2.9", "no release of megatron-core"},
      {{Form::kUnsigned}, "torch >= 2.6", "megatron-core"},
      {{Form::kCommonInObject, Form::kWholeState}, "torch", "megatron-core >= 0.19"},
      {{Form::kFlattened}, "torch", "megatron-core <= 0.15"},
      {{Form::kFlattened, Form::kMegatronMetadata}, "torch", "megatron-core 0.15"},
      {{Form::kFlattened, Form::kWholeState}, "torch", "megatron-core 0.15"},
      {{Form::kBucketSpace, Form::kCommonInObject}, "torch", "no release of megatron-core"},
      {{Form::kNoBackend}, "torch", "no release of megatron-core"},
      {{Form::kNoLongerFlattened}, "torch", "no release of megatron-core"},
      {{Form::kSafetensorsItems}, "no release of torch", "no release of megatron-core"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(words(readers(Package::kTorch, row.forms)), row.torch);
    EXPECT_EQ(words(readers(Package::kMegatron, row.forms)), row.megatron);
  }
}

TEST(Releases, only_what_excludes_others_is_a_reason) {
  const Forms forms{Form::kStrides, Form::kUnsigned, Form::kVersion, Form::kCommonInObject};
  EXPECT_THAT(readers(Package::kTorch, forms).because, ElementsAre(Form::kStrides));
  EXPECT_THAT(readers(Package::kMegatron, forms).because, ElementsAre(Form::kCommonInObject));
  EXPECT_THAT(readers(Package::kTorch, {Form::kVersion}).because, IsEmpty());
  EXPECT_THAT(readers(Package::kMegatron, {Form::kBucketSpace, Form::kCommonInObject}).because,
              ElementsAre(Form::kCommonInObject, Form::kBucketSpace));
  EXPECT_THAT(
      readers(Package::kMegatron, {Form::kBucketSpace, Form::kCommonInObject, Form::kRerunStates})
          .because,
      ElementsAre(Form::kCommonInObject, Form::kBucketSpace))
      << "the two contradict each other";
  EXPECT_THAT(readers(Package::kMegatron, {Form::kCommonInObject, Form::kNoBackend}).because,
              ElementsAre(Form::kNoBackend))
      << "no release reads it";
}

TEST(Releases, older_ones_that_reshard_can_write_for) {
  const auto older = [](Package package, const Forms& forms) -> std::string {
    const auto found = older_reader(readers(package, forms), forms);
    return found ? to_string(*found) : "none";
  };
  EXPECT_EQ(older(Package::kTorch, {Form::kStrides}), "torch-2.14");
  EXPECT_EQ(older(Package::kTorch, {Form::kStrides, Form::kUnsigned}), "torch-2.14");
  EXPECT_EQ(older(Package::kTorch, {Form::kRankMetadata}), "torch-2.8");
  EXPECT_EQ(older(Package::kTorch, {Form::kUnsigned}), "none");
  EXPECT_EQ(older(Package::kTorch, {Form::kNoStrides}), "none");
  EXPECT_EQ(older(Package::kTorch, {Form::kSafetensorsItems}), "torch-2.15");
  EXPECT_EQ(older(Package::kMegatron, {Form::kCommonInObject}), "mcore-0.18");
  EXPECT_EQ(older(Package::kMegatron, {Form::kCommonInObject, Form::kFlattened}), "mcore-0.15");
  EXPECT_EQ(older(Package::kMegatron, {Form::kWholeState}), "none");
}

TEST(Releases, names_are_read_and_others_refused) {
  EXPECT_EQ(release_named("torch-2.4"), (Release{Package::kTorch, {2, 4}}));
  EXPECT_EQ(release_named("torch-2.14.1"), (Release{Package::kTorch, {2, 14}}));
  EXPECT_EQ(release_named("mcore-0.8"), (Release{Package::kMegatron, {0, 8}}));
  EXPECT_EQ(to_string(release_named("mcore-0.19.2")), "mcore-0.19");
  for (const char* name :
       {"", "torch", "torch-", "torch-2", "torch-2.", "torch-2.3", "torch-2.16", "torch-2.14.x",
        "torch-2.14.1.1", "torch 2.14", "torch-+2.14", "torch--2.14", "mcore-0.7", "mcore-0.20",
        "torch-99999999999.1", "2.14", "numpy-2.1"}) {
    const Error error = test::error_of([&] { release_named(name); });
    EXPECT_EQ(error.code(), Code::kUsage) << name;
    EXPECT_THAT(error.message(), HasSubstr("torch-2.4 to torch-2.15 and mcore-0.8 to mcore-0.19"));
  }
}

TEST(Releases, each_class_and_type_has_its_form) {
  EXPECT_EQ(form_of(Name{"megatron.core.transformer.enums", "CudaGraphScope"}),
            Form::kCudaGraphScope);
  EXPECT_EQ(form_of(Name{"megatron.core.transformer.enums", "AttnMaskType"}), std::nullopt);
  EXPECT_EQ(form_of(Name{"", ""}), std::nullopt);
  EXPECT_EQ(form_of(DType::kUInt32), Form::kUnsigned);
  EXPECT_EQ(form_of(DType::kBFloat16), std::nullopt);
}

}  // namespace
}  // namespace reprise
