#include "core/format/releases.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "core/base/check.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr Version kLater{std::numeric_limits<std::int32_t>::max(), 0};
constexpr Releases kAny{{0, 0}, kLater};
constexpr Releases kNone{kLater, {0, 0}};

constexpr Releases from(std::int32_t major, std::int32_t minor) { return {{major, minor}, kLater}; }
constexpr Releases until(std::int32_t major, std::int32_t minor) {
  return {{0, 0}, {major, minor}};
}

// The releases that were looked at; later ones are taken to read what these read.
constexpr Releases kTorch{{2, 4}, {2, 15}};
constexpr Releases kMegatron{{0, 8}, {0, 19}};

// Sources: the packages' own code, of torch 2.4.1, 2.5.1, 2.6.0, 2.7.1, 2.8.0, 2.9.1, 2.11.0,
// 2.13.0, 2.14.1 and 2.15.0, and of megatron-core 0.8.0 and 0.10.0 to 0.19.2. docs/releases.md has
// what these packages did when they were run; tests/interop/release_table.py fails if the two
// disagree.
constexpr std::array<FormFacts, kForms> kFacts = {{
    // form, words, torch writes, torch reads, megatron-core writes, megatron-core reads, remedy
    {Form::kStrides, "its tensor properties have strides", from(2, 15), from(2, 15), kAny, kAny,
     Remedy::kAlways},
    {Form::kNoStrides, "its tensor properties have no strides", until(2, 14), kAny, kAny, kAny,
     Remedy::kAlways},
    {Form::kModules, "its storage_meta has a list of modules", from(2, 7), kAny, kAny, kAny,
     Remedy::kAlways},
    {Form::kNoModules, "its storage_meta has no list of modules", until(2, 6), kAny, kAny, kAny,
     Remedy::kAlways},
    {Form::kVersion, "its metadata has a version", from(2, 9), kAny, kAny, kAny, Remedy::kAlways},
    {Form::kNoVersion, "its metadata has no version", until(2, 8), kAny, kAny, kAny,
     Remedy::kAlways},
    {Form::kRankMetadata, "each rank has metadata of its own", from(2, 9), from(2, 9), kNone, kNone,
     Remedy::kForOnly},
    {Form::kWithoutFrames, "its metadata is a pickle without frames", kNone, kAny, kNone, kAny,
     Remedy::kAlways},
    {Form::kUnsigned, "it has elements of uint16, uint32 or uint64", from(2, 6), from(2, 6), kAny,
     kAny, Remedy::kNone},
    {Form::kFloat8E8M0, "it has elements of float8_e8m0fnu", from(2, 7), from(2, 7), kAny, kAny,
     Remedy::kNone},
    {Form::kFloat4, "it has elements of float4_e2m1fn_x2", from(2, 8), from(2, 8), kAny, kAny,
     Remedy::kNone},
    // The common state and metadata.json: megatron/core/dist_checkpointing/core.py, strategies.
    {Form::kCommonInFile, "its common state is the file common.pt", kAny, kAny, until(0, 18), kAny,
     Remedy::kAlways},
    {Form::kCommonInObject, "its common state is an object", kAny, kAny, from(0, 19), from(0, 19),
     Remedy::kForOnly},
    {Form::kBackendOfBoth, "its metadata.json names a common backend", kAny, kAny, until(0, 18),
     kAny, Remedy::kAlways},
    {Form::kBackendOfShards, "its metadata.json names no common backend", kAny, kAny, from(0, 19),
     kAny, Remedy::kAlways},
    {Form::kBackendUnknown, "its metadata.json has further keys", kAny, kAny, kAny, from(0, 19),
     Remedy::kForOnly},
    {Form::kShapesOfFlattened, "its metadata has mcore_data", kAny, kAny, until(0, 15), kAny,
     Remedy::kAlways},
    {Form::kMegatronMetadata,
     "its metadata is an MCoreMetadata",
     kAny,
     kAny,
     {{0, 15}, {0, 15}},
     from(0, 15),
     Remedy::kAlways},
    {Form::kMegatronPlans,
     "its metadata has plans of the class MCoreSavePlan",
     kAny,
     kAny,
     {{0, 11}, {0, 15}},
     kAny,
     Remedy::kAlways},
    {Form::kPlans, "its metadata has plans of torch's class SavePlan", kAny, kAny, from(0, 16),
     kAny, Remedy::kAlways},
    {Form::kContentMetadata, "its common state has content_metadata", kAny, kAny, from(0, 13), kAny,
     Remedy::kNone},
    {Form::kManifest, "it has an integrity.json", kAny, kAny, from(0, 18), kAny, Remedy::kNone},
    // The state of the optimizer: megatron/core/optimizer/distrib_optimizer.py, mapping.py.
    {Form::kFlattened, "its optimizer state is stored as flattened ranges", kAny, kAny,
     until(0, 15), until(0, 15), Remedy::kNone},
    {Form::kBucketSpace, "its optimizer state has the form fully_sharded_bucket_space", kAny, kAny,
     until(0, 14), until(0, 14), Remedy::kNone},
    {Form::kWholeState, "its optimizer state has the form fully_reshardable", kAny, kAny,
     from(0, 15), from(0, 15), Remedy::kNone},
    {Form::kBucketState, "its optimizer state has the form dp_reshardable", kAny, kAny, from(0, 15),
     from(0, 15), Remedy::kNone},
    {Form::kWithoutPrefix, "its chained optimizers have no prefix", kAny, kAny, from(0, 14),
     from(0, 14), Remedy::kNone},
    // Classes that unpickling the common state imports: megatron/core/**/enums.py.
    {Form::kRerunStates, "its common state names RerunState", kAny, kAny, from(0, 10), from(0, 10),
     Remedy::kNone, "megatron.core.rerun_state_machine.RerunState"},
    {Form::kRerunValidation, "its common state names RerunValidationStatus", kAny, kAny,
     from(0, 12), from(0, 12), Remedy::kNone,
     "megatron.core.rerun_state_machine.RerunValidationStatus"},
    {Form::kAttnBackend, "its arguments name AttnBackend", kAny, kAny, from(0, 11), from(0, 11),
     Remedy::kNone, "megatron.core.transformer.enums.AttnBackend"},
    {Form::kFp8Recipe, "its arguments name Fp8Recipe", kAny, kAny, from(0, 12), from(0, 12),
     Remedy::kNone, "megatron.core.enums.Fp8Recipe"},
    {Form::kLayerType, "its arguments name LayerType", kAny, kAny, from(0, 13), from(0, 13),
     Remedy::kNone, "megatron.core.transformer.enums.LayerType"},
    {Form::kFp4Recipe, "its arguments name Fp4Recipe", kAny, kAny, from(0, 15), from(0, 15),
     Remedy::kNone, "megatron.core.enums.Fp4Recipe"},
    {Form::kCudaGraphScope, "its arguments name CudaGraphScope", kAny, kAny, from(0, 16),
     from(0, 16), Remedy::kNone, "megatron.core.transformer.enums.CudaGraphScope"},
    {Form::kCudaGraphModule, "its arguments name CudaGraphModule", kAny, kAny, from(0, 18),
     from(0, 18), Remedy::kNone, "megatron.core.transformer.enums.CudaGraphModule"},
    {Form::kInferenceScope, "its arguments name InferenceCudaGraphScope", kAny, kAny, from(0, 18),
     from(0, 18), Remedy::kNone, "megatron.core.transformer.enums.InferenceCudaGraphScope"},
    {Form::kSafetensorsItems, "its items are safetensors", kAny, kNone, kAny, kNone,
     Remedy::kAlways},
    {Form::kCommonUnread, "its common state can't be read", kAny, kAny, kAny, kNone, Remedy::kNone},
    {Form::kNoBackend, "it has no metadata.json", kAny, kAny, kAny, kNone, Remedy::kForOnly},
    {Form::kNoLongerFlattened,
     "its optimizer state has the form fully_sharded_model_space, but no flattened ranges", kAny,
     kAny, kNone, kNone, Remedy::kNone},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kForms; ++i) {
    if (static_cast<std::size_t>(kFacts[i].form) != i) return false;
  }
  return true;
}
static_assert(in_order());

