// Tests what all forms of an export promise: what is written is what is in the checkpoint, damage
// of the checkpoint is not copied, and an export that is killed leaves nothing that is visible.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/adapters/posix/thread_tasks.hpp"
#include "core/diff/diff.hpp"
#include "core/export/export.hpp"
#include "core/export/safetensors_form.hpp"
#include "core/export/torch_dist_form.hpp"
#include "core/export/torch_save_form.hpp"
#include "core/ports/passing_store.hpp"
#include "core/ports/whole_file.hpp"
#include "core/verify/verify.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

struct Form {
  std::string name;
  std::function<std::unique_ptr<ExportForm>()> make;
  std::string out = "out";
};

/// Names the form in the output of tests.
void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

std::optional<Cut> in_three(const std::string& /*key*/, const Dims& shape) {
  if (shape.empty()) return std::nullopt;
  return Cut{0, 3};
}

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"safetensors", [] { return std::make_unique<SafetensorsForm>(std::uint64_t{300}); }},
      {"torch_dist",
       [] {
         return std::make_unique<TorchDistForm>(
             TorchDistForm::Options{.rule = in_three, .writers = 2, .manifest = true});
       }},
      {"torch_save", [] { return std::make_unique<TorchSaveForm>("out.pt"); }, "out.pt"},
  };
  return all;
}

std::vector<MappedTensor> every_tensor_of(const Catalog& catalog) {
  std::vector<MappedTensor> tensors;
  for (std::uint32_t t = 0; t < catalog.tensors.size(); ++t) {
    tensors.push_back(mapped(catalog.tensors[t], t));
  }
  return tensors;
}

class ExportForms : public test::StoreTest, public ::testing::WithParamInterface<Form> {
 protected:
  ExportReport run(Checkpoint& source, const std::vector<MappedTensor>& tensors,
                   Store* store = nullptr, const ExportOptions& options = {}) {
    ThreadTasks tasks(2);
    CommitTarget target{GetParam().out};
    target.replace = false;
    const auto form = GetParam().make();
    return export_tensors(source, tensors, *form, target, options,
                          {store == nullptr ? store_ : *store, device_, tasks, tasks_, progress_});
  }
  ExportReport run(Checkpoint& source) { return run(source, every_tensor_of(source.catalog())); }

  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const Entry& entry : store_.list("")) names.push_back(entry.name);
    return names;
  }
};

INSTANTIATE_TEST_SUITE_P(Each, ExportForms, ::testing::ValuesIn(forms()),
                         [](const auto& row) { return row.param.name; });

TEST_P(ExportForms, has_what_each_fixture_has) {
  for (const std::string fixture :
       {"torch_2.15.0/fsdp2_tp_strided", "torch_2.15.0/fsdp2_uneven", "mcore_0.16.1_gpt_tp2_pp2",
        "safetensors_0.8.0/transformers_shards", "safetensors_0.8.0/one"}) {
    Checkpoint source = Checkpoint::open_any(test::data_store(), fixture);
    const auto report = run(source);
    EXPECT_EQ(report.proved, report.elements) << fixture;
    EXPECT_GT(report.proved, 0U) << fixture;
    EXPECT_TRUE(verify(store_, GetParam().out, PayloadCheck::kRead, progress_).whole()) << fixture;
    Checkpoint out = Checkpoint::open_any(store_, GetParam().out);
    const auto diff_report = diff(source, out, device_, {}, progress_);
    EXPECT_EQ(diff_report.elements, report.elements) << fixture;
    for (const auto& tensor : diff_report.tensors) {
      EXPECT_EQ(tensor.verdict, DiffVerdict::kSame) << fixture << " " << tensor.key;
    }
    store_.remove(GetParam().out);
  }
}

TEST_P(ExportForms, tensors_without_elements_and_without_dimensions_are_kept) {
  test::WrittenCheckpoint written;
  written.tensor("empty", DType::kFloat32, {0, 4}, {}).tensor("one", DType::kUInt8, {}, Bytes(1));
  Checkpoint source = Checkpoint::open(written.store(), "ckpt");
  EXPECT_EQ(run(source).proved, 1U);
  const Checkpoint out = Checkpoint::open_any(store_, GetParam().out);
  EXPECT_EQ(out.catalog().tensor("empty")->shape, (Dims{0, 4}));
  EXPECT_EQ(out.catalog().tensor("one")->shape, Dims{});
}

/// Flips a bit of the elements in what the n-th write of a file with tensors has.
class FlippingStore final : public PassingStore {
 public:
  FlippingStore(Store& inner, int number) : PassingStore(inner), left_(number) {}

  bool flipped() const { return left_ < 0; }
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    auto file = PassingStore::create(path);
    if (path.ends_with(".json") || path.ends_with(".metadata")) return file;
    return std::make_unique<Flipping>(std::move(file), left_);
  }

 private:
  class Flipping final : public WriteFile {
   public:
    Flipping(std::unique_ptr<WriteFile> inner, std::atomic<int>& left)
        : inner_(std::move(inner)), left_(left) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      Bytes copy(bytes.begin(), bytes.end());
      if (left_-- == 0) copy[copy.size() / 2] ^= std::byte{4};
      inner_->write_at(offset, copy);
    }
    void sync() override { inner_->sync(); }
    void close() override { inner_->close(); }

   private:
    std::unique_ptr<WriteFile> inner_;
    std::atomic<int>& left_;
  };

  std::atomic<int> left_;
};

