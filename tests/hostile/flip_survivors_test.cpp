// In a checkpoint that another program wrote, finds the bit flips that verify accepts, and
// describes the content that is read after each of them. tests/interop/flips.py runs this test on a
// checkpoint that torch has just written, and compares the result with what torch and Python's
// zipfile read.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "core/adapters/posix/host_device.hpp"
#include "core/base/printable.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/ports/no_progress.hpp"
#include "core/verify/verify.hpp"
#include "tests/contracts/sanitized.hpp"
#include "tests/hostile/memory_tree.hpp"

namespace reprise::test {
namespace {

constexpr const char* kPath = "ckpt";

MemoryTree tree_of(const std::string& directory) {
  MemoryTree flat = MemoryTree::of_directory(directory);
  MemoryTree tree;
  for (auto& [path, content] : flat.files) {
    tree.files[std::string(kPath) + "/" + path] = std::move(content);
  }
  return tree;
}

std::string hex_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return hex;
}

/// Describes a checkpoint's content in one line: each tensor by its type, shape and checksum, and
/// each object by the key of an object with the same value in the undamaged checkpoint.
class Account {
 public:
  explicit Account(Store& undamaged) {
    Checkpoint checkpoint = Checkpoint::open(undamaged, kPath);
    for (const auto& object : checkpoint.catalog().objects) {
      values_.emplace_back(object.key, value_of(checkpoint, object));
    }
    common_ = checkpoint.common();
  }

  std::string of(Store& store) const {
    Checkpoint checkpoint = Checkpoint::open(store, kPath);
    std::string line;
    for (const auto& tensor : checkpoint.catalog().tensors) line += words_of(checkpoint, tensor);
    for (const auto& object : checkpoint.catalog().objects) {
      line += "O " + hex_of(object.key) + ' ' + same_as(value_of(checkpoint, object)) + ';';
    }
    const auto common = checkpoint.common();
    const bool same = common.has_value() == common_.has_value() &&
                      (!common || common->item.value == common_->item.value);
    return line + (same ? "C same" : "C other");
  }

 private:
  static std::optional<Value> value_of(Checkpoint& checkpoint, const StoredObject& object) {
    const auto slice = checkpoint.slice(object.key, object.file, object.range);
    return read_bytes_item(*slice).value;
  }

  static std::string words_of(Checkpoint& checkpoint, const StoredTensor& tensor) {
    const Dims shape = logical_shape(tensor);
    Bytes elements(static_cast<std::size_t>(volume(shape)) * size_of(tensor.dtype));
    HostDevice device("node", 0);
    Bytes staging(1U << 16U);
    TensorReader({checkpoint, device, staging}, tensor).read(Box::whole(shape), elements.data());
    std::string dims;
    for (const std::int64_t extent : shape) dims += std::to_string(extent) + ',';
    return "T " + hex_of(tensor.key) + ' ' + std::string(name_of(tensor.dtype)) + ' ' + dims + ' ' +
           std::to_string(crc32_of(elements)) + ';';
  }

  std::string same_as(const std::optional<Value>& value) const {
    for (const auto& [key, known] : values_) {
      if (known && value && *known == *value) return hex_of(key);
    }
    return "other";
  }

  std::vector<std::pair<std::string, std::optional<Value>>> values_;
  std::optional<Checkpoint::Common> common_;
};

struct Survivor {
  std::string file;  ///< path within the checkpoint
  std::uint64_t change = 0;
  std::string account;
  std::string notes;  ///< what verify notes, for what it does not interpret
};

/// The changes to try: each bit flipped, or each byte replaced by each other one.
struct Changes {
  std::uint64_t per_byte = 8;
  std::string only = {};  ///< the file to change; all if empty

