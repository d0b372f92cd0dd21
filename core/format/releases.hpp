#pragma once
// Which release of torch or Megatron-Core writes and reads which form of a checkpoint. One table
// has the facts; who wrote a checkpoint, who can read it, and what must change for a release
// follow from it.

#include <bitset>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/tensor.hpp"
#include "reprise/value.hpp"

namespace reprise {

enum class Package : std::uint8_t { kTorch, kMegatron };

/// The first two numbers of a release; later ones change no form.
struct Version {
  std::int32_t major = 0;
  std::int32_t minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
std::string to_string(Version version);

struct Release {
  Package package = Package::kTorch;
  Version version;
  friend bool operator==(const Release&, const Release&) = default;
};
/// Reads "torch-2.14", "mcore-0.18" or, with a third number, "torch-2.14.1". Throws USAGE for
/// anything else, and for a release that the table does not cover; the message lists what it
/// covers.
Release release_named(std::string_view name);
/// Returns the name that release_named() reads, without a third number.
std::string to_string(Release release);

/// The releases of a package from `first` to `last`, both included.
struct Releases {
  Version first;
  Version last;

  bool none() const { return last < first; }
  bool contain(Version version) const { return first <= version && version <= last; }
  friend bool operator==(const Releases&, const Releases&) = default;
};
/// Return the first and the last release; nothing where there is no bound that the table covers.
std::optional<Version> first_of(Package package, Releases releases);
std::optional<Version> last_of(Releases releases);
/// Describes releases, such as "torch >= 2.15", "megatron-core 0.16 to 0.18", "torch" if they are
/// all that the table covers, or "no release of torch".
std::string to_string(Package package, Releases releases);

/// What a checkpoint shows of its writer, or asks of its readers.
enum class Form : std::uint8_t {
  kStrides,
  kNoStrides,
  kModules,
  kNoModules,
  kVersion,
  kNoVersion,
  kRankMetadata,
  kWithoutFrames,
  kUnsigned,
  kFloat8E8M0,
  kFloat4,
  kCommonInFile,
  kCommonInObject,
  kBackendOfBoth,
  kBackendOfShards,
  kBackendUnknown,
  kShapesOfFlattened,
  kMegatronMetadata,
  kMegatronPlans,
  kPlans,
  kContentMetadata,
  kManifest,
  kFlattened,
  kBucketSpace,
  kWholeState,
  kBucketState,
  kWithoutPrefix,
  kRerunStates,
  kRerunValidation,
  kAttnBackend,
  kFp8Recipe,
  kLayerType,
  kFp4Recipe,
  kCudaGraphScope,
  kCudaGraphModule,
  kInferenceScope,
  kSafetensorsItems,
  kCommonUnread,
  kNoBackend,
  kNoLongerFlattened,
};
inline constexpr std::size_t kForms = static_cast<std::size_t>(Form::kNoLongerFlattened) + 1;

class Forms {
 public:
  Forms() = default;
  Forms(std::initializer_list<Form> forms) {
    for (const Form form : forms) add(form);
  }
  void add(Form form) { bits_.set(static_cast<std::size_t>(form)); }
  void remove(Form form) { bits_.reset(static_cast<std::size_t>(form)); }
  bool has(Form form) const { return bits_.test(static_cast<std::size_t>(form)); }
  void add(const Forms& others) { bits_ |= others.bits_; }
  friend bool operator==(const Forms&, const Forms&) = default;

 private:
  std::bitset<kForms> bits_;
};

/// What `reshard` does about a form that a release can't read.
enum class Remedy : std::uint8_t {
  kAlways,   ///< never writes it
  kForOnly,  ///< writes another form if it is told for which release
  kNone,     ///< keeps it
};

struct FormFacts {
  Form form;
  std::string_view words;  ///< the rest of a sentence that begins with the checkpoint
  Releases torch_writes;
  Releases torch_reads;
  Releases megatron_writes;
  Releases megatron_reads;
  Remedy remedy;
  std::string_view class_name = {};  ///< class of Megatron-Core whose name shows the form, if any
};
const FormFacts& facts_of(Form form);
/// Returns the form that a type of elements, or a class that the common state names, stands for.
std::optional<Form> form_of(DType dtype);
std::optional<Form> form_of(const Name& name);

/// Releases, and the forms that exclude the others.
struct Judged {
  Package package = Package::kTorch;
  Releases releases;
  std::vector<Form> because;
};
/// Returns the releases of a package that write all of these forms. Nothing can be said of a
/// checkpoint whose metadata Python did not write (Form::kWithoutFrames).
Judged writers(Package package, const Forms& forms);
/// Returns the releases of a package that read all of these forms.
Judged readers(Package package, const Forms& forms);
/// Returns the forms that `reshard` can't replace, even if it is told for which release to write.
Forms kept_by_reshard(const Forms& forms);
/// Returns the newest release of the package that is older than `readers` and can read what
/// `reshard` writes for it; nothing if there is none.
std::optional<Release> older_reader(const Judged& readers, const Forms& forms);

}  // namespace reprise