TEST_P(ExportForms, no_write_can_go_wrong_and_be_taken_for_the_same) {
  test::WrittenCheckpoint written;
  Bytes elements(24);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<std::byte>(i + 1);
  written.tensor("a", DType::kFloat32, {3, 2}, elements).bytes("b", 7, 7);
  Checkpoint source = Checkpoint::open(written.store(), "ckpt");
  int refused = 0;
  for (int number = 0;; ++number) {
    FlippingStore store(store_, number);
    try {
      run(source, every_tensor_of(source.catalog()), &store);
      if (!store.flipped()) break;
    } catch (const Error&) {
      ++refused;
      EXPECT_THAT(names(), ::testing::IsEmpty()) << number;
      continue;
    }
    // A flip in what no reader looks at, such as an archive's padding, changes no tensor.
    Checkpoint out = Checkpoint::open_any(store_, GetParam().out);
    const auto report = diff(source, out, device_, {}, progress_);
    for (const auto& tensor : report.tensors) EXPECT_EQ(tensor.verdict, DiffVerdict::kSame);
    store_.remove(GetParam().out);
  }
  EXPECT_GE(refused, 2);
}

TEST_P(ExportForms, damage_of_the_checkpoint_is_named_and_not_copied) {
  test::WrittenCheckpoint written;
  written.bytes("a", 1000, 7).bytes("b", 1000, 8);
  Store& in = written.store();
  Bytes payload = read_all(in, "ckpt/__0_0.distcp", 1U << 20U);
  const auto elements = std::search_n(payload.begin(), payload.end(), 1000, std::byte{8});
  ASSERT_NE(elements, payload.end());
  *elements = std::byte{9};
  written.write("ckpt/__0_0.distcp", payload);
  Checkpoint source = Checkpoint::open(in, "ckpt");
  const auto error = contracts::error_of([&] { run(source); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kChecksum);
  EXPECT_EQ(error->place().key, "b");
  EXPECT_THAT(names(), ::testing::IsEmpty());
  EXPECT_EQ(run(source, every_tensor_of(source.catalog()), nullptr, {.checksums = false}).proved,
            2000U);
  // What is not exported is not looked at.
  store_.remove(GetParam().out);
  EXPECT_EQ(run(source, {mapped(source.catalog().tensors[0], 0)}).proved, 1000U);
}

/// Puts the first two tensors in each other's place, as a mapping would whose inverse is another.
class Exchanging final : public ExportForm {
 public:
  explicit Exchanging(std::unique_ptr<ExportForm> inner) : inner_(std::move(inner)) {}

  void require_holds(const MappedTensor& tensor) const override { inner_->require_holds(tensor); }
  std::vector<OutputFile> lay_out(const std::vector<MappedTensor>& tensors) override {
    auto files = inner_->lay_out(tensors);
    std::swap(files.front().parts[0].begin, files.front().parts[1].begin);
    return files;
  }
  void prepare(Store& store, CommitTarget& target, const std::vector<std::string>& names) override {
    inner_->prepare(store, target, names);
  }
  std::string path_of(const CommitTarget& target, const std::string& name) const override {
    return inner_->path_of(target, name);
  }
  void complete(Store& store, const CommitTarget& target) override {
    inner_->complete(store, target);
  }
  Checkpoint opened(Store& store, const CommitTarget& target) override {
    return inner_->opened(store, target);
  }
  void commit(Store& store, CommitTarget& target) override { inner_->commit(store, target); }
  void abandon(Store& store, CommitTarget& target) override { inner_->abandon(store, target); }

 private:
  std::unique_ptr<ExportForm> inner_;
};

TEST_P(ExportForms, tensors_in_each_others_place_are_noticed) {
  test::WrittenCheckpoint written;
  written.bytes("a", 2, 7).bytes("b", 2, 8).bytes("c", 2, 8);
  Checkpoint source = Checkpoint::open(written.store(), "ckpt");
  const auto tensors = every_tensor_of(source.catalog());
  Exchanging form(GetParam().make());
  CommitTarget target{GetParam().out};
  target.replace = false;
  const auto error = contracts::error_of([&] {
    export_tensors(source, tensors, form, target, {}, {store_, device_, tasks_, tasks_, progress_});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kChecksum);
  EXPECT_THAT(names(), ::testing::IsEmpty());
}

/// Stands for a process that is killed before its n-th change: from then on, nothing works.
class MortalStore final : public PassingStore {
 public:
  MortalStore(Store& inner, int changes) : PassingStore(inner), left_(changes) {}

  bool died() const { return died_; }
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    live();
    return std::make_unique<File>(PassingStore::create(path), *this);
  }
  void make_directory(const std::string& path) override { live(), inner().make_directory(path); }
  void publish(const NameChange& change) override { live(), inner().publish(change); }
  void remove(const std::string& path) override { live(), inner().remove(path); }
  bool remove_empty(const std::string& path) override {
    live();
    return inner().remove_empty(path);
  }
  void sync_directory(const std::string& path) override { live(), inner().sync_directory(path); }

 private:
  class File final : public WriteFile {
   public:
    File(std::unique_ptr<WriteFile> inner, MortalStore& store)
        : inner_(std::move(inner)), store_(store) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      store_.live(), inner_->write_at(offset, bytes);
    }
    void sync() override { store_.live(), inner_->sync(); }
    void close() override { store_.live(), inner_->close(); }

   private:
    std::unique_ptr<WriteFile> inner_;
    MortalStore& store_;
  };

  void live() {
    if (left_-- <= 0) {
      died_ = true;
      throw Error(Code::kIo, "killed");
    }
  }

  std::atomic<int> left_;
  std::atomic<bool> died_ = false;
};