constexpr std::string_view prefix_of(Package package) {
  return package == Package::kTorch ? "torch-" : "mcore-";
}
constexpr std::string_view title_of(Package package) {
  return package == Package::kTorch ? "torch" : "megatron-core";
}
constexpr Releases covered(Package package) {
  return package == Package::kTorch ? kTorch : kMegatron;
}

Releases both(Releases a, Releases b) {
  return {std::max(a.first, b.first), std::min(a.last, b.last)};
}

/// Reads "2.14" or "2.14.1".
std::optional<Version> version_of(std::string_view text) {
  std::array<std::int32_t, 3> numbers = {};
  std::size_t count = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (; count < numbers.size(); ++count) {
    const auto [next, error] = std::from_chars(at, end, numbers[count]);
    if (error != std::errc{} || numbers[count] < 0) return std::nullopt;
    at = next;
    if (at == end) break;
    if (*at++ != '.') return std::nullopt;
  }
  if (at != end || count == 0) return std::nullopt;
  return Version{numbers[0], numbers[1]};
}

/// Returns the releases for which all forms allow what `span_of` says, and the forms that exclude
/// others that the table covers.
template <class SpanOf>
Judged judge(Package package, const Forms& forms, const SpanOf& span_of) {
  Judged judged{package, {covered(package).first, kLater}, {}};
  for (const FormFacts& facts : kFacts) {
    if (!forms.has(facts.form)) continue;
    judged.releases = both(judged.releases, span_of(facts));
  }
  // Only the forms that set the bounds are reasons. Where no release is left, those that allow
  // none, or else those that contradict each other.
  const Releases whole{covered(package).first, kLater};
  const bool none_alone = std::ranges::any_of(kFacts, [&](const FormFacts& facts) {
    return forms.has(facts.form) && both(whole, span_of(facts)).none();
  });
  for (const FormFacts& facts : kFacts) {
    if (!forms.has(facts.form)) continue;
    const Releases span = both(whole, span_of(facts));
    if (span == whole) continue;
    const bool bounds = (span.first == judged.releases.first && span.first != whole.first) ||
                        (span.last == judged.releases.last && span.last != whole.last);
    if (none_alone ? span.none() : bounds) judged.because.push_back(facts.form);
  }
  return judged;
}

}  // namespace