  std::byte mask(std::uint64_t change) const {
    const std::uint64_t in_byte = change % per_byte;
    return static_cast<std::byte>(per_byte == 8 ? 1U << in_byte : in_byte + 1);
  }
};

/// Makes every `step`th change, one at a time.
class Flipper {
 public:
  Flipper(MemoryTree tree, const Account& account, Changes changes)
      : tree_(std::move(tree)), account_(account), changes_(std::move(changes)) {}

  void flip(std::uint64_t first, std::uint64_t step) {
    const std::uint64_t per_byte = changes_.per_byte;
    for (auto& [path, content] : tree_.files) {
      if (!changes_.only.empty() && path != kPath + ("/" + changes_.only)) continue;
      for (std::uint64_t change = first; change < per_byte * content.size(); change += step) {
        content[change / per_byte] ^= changes_.mask(change);
        look(path, change);
        content[change / per_byte] ^= changes_.mask(change);
      }
    }
  }
  std::vector<Survivor> survivors;
  std::uint64_t tried = 0;

 private:
  void look(const std::string& path, std::uint64_t change) {
    ++tried;
    NoProgress progress;
    try {
      const auto report = verify(tree_, kPath, PayloadCheck::kRead, progress);
      if (report.verdict() != VerifyVerdict::kWhole) return;
      std::string notes;
      for (const Finding& finding : report.findings) {
        if (finding.severity == Severity::kNote) notes += printable(finding.message) + "; ";
      }
      survivors.push_back({path.substr(path.find('/') + 1), change, account_.of(tree_), notes});
    } catch (const Error& error) {
      ASSERT_NE(error.code(), Code::kInternal) << path << ' ' << change << ' ' << error.what();
    }
  }

  MemoryTree tree_;
  const Account& account_;
  Changes changes_;
};

std::string asked_for(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

TEST(FlipSurvivors, a_flip_in_the_payload_is_harmless_where_verify_says_whole) {
  const char* asked = std::getenv("REPRISE_FLIPS_OF");
  const char* answer = std::getenv("REPRISE_FLIPS_OUT");
  MemoryTree tree =
      tree_of(asked != nullptr ? asked : std::string(REPRISE_TEST_DATA) + "/torch_2.15.0/plain");
  const Account account(tree);
  const std::string undamaged = account.of(tree);
  const std::string one_in = asked_for("REPRISE_FLIPS_STEP");
  const std::uint64_t step = !one_in.empty()          ? std::stoull(one_in)
                             : asked != nullptr       ? 1
                             : REPRISE_SANITIZED != 0 ? 4099
                                                      : 257;
  Changes changes{.only = asked_for("REPRISE_FLIPS_FILE")};
  if (!asked_for("REPRISE_FLIPS_BYTES").empty()) changes.per_byte = 255;
  constexpr std::uint64_t kParts = 2;
  std::vector<Flipper> flippers(kParts, Flipper(tree, account, changes));
  std::vector<std::thread> threads;
  for (std::uint64_t p = 0; p < kParts; ++p) {
    threads.emplace_back([&, p] { flippers[p].flip(p * step, kParts * step); });
  }
  for (auto& thread : threads) thread.join();
  std::ofstream out(answer != nullptr ? answer : "/dev/null");
  out << "undamaged\t0\t" << undamaged << '\n';
  std::uint64_t tried = 0;
  std::uint64_t survived = 0;
  for (const Flipper& flipper : flippers) {
    tried += flipper.tried;
    survived += flipper.survivors.size();
    for (const Survivor& one : flipper.survivors) {
      out << one.file << '\t' << one.change << '\t' << one.account << '\t' << one.notes << '\n';
      if (one.file.ends_with(".distcp") && asked == nullptr) {
        EXPECT_EQ(one.account, undamaged) << one.file << ' ' << one.change;
      }
    }
  }
  out << "tried\t" << tried << '\t' << survived << '\n';
  EXPECT_GT(tried, survived);
  EXPECT_GT(survived, 0U);
}

}  // namespace
}  // namespace reprise::test