TEST_P(ExportForms, killed_at_any_change_it_shows_nothing_and_the_next_clears_up) {
  test::WrittenCheckpoint written;
  written.bytes("a", 300, 7).bytes("b", 300, 8);
  Checkpoint source = Checkpoint::open(written.store(), "ckpt");
  const auto tensors = every_tensor_of(source.catalog());
  int deaths = 0;
  for (int changes = 0;; ++changes) {
    MortalStore store(store_, changes);
    try {
      run(source, tensors, &store);
    } catch (const Error&) {
      ++deaths;
    }
    const bool died = store.died();
    if (store_.stat(GetParam().out)) {
      // It was renamed already: then it is whole.
      Checkpoint out = Checkpoint::open_any(store_, GetParam().out);
      EXPECT_EQ(diff(source, out, device_, {}, progress_).elements, 600U) << changes;
      store_.remove(GetParam().out);
    } else {
      EXPECT_TRUE(died) << changes;
    }
    run(source);
    EXPECT_THAT(names(), ::testing::ElementsAre(GetParam().out)) << changes;
    store_.remove(GetParam().out);
    if (!died) break;
  }
  EXPECT_GE(deaths, 10);
}

/// A disk that is full after so many bytes, or that says so before.
class FullStore final : public PassingStore {
 public:
  FullStore(Store& inner, std::uint64_t bytes, bool says_so)
      : PassingStore(inner), left_(bytes), says_so_(says_so) {}

  std::optional<std::uint64_t> free_bytes(const std::string& /*directory*/) override {
    return says_so_ ? std::optional(left_.load()) : std::nullopt;
  }
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    ++created;
    return std::make_unique<File>(PassingStore::create(path), left_);
  }

  std::atomic<int> created = 0;

 private:
  class File final : public WriteFile {
   public:
    File(std::unique_ptr<WriteFile> inner, std::atomic<std::uint64_t>& left)
        : inner_(std::move(inner)), left_(left) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      if (bytes.size() > left_) throw Error(Code::kNoSpace, "full");
      left_ -= bytes.size();
      inner_->write_at(offset, bytes);
    }
    void sync() override { inner_->sync(); }
    void close() override { inner_->close(); }

   private:
    std::unique_ptr<WriteFile> inner_;
    std::atomic<std::uint64_t>& left_;
  };

  std::atomic<std::uint64_t> left_;
  bool says_so_;
};

TEST_P(ExportForms, a_full_disk_is_noticed_and_nothing_is_left) {
  test::WrittenCheckpoint written;
  written.bytes("a", 3000, 7).bytes("b", 3000, 8);
  Checkpoint source = Checkpoint::open(written.store(), "ckpt");
  for (const bool says_so : {true, false}) {
    FullStore store(store_, 4000, says_so);
    EXPECT_EQ(contracts::code_of([&] { run(source, every_tensor_of(source.catalog()), &store); }),
              Code::kNoSpace);
    EXPECT_EQ(store.created == 0, says_so);
    EXPECT_THAT(names(), ::testing::IsEmpty());
  }
}

TEST(TorchDistForm, gives_megatron_a_common_state_and_cuts_by_the_rule) {
  test::WrittenCheckpoint written;
  written.bytes("a", 8, 7);
  Checkpoint source = Checkpoint::open(written.store(), "ckpt");
  contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  HostDevice device("test", 0);
  ThreadTasks tasks(2);
  NoProgress progress;
  const Dict common = {{"checkpoint_version", 3.0}};
  TorchDistForm form({.rule = in_three, .writers = 3, .common = common});
  const CommitTarget target{.directory = "out", .step = {}, .replace = false};
  export_tensors(source, every_tensor_of(source.catalog()), form, target, {},
                 {store, device, tasks, tasks, progress});
  Checkpoint out = Checkpoint::open(store, "out");
  EXPECT_TRUE(out.of_megatron());
  EXPECT_EQ(*out.common()->item.value, Value(common));
  const auto& chunks = out.catalog().tensor("a")->chunks;
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks.back().box, (Box{{6}, {2}}));
  EXPECT_EQ(out.catalog().files.size(), 3U);
}

}  // namespace
}  // namespace reprise