std::string to_string(Version version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

Release release_named(std::string_view name) {
  for (const Package package : {Package::kTorch, Package::kMegatron}) {
    if (!name.starts_with(prefix_of(package))) continue;
    const auto version = version_of(name.substr(prefix_of(package).size()));
    if (version && covered(package).contain(*version)) return {package, *version};
  }
  const auto span = [](Package package) {
    return std::string(prefix_of(package)) + to_string(covered(package).first) + " to " +
           std::string(prefix_of(package)) + to_string(covered(package).last);
  };
  throw Error(Code::kUsage, "the releases are " + span(Package::kTorch) + " and " +
                                span(Package::kMegatron) + ", not '" + std::string(name) + "'");
}

std::string to_string(Release release) {
  return std::string(prefix_of(release.package)) + to_string(release.version);
}

std::optional<Version> first_of(Package package, Releases releases) {
  if (releases.none() || releases.first <= covered(package).first) return std::nullopt;
  return releases.first;
}

std::optional<Version> last_of(Releases releases) {
  if (releases.none() || releases.last == kLater) return std::nullopt;
  return releases.last;
}

std::string to_string(Package package, Releases releases) {
  std::string title(title_of(package));
  if (releases.none()) return "no release of " + title;
  const auto first = first_of(package, releases);
  const auto last = last_of(releases);
  if (!first && !last) return title;
  if (!first) return title + " <= " + to_string(*last);
  if (!last) return title + " >= " + to_string(*first);
  if (*first == *last) return title + " " + to_string(*first);
  return title + " " + to_string(*first) + " to " + to_string(*last);
}

const FormFacts& facts_of(Form form) {
  const auto index = static_cast<std::size_t>(form);
  CHECK(index < kForms, index);
  return kFacts[index];
}

std::optional<Form> form_of(DType dtype) {
  switch (dtype) {
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return Form::kUnsigned;
    case DType::kFloat8E8M0FNU:
      return Form::kFloat8E8M0;
    case DType::kFloat4E2M1FNx2:
      return Form::kFloat4;
    default:
      return std::nullopt;
  }
}

std::optional<Form> form_of(const Name& name) {
  const std::string whole = name.module + "." + name.name;
  for (const FormFacts& facts : kFacts) {
    if (facts.class_name == whole) return facts.form;
  }
  return std::nullopt;
}

Judged writers(Package package, const Forms& forms) {
  return judge(package, forms, [package](const FormFacts& facts) {
    return package == Package::kTorch ? facts.torch_writes : facts.megatron_writes;
  });
}

Judged readers(Package package, const Forms& forms) {
  return judge(package, forms, [package](const FormFacts& facts) {
    return package == Package::kTorch ? facts.torch_reads : facts.megatron_reads;
  });
}

Forms kept_by_reshard(const Forms& forms) {
  Forms kept;
  for (const FormFacts& facts : kFacts) {
    if (forms.has(facts.form) && facts.remedy == Remedy::kNone) kept.add(facts.form);
  }
  return kept;
}

std::optional<Release> older_reader(const Judged& now, const Forms& forms) {
  const Releases then = readers(now.package, kept_by_reshard(forms)).releases;
  if (then.none()) return std::nullopt;
  const Releases whole = covered(now.package);
  for (Version version{whole.first.major, whole.last.minor}; version >= whole.first;
       --version.minor) {
    const bool older = now.releases.none() || version < now.releases.first;
    if (older && then.contain(version)) return Release{now.package, version};
  }
  return std::nullopt;
}

}  // namespace reprise
